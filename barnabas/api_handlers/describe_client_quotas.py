"""DescribeClientQuotas (API key 48): the quotas of the entities that match a filter (KIP-546).

Knows nothing of how quotas are enforced. Rules of Apache Kafka's ``ClientQuotasImage``.
"""

from collections.abc import Mapping, Sequence

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.image.image import QuotaEntity
from barnabas.errors import InvalidRequest, KafkaError, UnsupportedVersion
from barnabas.security.quotas.entities import CLIENT_ID, IP, USER
from barnabas.wire.message import Response
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse

Entry = DescribeClientQuotasResponse.EntryData
Component = DescribeClientQuotasRequest.ComponentData

EXACT, DEFAULT, ANY = range(3)
MATCH_TYPES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", ANY: "MATCH_TYPE_SPECIFIED"}

Filter = Mapping[str, tuple[bool, str] | None]
"""By type, the name that an entity must have, as in the image; None matches any."""


@api(DescribeClientQuotasRequest)
def describe_client_quotas(request: DescribeClientQuotasRequest, context: Context) -> DescribeClientQuotasResponse:
    """Lists the quotas that are set. An entity may have parts of other types, unless the request is strict."""
    wanted = checked(request.components)
    found: dict[QuotaEntity, Entry] = {}
    for (entity, key), record in context.broker.image.quotas.items():
        if matches(entity, wanted, strict=request.strict):
            entry = found.get(entity)
            if entry is None:
                entry = found[entity] = Entry(entity=parts(entity), values=[])
            entry.values.append(Entry.ValueData(key=key, value=record.value))
    return DescribeClientQuotasResponse(error_message="", entries=list(found.values()))


@error_shape(DescribeClientQuotasRequest)
def refused(request: DescribeClientQuotasRequest, error: KafkaError, version: int) -> Response:
    """Refuses the request. The array of entries is null, not empty."""
    return derived(request, error, version, entries=None)


def parts(entity: QuotaEntity) -> list[Entry.EntityData]:
    return [
        Entry.EntityData(entity_type=kind, entity_name=name if has_name else None) for kind, has_name, name in entity
    ]


def matches(entity: QuotaEntity, wanted: Filter, *, strict: bool) -> bool:
    has = {kind: (has_name, name) for kind, has_name, name in entity}
    if strict and (len(has) != len(wanted) or not wanted):
        return False
    return all(kind in has and match in (None, has[kind]) for kind, match in wanted.items())


def checked(components: Sequence[Component]) -> Filter:
    """Returns the filter of a request.

    :raises InvalidRequest: the entity types of the components are empty, repeated, or cannot be combined; or a match
        type has a wrong match string
    :raises UnsupportedVersion: a type is unknown
    """
    wanted: dict[str, tuple[bool, str] | None] = {}
    for each in components:
        kind = each.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind in wanted:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"Unsupported entity type {kind}")
        wanted[kind] = match_of(each)
    if IP in wanted and len(wanted) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return wanted


def match_of(component: Component) -> tuple[bool, str] | None:
    how, match = component.match_type, component.match
    name = MATCH_TYPES.get(how)
    if name is None:
        raise InvalidRequest(f"Unknown match type {how}")
    if how == EXACT:
        if match is None:
            raise InvalidRequest(f"Request specified {name}, but set match string to null.")
        return True, match
    if match is not None:
        raise InvalidRequest(f"Request specified {name}, but also specified a match string.")
    return (False, "") if how == DEFAULT else None
