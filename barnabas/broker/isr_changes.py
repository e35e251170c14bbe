"""Sends the ISR changes that leaders on this node propose to the controller, and has leaders check their followers.

Knows nothing of how a leader decides which replicas are in sync. Apache Kafka's ``AlterPartitionManager``, and the task
``isr-expiration`` of its ``ReplicaManager``. Imported where a partition has followers.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.image.image import BrokerImage, MetadataImage
from barnabas.cluster.replication.followers import CommittedIsr, IsrChange
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError, OperationNotAttempted
from barnabas.peers.peers import Done, error_of
from barnabas.wire.message import Request
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

logger = logging.getLogger(__name__)

RETRY_S = 0.05
"""How long to wait after an error of the whole request."""

LANE = "isr"

Topic = AlterPartitionRequest.TopicData
Changed = Callable[[CommittedIsr | None, KafkaError | None], object]
Look = Callable[[], object]


class Channel(Protocol):
    """The channel to the active controller."""

    def send(self, request: Request, done: Done, *, timeout_ms: int | None = None, lane: str = "") -> None: ...


class LeadingNode(Protocol):
    """The broker that leads."""

    @property
    def node_id(self) -> int: ...

    @property
    def epoch(self) -> int: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def cluster_clock(self) -> Clock: ...

    @property
    def cluster_scheduler(self) -> Scheduler: ...

    @property
    def image(self) -> MetadataImage: ...

    @property
    def controller_channel(self) -> Channel: ...


class Unsent(NamedTuple):
    """A change that the controller has not answered yet, and the callback for the answer."""

    change: IsrChange
    done: Changed


class IsrChanges:
    """The changes of one node. One request is in flight; the next one has all changes that were proposed meanwhile."""

    def __init__(self, node: LeadingNode) -> None:
        self._node = node
        self._unsent: dict[tuple[bytes, int], Unsent] = {}  # those in flight, too
        self._is_sending = False
        self._timer: Timer | None = None
        self._looks: dict[Look, None] = {}
        self._look_timer: Timer | None = None
        self._is_closed = False

    # ------------------------------------------------------------ for leaders

    @property
    def clock(self) -> Clock:
        return self._node.cluster_clock

    @property
    def brokers(self) -> Mapping[int, BrokerImage]:
        return self._node.image.brokers

    @property
    def broker_epoch(self) -> int:
        return self._node.epoch

    @property
    def lag_time_max(self) -> float:
        """Seconds."""
        return float(self._node.config["replica.lag.time.max.ms"] / 1000)

    def look_at(self, look: Look) -> None:
        """Calls ``look`` twice within ``replica.lag.time.max.ms``."""
        self._looks[look] = None
        if self._look_timer is None and not self._is_closed:
            self._look_timer = self._node.cluster_scheduler.call_later(self.lag_time_max / 2, self._look)

    def look_no_more(self, look: Look) -> None:
        """Stops these calls. The timer runs only while there are any."""
        self._looks.pop(look, None)
        if not self._looks and self._look_timer is not None:
            self._look_timer.cancel()
            self._look_timer = None

    def _look(self) -> None:
        self._look_timer = self._node.cluster_scheduler.call_later(self.lag_time_max / 2, self._look)
        for look in list(self._looks):
            if look in self._looks:
                look()

    def close(self) -> None:
        """Stops sending."""
        self._is_closed = True
        for timer in (self._timer, self._look_timer):
            if timer is not None:
                timer.cancel()

    # ------------------------------------------------------------ requests

    def change_isr(self, change: IsrChange, done: Changed) -> None:
        """Asks the controller for a change, together with all others of this turn of the loop.

        ``done`` gets OPERATION_NOT_ATTEMPTED if a change of the partition from an earlier epoch is still in flight.
        """
        key = (change.topic_id, change.partition)
        if key in self._unsent:
            self._node.cluster_scheduler.call_later(0, done, None, OperationNotAttempted())
            return
        self._unsent[key] = Unsent(change, done)
        self._send_in(0)

    def _send_in(self, seconds: float) -> None:
        if self._unsent and not self._is_sending and self._timer is None and not self._is_closed:
            self._timer = self._node.cluster_scheduler.call_later(seconds, self._send)

    def _send(self) -> None:
        self._timer = None
        in_flight = dict(self._unsent)
        topics: dict[bytes, Topic] = {}
        for change, _ in in_flight.values():
            topic = topics.setdefault(change.topic_id, Topic(topic_id=change.topic_id, partitions=[]))
            topic.partitions.append(_proposed(change))
        request = AlterPartitionRequest(
            broker_id=self._node.node_id, broker_epoch=self._node.epoch, topics=list(topics.values())
        )
        self._is_sending = True
        self._node.controller_channel.send(request, lambda *answer: self._answered(in_flight, *answer), lane=LANE)

    def _answered(
        self,
        in_flight: Mapping[tuple[bytes, int], Unsent],
        response: AlterPartitionResponse | None,
        error: KafkaError | None,
    ) -> None:
        """Passes each partition its result. Changes that the response leaves out are resent."""
        self._is_sending = False
        if self._is_closed:
            return
        if response is not None:
            error = error_of(response.error_code)
        if error is not None or response is None:
            logger.warning("The controller does not change the in-sync replicas: %r", error)
            self._send_in(RETRY_S)
            return
        for key, committed, refusal in _results(response):
            unsent = in_flight.get(key)
            if unsent is not None and self._unsent.pop(key, None) is not None:
                unsent.done(committed, refusal)
        self._send_in(0)


def _proposed(change: IsrChange) -> Topic.PartitionData:
    """Returns the proposed ISR with broker epochs; version 2 has only the broker ids."""
    epochs = [
        Topic.PartitionData.BrokerState(broker_id=broker_id, broker_epoch=epoch)
        for broker_id, epoch in change.isr.items()
    ]
    return Topic.PartitionData(
        partition_index=change.partition,
        leader_epoch=change.leader_epoch,
        new_isr=list(change.isr),
        new_isr_with_epochs=epochs,
        partition_epoch=change.partition_epoch,
    )


def _results(response: Any) -> Iterator[tuple[tuple[bytes, int], CommittedIsr | None, KafkaError | None]]:
    for topic in response.topics:
        for each in topic.partitions:
            error = error_of(each.error_code)
            committed = CommittedIsr(each.leader_epoch, each.partition_epoch, tuple(each.isr))
            yield (topic.topic_id, each.partition_index), committed if error is None else None, error
