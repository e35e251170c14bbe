"""Formats the directories of a node, before its first start.

Knows nothing of command-line options. Apache Kafka's ``Formatter`` and ``ScramParser`` (KIP-631, KIP-853, KIP-900).
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.cluster.controller import bootstrap
from barnabas.cluster.features import KRAFT, KRAFT_VERSION, METADATA_VERSION, METADATA_VERSIONS, first_levels
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.metadata_log import DIRECTORY
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId, encode_snapshot
from barnabas.cluster.quorum.voters import voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.log import meta_properties
from barnabas.log.files import Files
from barnabas.log.meta_properties import InvalidMetaProperties, MetaProperties
from barnabas.security.sasl.scram import (
    CODES,
    HASHES,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    credential_of,
    keys_of,
)
from barnabas.uuids import random_uuid, uuid_of
from barnabas.wire.messages.control_records import VotersRecord
from barnabas.wire.messages.metadata_records import UserScramCredentialRecord

_ARGUMENT = re.compile(r'\s*(\w+)=(?:"([^"]*)"|([^,\]]*))\s*(?:,|$)')

_VOTER = re.compile(r"(\d+)@(\[[^]]*]|[^\[:]*):(\d+):(.*)")

_DYNAMIC = "one of the flags --standalone, --initial-controllers, or --no-initial-controllers"
VOTERS_ARE_DYNAMIC = (
    f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and {_DYNAMIC} is used. For dynamic "
    f"controllers support, try removing the --feature flag for {KRAFT_VERSION}."
)
VOTERS_ARE_STATIC = (
    f"Cannot set {KRAFT_VERSION} to 1 unless controller.quorum.voters is empty and {_DYNAMIC} is used. For dynamic "
    "controllers support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and "
    "removing controller.quorum.voters."
)


class FormatError(Exception):
    """The directories cannot be formatted."""


class Voter(NamedTuple):
    """A voter of a dynamic quorum."""

    node_id: int
    directory_id: bytes  #: the id of the directory with its metadata log
    endpoints: Sequence[Endpoint]


class Node(NamedTuple):
    """The node whose directories are formatted."""

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str  #: the directory of the metadata log, one of the others
    voters: Sequence[Voter] = ()  #: of the metadata log; empty if they are configured, or not known yet
    has_static_voters: bool = False  #: whether ``controller.quorum.voters`` is set


def format_directories(
    files: Files,
    node: Node,
    levels: Mapping[str, int],
    records: Sequence[Any],
    *,
    ignore_formatted: bool,
    now_ms: int,
    random_bytes: Callable[[int], bytes],
) -> list[str]:
    """Formats the directories that are not formatted, and returns a line for each.

    :param records: the records of the metadata log after the feature levels
    :raises FormatError: a directory is formatted, or belongs to another node or cluster
    :raises ConfigError: a level does not exist, or depends on a level that is not given
    :raises OSError: a directory cannot be written to
    """
    if KRAFT_VERSION in levels and bool(levels[KRAFT_VERSION]) == node.has_static_voters:
        raise FormatError(VOTERS_ARE_STATIC if node.has_static_voters else VOTERS_ARE_DYNAMIC)
    found = _found(files, node)
    formatted = [directory for directory, properties in found.items() if properties is not None]
    if formatted and not ignore_formatted:
        raise FormatError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore this directory and "
            "format the others."
        )
    if len(formatted) == len(found):
        return ["All of the log directories are already formatted."]
    version = METADATA_VERSIONS[first_levels(levels)[METADATA_VERSION]]
    lines = []
    for directory in found:
        if found[directory] is not None:
            continue
        files.makedirs(directory)
        bootstrap.write(files, f"{directory}/{bootstrap.FILE_NAME}", levels, records, now_ms)
        directory_id, kind = random_uuid(random_bytes), "data directory"
        if directory == node.metadata_directory:
            own = next((voter.directory_id for voter in node.voters if voter.node_id == node.node_id), None)
            directory_id, kind = own or directory_id, _kind(node, is_voter=own is not None)
            if node.voters:
                _write_voters(files, node, now_ms)
        meta_properties.write(files, directory, MetaProperties(node.cluster_id, node.node_id, directory_id))
        lines.append(f"Formatting {kind} {directory} with {METADATA_VERSION} {version}.")
    return lines


def _found(files: Files, node: Node) -> dict[str, MetaProperties | None]:
    """Returns the ``meta.properties`` of the directories, that of the metadata last."""
    found = {}
    for directory in sorted(node.directories, key=lambda each: each == node.metadata_directory):
        try:
            properties = meta_properties.read(files, directory)
        except InvalidMetaProperties as error:
            raise FormatError(str(error)) from None
        if properties is not None:
            path = f"{directory}/{meta_properties.FILE_NAME}"
            for name, expected, actual in (
                ("cluster.id", node.cluster_id, properties.cluster_id),
                ("node.id", node.node_id, properties.node_id),
            ):
                if actual != expected:
                    raise FormatError(f"Invalid {name} in: {path}. Expected {expected}, but read {actual}")
        found[directory] = properties
    return found


def _kind(node: Node, *, is_voter: bool) -> str:
    """Returns the name for the directory of the metadata log in messages."""
    if not node.voters:
        return "metadata directory"
    return "dynamic metadata voter directory" if is_voter else "dynamic metadata directory"


def _write_voters(files: Files, node: Node, now_ms: int) -> None:
    """Writes the first snapshot of the metadata log, with the voters."""
    directory = f"{node.metadata_directory}/{DIRECTORY}"
    files.makedirs(directory)
    voters = [voter_record(ReplicaKey(each.node_id, each.directory_id), each.endpoints) for each in node.voters]
    data = encode_snapshot(
        (),
        kraft=KRaftState(KRAFT.last, VotersRecord(version=0, voters=voters)),
        metadata_version=0,
        epoch=0,
        last_timestamp=0,
        now_ms=now_ms,
    )
    files.write_atomically(f"{directory}/{SnapshotId(0, 0).file_name}", data, sync=True)


# ---------------------------------------------------------------- voters


def initial_controllers(text: str, listener: Endpoint) -> list[Voter]:
    """Returns the voters of ``0@example.com:8082:JEXY6aqzQY-32P5TStzaFg,1@...`` (``DynamicVoters``).

    :param listener: the controllers' listener; its host and port are ignored
    :raises FormatError: the text is not valid
    """
    voters = [_parse_voter(each.strip(), listener) for each in text.split(",") if each.strip()]
    if not voters:
        raise FormatError("No voters given.")
    ids = [voter.node_id for voter in voters]
    for node_id in ids:
        if ids.count(node_id) > 1:
            raise FormatError(f"Node id {node_id} was specified more than once.")
    return sorted(voters)


def _parse_voter(text: str, listener: Endpoint) -> Voter:
    match = _VOTER.fullmatch(text)
    if match is None:
        raise FormatError(f"{text} is not a voter: id@host:port:directory-id")
    node_id, host, port, directory_id = match.groups()
    if int(port) > 65535:
        raise FormatError(f"Invalid port {port} in dynamic voter string.")
    try:
        directory = uuid_of(directory_id)
    except ValueError:
        raise FormatError("Failed to parse directory ID in dynamic voter string.") from None
    host = host.removeprefix("[").removesuffix("]")
    return Voter(int(node_id), directory, [listener._replace(host=host, port=int(port))])


# ---------------------------------------------------------------- SCRAM


def scram_credential(text: str, random_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    """Returns the credential of ``SCRAM-SHA-256=[name=alice,password=secret]``.

    :raises FormatError: the text is not valid; the message has no password
    """
    mechanism, equals, rest = text.strip().partition("=")
    if mechanism not in HASHES or not equals:
        raise FormatError(f"--add-scram must begin with one of {', '.join(HASHES)} and an equals sign")
    given = _arguments(rest)
    iterations = given.get("iterations", str(MIN_ITERATIONS))
    if not iterations.isdecimal() or not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
        raise FormatError(f"The iterations of --add-scram must be a number from {MIN_ITERATIONS} to {MAX_ITERATIONS}")
    salt = _bytes(given, "salt") or random_bytes(24)
    salted = _bytes(given, "saltedpassword")
    if salted:
        credential = ScramCredential(salt, *keys_of(mechanism, salted), int(iterations))
    else:
        credential = credential_of(mechanism, given["password"].encode(), salt, int(iterations))
    return as_record(given["name"], mechanism, credential)


def as_record(user: str, mechanism: str, credential: ScramCredential) -> UserScramCredentialRecord:
    """Returns the record of a user's SCRAM credential."""
    return UserScramCredentialRecord(name=user, mechanism=CODES[mechanism], **credential._asdict())


