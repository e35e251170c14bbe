"""GetTelemetrySubscriptions (API key 71): the metrics that a client has to push, and how often (KIP-714).

Knows nothing of how subscriptions are matched. Advertised only where metrics are on.
"""

from collections.abc import Mapping

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.broker.telemetry import ACCEPTED, Telemetry
from barnabas.errors import UnsupportedVersion
from barnabas.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)

UNKNOWN = "unknown"
"""The software name and version of a client that has sent none."""


@api(GetTelemetrySubscriptionsRequest)
def get_telemetry_subscriptions(
    request: GetTelemetrySubscriptionsRequest, context: Context
) -> GetTelemetrySubscriptionsResponse:
    """Returns the subscription of the client. :raises KafkaError: the request is too early"""
    telemetry, session = telemetry_of(context), context.session
    instance = telemetry.ask(bytes(request.client_instance_id), attributes_of(context), session.number, context.time_ms)
    session.on_close(telemetry.disconnected)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.metrics),
    )


def telemetry_of(context: Context) -> Telemetry:
    """Returns the telemetry of the broker. :raises UnsupportedVersion: it has none"""
    telemetry = context.broker.telemetry
    if telemetry is None:
        raise UnsupportedVersion("Metrics are off (barnabas.metrics.listener)")
    return telemetry


def attributes_of(context: Context) -> Mapping[str, str | None]:
    """Returns the attributes of a client that subscriptions match, apart from its instance id."""
    session = context.session
    return {
        "client_id": context.client_id,
        "client_software_name": session.client_software_name or UNKNOWN,
        "client_software_version": session.client_software_version or UNKNOWN,
        "client_source_address": session.client_host,
        "client_source_port": str(session.client_port) if session.client_port else None,
    }
