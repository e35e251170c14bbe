"""UpdateFeatures (API key 57): raise or lower the finalized levels of features (KIP-584).

Flexible from the start · v1 validate_only, upgrade_type in place of allow_downgrade (KIP-778) · v2 one error for all
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import int8, int16, int32, string


class UpdateFeaturesRequest(Request, api_key=57, versions="0-2", flexible="0+"):
    class FeatureUpdateKey(Struct):
        feature: string
        max_version_level: int16  #: below 1: remove the finalized feature
        allow_downgrade: bool = field("0", default=False)
        upgrade_type: int8 = field("1+", default=1)  #: 1 upgrade, 2 safe downgrade, 3 unsafe downgrade

    timeout_ms: int32 = 60_000
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool = field("1+", default=False)


class UpdateFeaturesResponse(Response, to=UpdateFeaturesRequest):
    class UpdatableFeatureResult(Struct):
        feature: string
        error_code: int16
        error_message: string | None

    throttle_time_ms: int32 = 0
    error_code: int16
    error_message: string | None
    results: list[UpdatableFeatureResult] = field("0-1", default=())
