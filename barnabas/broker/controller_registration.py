"""The registration of one controller with the active one, which may be itself.

Knows nothing of how a request reaches the active controller. Apache Kafka's ``ControllerRegistrationManager``
(KIP-919).
"""

import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.cluster.features import CONTROLLER_REGISTRATION
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
    """Registers the controller whenever the metadata does not have this incarnation of it."""

    def __init__(self, request: ControllerRegistrationRequest, channel: Channel) -> None:
        self._request = request
        self._channel = channel
        self._is_sent = False

    def follow(self, image: MetadataImage, done: Callable[[KafkaError | None], object]) -> None:
        """Sends the registration if it is missing in a committed image.

        :param done: called when the controller is registered; at once if it is, or if the metadata version has no
            registrations of controllers
        """
        known = image.controllers.get(self._request.controller_id)
        is_known = known is not None and known.incarnation_id == self._request.incarnation_id
        if is_known or self._is_sent or image.metadata_version < CONTROLLER_REGISTRATION:
            done(None)
            return
        self._is_sent = True

        def answered(response: ControllerRegistrationResponse | None, error: KafkaError | None) -> None:
            self._is_sent = False
            if response is not None:
                error = error_of(response.error_code, response.error_message)
            done(error)

        self._channel.send(self._request, answered, lane=LANE)
