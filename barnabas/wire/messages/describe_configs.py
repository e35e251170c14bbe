"""DescribeConfigs (API key 32): the configs of topics, brokers and groups, with their sources (KIP-133).

v1 synonyms, config_source (KIP-226) · v2 throttled after the response (KIP-219) · v3 types and documentation (KIP-569)
· v4 flexible
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class DescribeConfigsRequest(Request, api_key=32, versions="0-4", flexible="4+"):
    class DescribeConfigsResource(Struct):
        resource_type: int8  #: 2: topic; 4: broker; 8: broker logger; 16: client metrics; 32: group
        resource_name: string
        configuration_keys: list[string] | None  #: null: all

    resources: list[DescribeConfigsResource]
    include_synonyms: bool = field("1+", default=False)
    include_documentation: bool = field("3+", default=False)


class DescribeConfigsResponse(Response, to=DescribeConfigsRequest):
    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name: string
                value: string | None
                source: int8

            name: string
            value: string | None  #: null if it is sensitive
            read_only: bool
            is_default: bool = field("0", default=False)
            #: 1: topic; 2: dynamic broker; 3: dynamic default broker; 4: static broker; 5: default; 6: dynamic
            #: broker logger; 7: client metrics; 8: group
            config_source: int8 = field("1+", default=-1)
            is_sensitive: bool
            synonyms: list[DescribeConfigsSynonym] = field("1+", default=())
            #: 0: unknown; 1: boolean; 2: string; 3: int; 4: short; 5: long; 6: double; 7: list; 8: class; 9:
            #: password
            config_type: int8 = field("3+", default=0)
            documentation: string | None = field("3+", default="")

        error_code: int16 = 0
        error_message: string | None = None
        resource_type: int8
        resource_name: string
        configs: list[DescribeConfigsResourceResult]

    throttle_time_ms: int32 = 0
    results: list[DescribeConfigsResult]
