"""AlterClientQuotas (API key 49): sets and removes quotas of entities (KIP-546).

v1 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import float64, int16, int32, string


class AlterClientQuotasRequest(Request, api_key=49, versions="0-1", flexible="1+"):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: string
            entity_name: string | None

        class OpData(Struct):
            key: string
            value: float64
            remove: bool

        entity: list[EntityData]
        ops: list[OpData]

    entries: list[EntryData]
    validate_only: bool


class AlterClientQuotasResponse(Response, to=AlterClientQuotasRequest):
    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: string
            entity_name: string | None

        error_code: int16 = 0
        error_message: string | None = None
        entity: list[EntityData]

    throttle_time_ms: int32 = 0
    entries: list[EntryData]
