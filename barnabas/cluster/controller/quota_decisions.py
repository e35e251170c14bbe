"""Decides on quotas of clients: the valid entities, quotas and values.

Knows nothing of how quotas are enforced. The rules are those of Apache Kafka's ``ClientQuotaControlManager`` (KIP-546).
"""

from collections.abc import Mapping
from typing import Any

from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, AlteredQuotas, QuotaAlteration
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage, QuotaEntity
from barnabas.errors import InvalidRequest, KafkaError
from barnabas.security.quotas.entities import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
)
from barnabas.wire.messages.metadata_records import ClientQuotaRecord

LONG, INT = ("a LONG", 2.0**63), ("an INT", 2.0**31 - 1)
"""The names of Java's types in messages, and their largest values as doubles."""

OF_CLIENTS: Mapping[str, tuple[str, float] | None] = {
    PRODUCER_BYTE_RATE: LONG,
    CONSUMER_BYTE_RATE: LONG,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
"""The quotas of users and client ids, with the type of integer ones."""

OF_ADDRESSES: Mapping[str, tuple[str, float] | None] = {CONNECTION_CREATION_RATE: INT}

FRACTION = 1e-6
"""The maximum difference of a value from an integer."""


def alter_client_quotas(command: AlterClientQuotas, image: MetadataImage, around: Surroundings) -> Decision:
    """Changes the quotas of each entity independently: all of its values, or none. Duplicate entities are refused."""
    records: list[Any] = []
    results: dict[QuotaEntity, AlteredQuotas] = {}
    for alteration in command.alterations:
        entity = entity_of(alteration)
        keys = [key for key, _ in alteration.values]
        if entity in results or len(set(keys)) < len(keys):
            error = InvalidRequest(f"Ignoring duplicate entity {java_text(alteration.entity)}")
            results[entity] = AlteredQuotas(alteration.entity, error)
            continue
        try:
            records += changes(alteration, command, image)
        except KafkaError as refusal:
            results[entity] = AlteredQuotas(alteration.entity, refusal)
        else:
            results[entity] = AlteredQuotas(alteration.entity)
    return Decision([] if command.validate_only else records, list(results.values()))


def entity_of(alteration: QuotaAlteration) -> QuotaEntity:
    return tuple(sorted((kind, name is not None, name or "") for kind, name in alteration.entity.items()))


def java_text(entity: Mapping[str, str | None]) -> str:
    """Returns the entity as Java's ``toString`` does."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in sorted(entity.items()))
    return f"ClientQuotaEntity(entries={{{parts}}})"


def changes(alteration: QuotaAlteration, command: AlterClientQuotas, image: MetadataImage) -> list[ClientQuotaRecord]:
    """Returns a record for each quota that changes.

    :raises InvalidRequest: the entity, a key or a value is refused
    """
    allowed = allowed_quotas(alteration.entity, command)
    entity, records = entity_of(alteration), []
    for key, value in alteration.values:
        current = image.quotas.get((entity, key))
        if value is None:
            if current is not None:
                records.append(record(alteration, key, 0.0, remove=True))
            continue
        if key not in allowed:
            raise InvalidRequest(f"Invalid configuration key {key}")
        check_value(key, value, allowed[key])
        if current is None or repr(current.value) != repr(value):  # Java's NaN equals itself
            records.append(record(alteration, key, value))
    return records


def record(alteration: QuotaAlteration, key: str, value: float, *, remove: bool = False) -> ClientQuotaRecord:
    entity = [
        ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
        for kind, name in sorted(alteration.entity.items())
    ]
    return ClientQuotaRecord(entity=entity, key=key, value=value, remove=remove)


def allowed_quotas(
    entity: Mapping[str, str | None], command: AlterClientQuotas
) -> Mapping[str, tuple[str, float] | None]:
    """Returns the valid quotas of the entity.

    :raises InvalidRequest: the entity is not valid
    """
    for kind, name in entity.items():
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequest(f"Empty {kind} not supported")
    if not entity:
        raise InvalidRequest("Invalid empty client quota entity")
    if IP not in entity:
        return OF_CLIENTS
    if len(entity) > 1:
        raise InvalidRequest("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if entity[IP] in command.unresolvable:
        raise InvalidRequest(f"{entity[IP]} is not a valid IP or resolvable host.")
    return OF_ADDRESSES


def check_value(key: str, value: float, whole: tuple[str, float] | None) -> None:
    """Checks the value of a quota. NaN is valid, as in Apache Kafka; it limits nothing.

    :raises InvalidRequest: the value is 0 or less, or not an integer of the Java type
    """
    if value <= 0:
        raise InvalidRequest(f"Quota {key} must be greater than 0")
    if whole is None or value != value:
        return
    name, largest = whole
    if value > largest:
        raise InvalidRequest(f"Proposed value for {key} is too large for {name}.")
    if abs(int(value + FRACTION) - value) > FRACTION:
        raise InvalidRequest(f"{key} cannot be a fractional value.")
