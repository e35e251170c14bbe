"""DescribeTransactions (API key 65): the states of transactional ids (KIP-664).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int16, int32, int64, string


class DescribeTransactionsRequest(Request, api_key=65, versions="0", flexible="0+"):
    transactional_ids: list[string]


class DescribeTransactionsResponse(Response, to=DescribeTransactionsRequest):
    class TransactionState(Struct):
        class TopicData(Struct):
            topic: string
            partitions: list[int32]

        error_code: int16 = 0
        transactional_id: string
        transaction_state: string
        transaction_timeout_ms: int32
        transaction_start_time_ms: int64  #: -1: no transaction is open
        producer_id: int64
        producer_epoch: int16
        topics: list[TopicData]  #: the partitions of the open transaction

    throttle_time_ms: int32 = 0
    transaction_states: list[TransactionState]
