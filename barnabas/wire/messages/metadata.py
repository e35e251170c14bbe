"""Metadata (API key 3): brokers, topics, and the leaders and replicas of partitions.

v1 null requests all topics; controller_id, rack, is_internal · v2 cluster_id (KIP-78) · v3 throttle_time_ms · v4
allow_auto_topic_creation · v5 offline_replicas (KIP-112) · v6 throttled after the response (KIP-219) · v7 leader_epoch
(KIP-320) · v8 authorized operations (KIP-430) · v9 flexible · v10 topic ids in the response (KIP-516) · v11 the
cluster's authorized operations went to DescribeCluster (KIP-700) · v12 topics by id in the request · v13 error_code
at the top (KIP-1102)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import ZERO_UUID, int16, int32, string, uuid


class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
    class MetadataRequestTopic(Struct):
        topic_id: uuid = field("10+", default=ZERO_UUID)
        name: string | None = field(nullable="10+")  #: null: requested by id

    topics: list[MetadataRequestTopic] | None = field(
        nullable="1+"
    )  #: null: all; empty: none, except in version 0, where it is all
    allow_auto_topic_creation: bool = field("4+", default=True)
    include_cluster_authorized_operations: bool = field("8-10", default=False)
    include_topic_authorized_operations: bool = field("8+", default=False)


class MetadataResponse(Response, to=MetadataRequest):
    class MetadataResponseBroker(Struct):
        node_id: int32
        host: string
        port: int32
        rack: string | None = field("1+", default=None)

    class MetadataResponseTopic(Struct):
        class MetadataResponsePartition(Struct):
            error_code: int16 = 0
            partition_index: int32
            leader_id: int32  #: -1: none
            leader_epoch: int32 = field("7+", default=-1)
            replica_nodes: list[int32]
            isr_nodes: list[int32]
            offline_replicas: list[int32] = field("5+", default=())

        error_code: int16 = 0
        name: string | None = field(nullable="12+")  #: null: the id is unknown
        topic_id: uuid = field("10+", default=ZERO_UUID)
        is_internal: bool = field("1+", default=False)
        partitions: list[MetadataResponsePartition]
        #: a bit per operation; the minimum integer: not requested
        topic_authorized_operations: int32 = field("8+", default=-0x80000000)

    throttle_time_ms: int32 = field("3+", default=0)
    brokers: list[MetadataResponseBroker]
    cluster_id: string | None = field("2+", default=None)
    controller_id: int32 = field("1+", default=-1)
    topics: list[MetadataResponseTopic]
    #: a bit per operation; the minimum integer: not requested
    cluster_authorized_operations: int32 = field("8-10", default=-0x80000000)
    error_code: int16 = field("13+", default=0)
