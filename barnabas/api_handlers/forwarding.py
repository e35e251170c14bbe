"""Forwards a client's request to the active controller, and the response to the client.

Knows nothing of any API. Imported on nodes that are not the active controller. Apache Kafka's ``ForwardingManager`` and
``KafkaApis.forwardToController`` (KIP-590).
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import resolve_with_error
from barnabas.api_handlers.registry import FORWARDABLE, Api
from barnabas.broker.envelopes import Sender, enveloped, opened
from barnabas.errors import (
    CloseConnection,
    KafkaError,
    MalformedMessage,
    NetworkException,
    RequestTimedOut,
    UnknownServerError,
    UnsupportedVersion,
)
from barnabas.peers.peers import ApiVersions
from barnabas.wire.message import Request
from barnabas.wire.messages.envelope import EnvelopeResponse
from barnabas.wire.schema import Versions

logger = logging.getLogger(__name__)

TIMEOUT_MS = 60_000
"""How long to look for the active controller and wait for its response (``BrokerServer``: the forwarding channel)."""

LANE = "forwarding"
NO_VERSION = 0, -1


def sender_of(context: Context) -> Sender:
    """Returns the sender of the current request."""
    session = context.session
    return Sender(session.principal, session.client_host, session.by_token, context.client_id, context.correlation_id)


def answerable(apis: Mapping[int, Api], controllers: ApiVersions | None) -> dict[int, Api]:
    """Returns the APIs that a broker advertises: forwarded APIs only in versions that the active controller has as
    well.

    Apache Kafka's ``ApiVersionsResponse.intersectForwardableApis``. While the controller's versions are not known, the
    broker advertises its own.
    """
    if controllers is None:
        return dict(apis)
    found = {}
    for key, each in apis.items():
        if key in FORWARDABLE:
            first, last = controllers.get(key, NO_VERSION)
            common = Versions(max(first, each.versions.first), min(last, each.versions.last))
            if common.first > common.last:
                continue
            each = each.within(common)
        found[key] = each
    return found


def forward(request: Request, context: Context) -> Any:
    """Returns the response of the active controller, which comes later; REQUEST_TIMED_OUT if there is none in time.

    If the controller does not know the version, the client's connection is closed: it then sends ApiVersions again.
    """
    later: Later[Any] = Later()
    envelope = enveloped(request, context.api_version, sender_of(context))
    answered = partial(_answered, later, request, context)
    context.broker.controller_channel.send(envelope, answered, timeout_ms=TIMEOUT_MS, lane=LANE)
    return later if later.response is None else later.response


def _answered(
    later: Later[Any], request: Request, context: Context, envelope: EnvelopeResponse | None, error: KafkaError | None
) -> None:
    version = context.api_version
    if isinstance(error, NetworkException):
        later.resolve(CloseConnection("this node stops"))
    elif envelope is None:
        logger.warning("Cannot forward %s version %d to the controller: %s", type(request).__name__, version, error)
        lasting = RequestTimedOut() if isinstance(error, RequestTimedOut) else UnknownServerError()
        resolve_with_error(later, request, lasting, version)
    elif envelope.error_code == UnsupportedVersion.code:
        later.resolve(CloseConnection(f"the controller does not answer {type(request).__name__} version {version}"))
    else:
        try:
            response = opened(envelope, type(request), version, context.correlation_id)
        except (KafkaError, MalformedMessage) as failure:
            logger.warning("The controller cannot answer %s version %d: %s", type(request).__name__, version, failure)
            resolve_with_error(later, request, UnknownServerError(), version)
        else:
            if context.meter is not None:
                context.meter.throttle(getattr(response, "throttle_time_ms", 0))
            later.resolve(response)
