"""PushTelemetry (API key 72): receives the metrics of a client (KIP-714).

Knows nothing of their contents. Advertised only where metrics are on.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.get_telemetry_subscriptions import attributes_of, telemetry_of
from barnabas.api_handlers.registry import api
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


@api(PushTelemetryRequest)
def push_telemetry(request: PushTelemetryRequest, context: Context) -> PushTelemetryResponse:
    """Receives the metrics that a client pushes. :raises KafkaError: they are refused"""
    telemetry, session = telemetry_of(context), context.session
    session.on_close(telemetry.disconnected)
    telemetry.push(
        bytes(request.client_instance_id),
        attributes_of(context),
        session.number,
        context.time_ms,
        subscription=request.subscription_id,
        terminating=request.terminating,
        codec=request.compression_type,
        metrics=request.metrics,
    )
    return PushTelemetryResponse()