def _arguments(text: str) -> dict[str, str]:
    """Parses ``[name=alice,salt="N3E=",...]``."""
    if not (text.startswith("[") and text.endswith("]")):
        raise FormatError("--add-scram must have its arguments in brackets")
    found, position = {}, 1
    while position < len(text) - 1:
        match = _ARGUMENT.match(text, position, len(text) - 1)
        if match is None or match[1] in found:
            raise FormatError("The arguments of --add-scram must be name=value, each once")
        found[match[1]] = match[2] if match[2] is not None else match[3]
        position = match.end()
    unknown = found.keys() - {"name", "password", "salt", "iterations", "saltedpassword"}
    if unknown:
        raise FormatError(f"--add-scram has no argument {sorted(unknown)[0]}")
    if not found.get("name"):
        raise FormatError("--add-scram needs a name")
    if bool(found.get("password")) == bool(found.get("saltedpassword")):
        raise FormatError("--add-scram needs one of password and saltedpassword")
    if found.get("saltedpassword") and not found.get("salt"):
        raise FormatError("A saltedpassword of --add-scram needs its salt")
    return found


def _bytes(given: Mapping[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(given.get(name, ""), validate=True)
    except binascii.Error:
        raise FormatError(f"The {name} of --add-scram must be in base64") from None
