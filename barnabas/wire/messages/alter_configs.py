"""AlterConfigs (API key 33): replace all dynamic configs of resources (KIP-133).

v1 throttled after the response (KIP-219) · v2 flexible. Superseded by IncrementalAlterConfigs.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, string


class AlterConfigsRequest(Request, api_key=33, versions="0-2", flexible="2+"):
    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: string
            value: string | None

        resource_type: int8  #: 2: topic; 4: broker; 8: broker logger; 16: client metrics; 32: group
        resource_name: string
        configs: list[AlterableConfig]

    resources: list[AlterConfigsResource]
    validate_only: bool


class AlterConfigsResponse(Response, to=AlterConfigsRequest):
    class AlterConfigsResourceResponse(Struct):
        error_code: int16 = 0
        error_message: string | None = None
        resource_type: int8
        resource_name: string

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse]
