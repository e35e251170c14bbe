"""ListConfigResources (API key 74): the resources that have configs, by type.

v0 ListClientMetricsResources (KIP-1000): client metrics only · v1 all types (KIP-1142)
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class ListConfigResourcesRequest(Request, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int8] = field("1+", default=())  #: empty: all


class ListConfigResourcesResponse(Response, to=ListConfigResourcesRequest):
    class ConfigResource(Struct):
        resource_name: string
        resource_type: int8 = field("1+", default=16)  #: 16: client metrics; the others as in DescribeConfigs

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    config_resources: list[ConfigResource]
