"""AddPartitionsToTxn (API key 24): add partitions to a transaction (KIP-98, KIP-890).

v1 throttled after the response (KIP-219) · v2 PRODUCER_FENCED (KIP-588) · v3 flexible · v4 several transactions, and
verify_only, for brokers · v5 TRANSACTION_ABORTABLE, for brokers on behalf of clients
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class AddPartitionsToTxnRequest(Request, api_key=24, versions="0-5", flexible="3+"):
    class AddPartitionsToTxnTopic(Struct):
        name: string
        partitions: list[int32]

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: string
        producer_id: int64
        producer_epoch: int16
        verify_only: bool = False  #: only check whether they are in the transaction
        topics: list["AddPartitionsToTxnRequest.AddPartitionsToTxnTopic"]

    transactions: list[AddPartitionsToTxnTransaction] = field("4+", default=())
    v3_and_below_transactional_id: string = field("0-3", default="")
    v3_and_below_producer_id: int64 = field("0-3", default=0)
    v3_and_below_producer_epoch: int16 = field("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3", default=())


class AddPartitionsToTxnResponse(Response, to=AddPartitionsToTxnRequest):
    class AddPartitionsToTxnTopicResult(Struct):
        class AddPartitionsToTxnPartitionResult(Struct):
            partition_index: int32
            partition_error_code: int16

        name: string
        results_by_partition: list[AddPartitionsToTxnPartitionResult]

    class AddPartitionsToTxnResult(Struct):
        transactional_id: string
        topic_results: list["AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult"]

    throttle_time_ms: int32 = 0
    error_code: int16 = field("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+", default=())
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3", default=())
