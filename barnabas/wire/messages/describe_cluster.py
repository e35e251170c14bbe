"""DescribeCluster (API key 60): the nodes of the cluster (KIP-700).

v1 endpoint_type: brokers or controllers (KIP-919) · v2 fenced brokers (KIP-1073)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class DescribeClusterRequest(Request, api_key=60, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool
    endpoint_type: int8 = field("1+", default=1)  #: 1: brokers; 2: controllers
    include_fenced_brokers: bool = field("2+", default=False)


class DescribeClusterResponse(Response, to=DescribeClusterRequest):
    class DescribeClusterBroker(Struct):
        broker_id: int32
        host: string
        port: int32
        rack: string | None = None
        is_fenced: bool = field("2+", default=False)

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    endpoint_type: int8 = field("1+", default=1)
    cluster_id: string
    controller_id: int32 = -1
    brokers: list[DescribeClusterBroker]
    #: a bit per operation; the minimum integer: not requested
    cluster_authorized_operations: int32 = -0x80000000
