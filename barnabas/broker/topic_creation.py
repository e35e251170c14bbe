"""Asks the active controller on another node to create topics that a client or a coordinator needs.

Knows nothing of what the topics are for. Apache Kafka's ``AutoTopicCreationManager`` and ``KRaftTopicCreator``.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.envelopes import Sender, enveloped, opened
from barnabas.broker.environment import Created
from barnabas.cluster.controller.commands.topics import CreatedTopic, NewTopic
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError, MalformedMessage, UnknownServerError
from barnabas.peers.peers import error_of
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.envelope import EnvelopeResponse

logger = logging.getLogger(__name__)

TIMEOUT_MS = 60_000
"""How long to look for the active controller and wait for its response (``BrokerServer``: the forwarding channel)."""

LANE = "forwarding"
VERSION = CreateTopicsRequest.versions.last


class TopicCreation:
    """The topics whose creation one broker has requested.

    :param settings: returns the broker's configs; ``num.partitions`` and ``default.replication.factor`` count if set
    """

    def __init__(self, channel: ControllerChannel, settings: Callable[[], BrokerConfig]) -> None:
        self._channel = channel
        self._settings = settings
        self._in_flight: set[str] = set()

    def create(self, wanted: Sequence[NewTopic], sender: Sender | None, done: Created) -> None:
        """Requests the topics that are not being requested already. ``done`` gets the results of these alone.

        :param sender: the client whose rights and quotas count; None for the broker itself
        """
        new = [topic for topic in wanted if topic.name not in self._in_flight]
        if not new:
            done([], None)
            return
        self._in_flight.update(topic.name for topic in new)
        request = CreateTopicsRequest(
            topics=[self._creatable(topic) for topic in new],
            timeout_ms=self._settings()["request.timeout.ms"],
            validate_only=False,
        )
        answered = partial(self._answered, new, sender, done)
        message = request if sender is None else enveloped(request, VERSION, sender)
        self._channel.send(message, answered, timeout_ms=TIMEOUT_MS, lane=LANE)

    def _creatable(self, topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
        return CreateTopicsRequest.CreatableTopic(
            name=topic.name,
            num_partitions=self._own(topic.num_partitions, "num.partitions"),
            replication_factor=self._own(topic.replication_factor, "default.replication.factor"),
            assignments=[],
            configs=[
                CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name=name, value=value)
                for name, value in topic.configs
            ],
        )

    def _own(self, number: int, config: str) -> int:
        """Returns the number that was requested, or else this broker's default if one is set. -1 leaves it to the
        controller.
        """
        settings = self._settings()
        return int(settings[config]) if number == -1 and config in settings.originals else number

    def _answered(
        self,
        requested: Sequence[NewTopic],
        sender: Sender | None,
        done: Created,
        response: Any,
        error: KafkaError | None,
    ) -> None:
        self._in_flight.difference_update(topic.name for topic in requested)
        if error is not None:
            done(None, error)
            return
        try:
            if isinstance(response, EnvelopeResponse):
                assert sender is not None
                response = opened(response, CreateTopicsRequest, VERSION, sender.correlation_id)
        except (KafkaError, MalformedMessage) as failure:
            logger.warning(
                "The controller does not create %s: %s", ", ".join(topic.name for topic in requested), failure
            )
            done(None, UnknownServerError())
            return
        done([_created(each) for each in response.topics], None)


def _created(result: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    return CreatedTopic(
        result.name,
        error_of(result.error_code, result.error_message),
        result.topic_id,
        result.num_partitions,
        result.replication_factor,
    )
