"""ListTransactions (API key 66): the transactional ids of a coordinator (KIP-664).

Flexible from the start · v1 duration_filter (KIP-994) · v2 transactional_id_pattern (KIP-1152)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class ListTransactionsRequest(Request, api_key=66, versions="0-2", flexible="0+"):
    state_filters: list[string]  #: empty: all states
    producer_id_filters: list[int64]  #: empty: all producers
    duration_filter: int64 = field("1+", default=-1)  #: open for longer than this, in ms; -1: any
    transactional_id_pattern: string | None = field("2+", default=None)  #: a regular expression of RE2


class ListTransactionsResponse(Response, to=ListTransactionsRequest):
    class TransactionState(Struct):
        transactional_id: string
        producer_id: int64
        transaction_state: string

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    unknown_state_filters: list[string]
    transaction_states: list[TransactionState]
