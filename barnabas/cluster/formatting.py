"""Formats the directories of a node: what they hold before the node starts for the first time.

Knows nothing of options. Apache Kafka's ``Formatter`` and ``ScramParser`` (KIP-631, KIP-853, KIP-900).
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.cluster.controller import bootstrap
from barnabas.cluster.features import METADATA_VERSION, METADATA_VERSIONS, first_levels
from barnabas.cluster.quorum.metadata_log import DIRECTORY
from barnabas.cluster.quorum.snapshots import SnapshotId, encode_snapshot
from barnabas.cluster.quorum.sole_voter import only_voter
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
from barnabas.uuids import random_uuid
from barnabas.wire.messages.metadata_records import UserScramCredentialRecord

_ARGUMENT = re.compile(r'\s*(\w+)=(?:"([^"]*)"|([^,\]]*))\s*(?:,|$)')


class FormatError(Exception):
    """The directories cannot be formatted."""


class Node(NamedTuple):
    """The node whose directories are formatted."""

    cluster_id: str
    node_id: int
    directories: Sequence[str]
    metadata_directory: str  #: where the metadata log will be; one of the directories
    voter: Sequence[Endpoint] = ()  #: where the only voter of a dynamic quorum is reached; empty: a static quorum


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

    :param records: what the metadata log begins with after the feature levels
    :raises FormatError: a directory is formatted, or belongs to another node or cluster
    :raises ConfigError: a level does not exist, or rests on another that is not there
    :raises OSError: a directory cannot be written to
    """
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
        directory_id = random_uuid(random_bytes)
        kind = "data directory"
        if directory == node.metadata_directory:
            kind = "dynamic metadata voter directory" if node.voter else "metadata directory"
            if node.voter:
                _write_voter(files, node, directory_id, now_ms)
        meta_properties.write(files, directory, MetaProperties(node.cluster_id, node.node_id, directory_id))
        lines.append(f"Formatting {kind} {directory} with {METADATA_VERSION} {version}.")
    return lines


def _found(files: Files, node: Node) -> dict[str, MetaProperties | None]:
    """Returns what the directories' ``meta.properties`` say, the metadata's last."""
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


def _write_voter(files: Files, node: Node, directory_id: bytes, now_ms: int) -> None:
    """Writes the first snapshot of the metadata log, which names the voter."""
    directory = f"{node.metadata_directory}/{DIRECTORY}"
    files.makedirs(directory)
    data = encode_snapshot(
        (),
        kraft=only_voter(node.node_id, directory_id, node.voter),
        metadata_version=0,
        epoch=0,
        last_timestamp=0,
        now_ms=now_ms,
    )
    files.write_atomically(f"{directory}/{SnapshotId(0, 0).file_name}", data, sync=True)


# ---------------------------------------------------------------- SCRAM


def scram_credential(text: str, random_bytes: Callable[[int], bytes]) -> UserScramCredentialRecord:
    """Returns the credential of ``SCRAM-SHA-256=[name=alice,password=secret]``.

    :raises FormatError: the text is something else. The error shows no password.
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
