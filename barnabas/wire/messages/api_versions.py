"""ApiVersions (API key 18): the APIs of a broker and their versions.

v1 throttle_time_ms · v2 throttled after the response (KIP-219) · v3 flexible; the client's name (KIP-511), features
(KIP-584) · v4 features whose lowest version is 0 (KIP-1022) · v5 cluster_id and node_id that the client expects. The
response header is version 0 at every version.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int16, int32, int64, string


class ApiVersionsRequest(Request, api_key=18, versions="0-5", flexible="3+"):
    client_software_name: string = field("3+", default="")  #: letters, digits, dots and dashes
    client_software_version: string = field("3+", default="")
    cluster_id: string | None = field("5+", default=None)  #: expected by the client; null: any
    node_id: int32 = field("5+", default=-1)  #: expected by the client; -1: any


class ApiVersionsResponse(Response, to=ApiVersionsRequest):
    class ApiVersion(Struct):
        api_key: int16
        min_version: int16
        max_version: int16

    class SupportedFeatureKey(Struct):
        name: string
        min_version: int16
        max_version: int16

    class FinalizedFeatureKey(Struct):
        name: string
        max_version_level: int16
        min_version_level: int16

    error_code: int16 = 0
    api_keys: list[ApiVersion]
    throttle_time_ms: int32 = field("1+", default=0)
    supported_features: list[SupportedFeatureKey] = field("3+", tag=0, default=())
    finalized_features_epoch: int64 = field("3+", tag=1, default=-1)  #: -1: unknown
    finalized_features: list[FinalizedFeatureKey] = field("3+", tag=2, default=())
    zk_migration_ready: bool = field("3+", tag=3, default=False)  #: always false since Kafka 4
