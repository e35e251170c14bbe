"""GetTelemetrySubscriptions (API key 71): which of its metrics a client shall push, and how often (KIP-714).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Request, api_key=71, versions="0", flexible="0+"):
    client_instance_id: uuid  #: zeros: the client has none yet


class GetTelemetrySubscriptionsResponse(Response, to=GetTelemetrySubscriptionsRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    client_instance_id: uuid
    subscription_id: int32
    accepted_compression_types: list[int8]  #: the preferred first
    push_interval_ms: int32
    telemetry_max_bytes: int32
    delta_temporality: bool  #: whether sums are deltas, or cumulative
    requested_metrics: list[string]  #: prefixes of names; "*" alone: all metrics; none: no pushes
