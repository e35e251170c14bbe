"""WriteTxnMarkers (API key 27): write the markers that end transactions to partitions; for brokers (KIP-98).

v1 flexible · v2 transaction_version (KIP-1228)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Request, api_key=27, versions="1-2", flexible="1+"):
    class WritableTxnMarker(Struct):
        class WritableTxnMarkerTopic(Struct):
            name: string
            partition_indexes: list[int32]

        producer_id: int64
        producer_epoch: int16
        transaction_result: bool  #: true: commit
        topics: list[WritableTxnMarkerTopic]
        coordinator_epoch: int32
        transaction_version: int8 = field("2+", default=0)  #: 2: the marker's epoch is above that of the records

    markers: list[WritableTxnMarker]


class WriteTxnMarkersResponse(Response, to=WriteTxnMarkersRequest):
    class WritableTxnMarkerResult(Struct):
        class WritableTxnMarkerTopicResult(Struct):
            class WritableTxnMarkerPartitionResult(Struct):
                partition_index: int32
                error_code: int16

            name: string
            partitions: list[WritableTxnMarkerPartitionResult]

        producer_id: int64
        topics: list[WritableTxnMarkerTopicResult]

    markers: list[WritableTxnMarkerResult]
