"""PushTelemetry (API key 72): metrics of a client, in OTLP (KIP-714).

Flexible from the start.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.types import int8, int16, int32, uuid


class PushTelemetryRequest(Request, api_key=72, versions="0", flexible="0+"):
    client_instance_id: uuid
    subscription_id: int32
    terminating: bool  #: the client is about to end, and pushes for the last time
    compression_type: int8
    metrics: bytes  #: MetricsData of OpenTelemetry


class PushTelemetryResponse(Response, to=PushTelemetryRequest):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
