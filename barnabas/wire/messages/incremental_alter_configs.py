"""IncrementalAlterConfigs (API key 44): change single dynamic configs of resources (KIP-339).

v1 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, string


class IncrementalAlterConfigsRequest(Request, api_key=44, versions="0-1", flexible="1+"):
    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: string
            config_operation: int8  #: 0: set; 1: delete; 2: append; 3: subtract
            value: string | None

        resource_type: int8  #: 2: topic; 4: broker; 8: broker logger; 16: client metrics; 32: group
        resource_name: string
        configs: list[AlterableConfig]

    resources: list[AlterConfigsResource]
    validate_only: bool


class IncrementalAlterConfigsResponse(Response, to=IncrementalAlterConfigsRequest):
    class AlterConfigsResourceResponse(Struct):
        error_code: int16 = 0
        error_message: string | None = None
        resource_type: int8
        resource_name: string

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse]
