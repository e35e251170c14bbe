"""The registration of one controller with the active one, which may be itself.

Knows nothing of how a request reaches the active controller. Apache Kafka's ``ControllerRegistrationManager``
(KIP-919).
"""

import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.cluster.features import CONTROLLER_REGISTRATION, METADATA_VERSION
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import KafkaError
from barnabas.peers.peers import Done, error_of
from barnabas.wire.message import Request
from barnabas.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

logger = logging.getLogger(__name__)

LANE = "controller-registration"


class Channel(Protocol):
    """The channel to the active controller (:class:`barnabas.broker.controller_channel.ControllerChannel`)."""

    def send(self, request: Request, done: Done, *, timeout_ms: int | None = None, lane: str = "") -> None: ...


class ControllerRegistration:
    """Registers the controller whenever the metadata does not have this incarnation of it.

    :param done: called once, with the first result: the controller is registered, it was refused, or
        ``metadata.version`` has no registrations of controllers
    """

    def __init__(
        self,
        request: ControllerRegistrationRequest,
        channel: Channel,
        done: Callable[[KafkaError | None], object],
    ) -> None:
        self._request = request
        self._channel = channel
        self._done = done
        self._is_sent = False

    def follow(self, image: MetadataImage) -> None:
        """Sends the registration if it is missing in a committed image.

        A new cluster has no ``metadata.version`` until the first leader of its quorum has written it.
        """
        if self._is_sent or METADATA_VERSION not in image.features:
            return
        known = image.controllers.get(self._request.controller_id)
        is_known = known is not None and known.incarnation_id == self._request.incarnation_id
        if is_known or image.metadata_version < CONTROLLER_REGISTRATION:
            self._end(None)
            return
        self._is_sent = True

        def answered(response: ControllerRegistrationResponse | None, error: KafkaError | None) -> None:
            self._is_sent = False
            if response is not None:
                error = error_of(response.error_code, response.error_message)
            self._end(error)

        self._channel.send(self._request, answered, lane=LANE)

    def _end(self, error: KafkaError | None) -> None:
        done, self._done = self._done, log_failure
        done(error)


def log_failure(error: KafkaError | None) -> None:
    """Logs why this controller is not registered."""
    if error is not None:
        logger.warning("Cannot record the registration of this controller: %s", error)
