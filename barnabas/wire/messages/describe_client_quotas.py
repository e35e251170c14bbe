"""DescribeClientQuotas (API key 48): lists the quotas of the entities that match a filter (KIP-546).

v1 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Request, api_key=48, versions="0-1", flexible="1+"):
    class ComponentData(Struct):
        entity_type: string
        match_type: int8
        match: string | None

    components: list[ComponentData]
    strict: bool


class DescribeClientQuotasResponse(Response, to=DescribeClientQuotasRequest):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: string
            entity_name: string | None

        class ValueData(Struct):
            key: string
            value: float64

        entity: list[EntityData]
        values: list[ValueData]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    entries: list[EntryData] | None
