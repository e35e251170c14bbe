"""``barnabas configs`` for users, clients and IP addresses: their quotas, and the SCRAM credentials of users.

Knows nothing of options. Apache Kafka's ``ConfigCommand`` (KIP-546, KIP-554, KIP-612).
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.cli.client import check_code
from barnabas.cli.requests import send_to_any
from barnabas.security.sasl.scram import CODES, HASHES, MIN_ITERATIONS
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

#: The entity types of kafka-configs by the names of quotas.
TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
DEFAULT = ""
"""The name of the default entity, as in kafka-configs."""
EXACT, DEFAULT_ONLY, ANY = 0, 1, 2
RESOURCE_NOT_FOUND = 91
_CREDENTIAL = re.compile(r"(?:iterations=(\d{1,9}),)?password=(.+)", re.DOTALL)

Entity = Sequence[tuple[str, str | None]]
"""Entity types with a name; None is any name."""


class Changes(NamedTuple):
    """The values to set by name; None removes a value."""

    scram: dict[str, str | None]
    quotas: dict[str, float | None]


def changes_of(added: Mapping[str, str], deleted: Sequence[str]) -> Changes:
    """Separates SCRAM credentials from quotas.

    :raises click.UsageError: a quota is not a number
    """
    wanted: dict[str, str | None] = {**added, **dict.fromkeys(deleted)}
    scram = {name: value for name, value in wanted.items() if name in CODES}
    try:
        quotas = {name: None if value is None else float(value) for name, value in wanted.items() if name not in CODES}
    except ValueError as error:
        raise click.UsageError(f"A quota must be a number: {error}") from None
    return Changes(scram, quotas)


def alter(admin: Any, entity: Entity, changes: Changes) -> None:
    """Makes the changes.

    :raises click.ClickException: the broker refuses them, or the entity type does not have them
    """
    if any(name is None for _, name in entity):
        raise click.UsageError("--alter needs the name of each entity, or its default")
    if changes.scram:
        if len(entity) != 1 or entity[0][0] != "users" or not entity[0][1]:
            raise click.UsageError("SCRAM credentials go with --entity-type users and a name only")
        _alter_credentials(admin, entity[0][1], changes.scram)
    if changes.quotas:
        _alter_quotas(admin, entity, changes.quotas)


def _alter_credentials(admin: Any, user: str, changes: Mapping[str, str | None]) -> None:
    """Sends a request for each mechanism, since a broker refuses a user who is named twice in one."""
    requests = []
    for mechanism, value in changes.items():
        if value is None:
            deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
            deletions = [deletion(name=user, mechanism=CODES[mechanism])]
            requests.append(AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[]))
        else:
            upsertions = [credential(user, mechanism, value)]
            requests.append(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions))
    for request in requests:
        for result in send_to_any(admin, request).results:
            check_code(result.error_code, result.error_message)


def credential(user: str, mechanism: str, text: str) -> Any:
    """Returns the credential of ``iterations=8192,password=secret``; the password is not sent.

    :raises click.UsageError: the text is something else
    """
    found = _CREDENTIAL.fullmatch(text)
    if found is None:
        raise click.UsageError(f"{mechanism} must be [iterations=N,password=...], where iterations may be left out")
    iterations, password = int(found[1] or MIN_ITERATIONS), found[2]
    salt = os.urandom(24)
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user,
        mechanism=CODES[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations),
    )


def _alter_quotas(admin: Any, entity: Entity, changes: Mapping[str, float | None]) -> None:
    entry = AlterClientQuotasRequest.EntryData(
        entity=[
            AlterClientQuotasRequest.EntryData.EntityData(entity_type=TYPES[kind], entity_name=name or None)
            for kind, name in entity
        ],
        ops=[
            AlterClientQuotasRequest.EntryData.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )
    for result in send_to_any(admin, AlterClientQuotasRequest(entries=[entry], validate_only=False)).entries:
        check_code(result.error_code, result.error_message)


def describe(admin: Any, entity: Entity) -> list[dict[str, Any]]:
    """Returns the entities that are selected and have quotas or credentials; a name of None is the default.

    :raises click.ClickException: the broker refuses it
    """
    found: dict[tuple[tuple[str, str | None], ...], dict[str, Any]] = {}
    for quota in _quotas(admin, entity):
        key = tuple((each.entity_type, each.entity_name) for each in sorted(quota.entity, key=_order))
        found.setdefault(key, {}).update({each.key: each.value for each in quota.values})
    if [kind for kind, _ in entity] == ["users"] and entity[0][1] != DEFAULT:
        for result in _credentials(admin, entity[0][1]):
            if result.error_code != RESOURCE_NOT_FOUND:
                check_code(result.error_code, result.error_message)
                mechanisms = {code: mechanism for mechanism, code in CODES.items()}
                found.setdefault((("user", result.user),), {}).update({
                    mechanisms.get(each.mechanism, str(each.mechanism)): f"iterations={each.iterations}"
                    for each in result.credential_infos
                })  # fmt: skip
    return [
        {"entity": dict(key), "configs": dict(sorted(configs.items()))}
        for key, configs in sorted(found.items(), key=lambda item: [(kind, name or "") for kind, name in item[0]])
    ]


def _order(each: Any) -> int:
    return list(TYPES.values()).index(each.entity_type) if each.entity_type in TYPES.values() else len(TYPES)


def _quotas(admin: Any, entity: Entity) -> Sequence[Any]:
    request = DescribeClientQuotasRequest(
        components=[
            DescribeClientQuotasRequest.ComponentData(
                entity_type=TYPES[kind],
                match_type=ANY if name is None else EXACT if name else DEFAULT_ONLY,
                match=name or None,
            )
            for kind, name in entity
        ],
        strict=True,
    )
    response = send_to_any(admin, request)
    check_code(response.error_code, response.error_message)
    return response.entries or ()


def _credentials(admin: Any, user: str | None) -> Sequence[Any]:
    named = None if user is None else [DescribeUserScramCredentialsRequest.UserName(name=user)]
    response = send_to_any(admin, DescribeUserScramCredentialsRequest(users=named))
    check_code(response.error_code, response.error_message)
    results: Sequence[Any] = response.results
    return results


def display_name(entity: Mapping[str, str | None]) -> str:
    """Returns an entity as readable text: ``user alice, default client-id``."""
    return ", ".join(f"default {kind}" if name is None else f"{kind} {name}" for kind, name in entity.items())
