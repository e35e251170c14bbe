"""The persister of share partition state: sends requests to the share coordinators.

Knows nothing of how a share coordinator stores the state. Model: Apache Kafka's ``DefaultStatePersister`` and
``PersisterStateManager`` (KIP-932).
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, NamedTuple, Protocol

from barnabas.broker.leaders import CoordinatorTerm, coordinator_of, coordinator_term
from barnabas.clock import Scheduler, Timer
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NetworkException,
    NotCoordinator,
    RequestTimedOut,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.peers.peers import Peers, error_of
from barnabas.share.gathering import Done
from barnabas.share.messages import (
    Outcome,
    Outcomes,
    SharePartitionKey,
    SharePartitionState,
    StateBatch,
    TopicPartition,
)
from barnabas.share.records import coordinator_key
from barnabas.wire.message import Request
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest

LANE = "persister"

logger = logging.getLogger(__name__)

SHARE = 2
"""The type of the key in FindCoordinator."""

RETRIED = frozenset({
    CoordinatorNotAvailable, CoordinatorLoadInProgress, NotCoordinator, UnknownTopicOrPartition,
    NetworkException, RequestTimedOut,
})  # fmt: skip
"""Errors after which the coordinator is looked up again, and the request retried."""

ATTEMPTS = 5
BACKOFF_S, LONGEST_BACKOFF_S, JITTER = 1.0, 30.0, 0.2
"""The delay before the n-th retry is ``BACKOFF_S`` times two to the n-th, plus or minus the jitter."""

NO_EPOCH = -1

Fields = Callable[[], Any]
"""Returns the fields of a request for a partition, as of now."""

DONE = Outcome(None)
"""The outcome of a successful request that returns no state."""


class Node(Protocol):
    """The part of the broker that is used here."""

    @property
    def node_id(self) -> int: ...

    @property
    def image(self) -> MetadataImage: ...

    @property
    def peers(self) -> Peers: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def random(self) -> Random: ...


class Rpc(NamedTuple):
    """One of the five requests. They all list partitions by topic, with different fields."""

    request: Any
    topic: Any
    partition: Any
    state: Callable[[Any], SharePartitionState] | None
    """Returns the state in the result of a partition; None where there is none."""


def _state(result: Any) -> SharePartitionState:
    return SharePartitionState(
        state_epoch=result.state_epoch,
        start_offset=result.start_offset,
        batches=tuple(
            StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in result.state_batches
        ),
    )


def _summary(result: Any) -> SharePartitionState:
    return SharePartitionState(
        result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count
    )


def _rpc(request: Any, topic: Any, state: Callable[[Any], SharePartitionState] | None = None) -> Rpc:
    return Rpc(request, topic, topic.PartitionData, state)


INITIALIZE = _rpc(InitializeShareGroupStateRequest, InitializeShareGroupStateRequest.InitializeStateData)
READ = _rpc(ReadShareGroupStateRequest, ReadShareGroupStateRequest.ReadStateData, _state)
WRITE = _rpc(WriteShareGroupStateRequest, WriteShareGroupStateRequest.WriteStateData)
SUMMARY = _rpc(ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryRequest.ReadStateSummaryData, _summary)
DELETE = _rpc(DeleteShareGroupStateRequest, DeleteShareGroupStateRequest.DeleteStateData)


class Progress(NamedTuple):
    """How far a share partition has come."""

    start_offset: int
    delivery_complete_count: int


class Call:
    """One call of the persister, about some partitions of a group.

    :param term: that of the group coordinator which has made the call; None if another has
    """

    def __init__(
        self,
        rpc: Rpc,
        group_id: str,
        partitions: Mapping[TopicPartition, Fields],
        done: Done,
        term: CoordinatorTerm | None = None,
    ) -> None:
        self.rpc = rpc
        self.group_id = group_id
        self.partitions = partitions
        self.term = term
        self.done = done
        self._outcomes: Outcomes = {}

    def settle(self, partition: TopicPartition, outcome: Outcome) -> None:
        """Stores the outcome of one partition. After the last one the call is done."""
        self._outcomes[partition] = outcome
        if len(self._outcomes) == len(self.partitions):
            self.done({each: self._outcomes[each] for each in self.partitions})


class Attempt(NamedTuple):
    """The partitions of a call that have no outcome yet, and the number of this attempt."""

    call: Call
    partitions: Sequence[TopicPartition]
    number: int = 1

    def of(self, partitions: Sequence[TopicPartition]) -> "Attempt":
        """Returns the attempt, for some of its partitions."""
        return self if len(partitions) == len(self.partitions) else self._replace(partitions=partitions)

    def end(self, error: KafkaError) -> None:
        """Ends the attempt without another one."""
        for each in self.partitions:
            self.call.settle(each, Outcome(error))


class Persister:
    """The persister of one node. Each call has one callback, which gets the outcomes of all partitions, maybe later."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._channels: dict[tuple[int, Rpc], Channel] = {}
        self._timers: set[Timer] = set()
        #: Called with a group and partitions whose state this node has initialized anew, or deleted.
        self.on_change: Callable[[str, Iterable[TopicPartition]], object] = lambda group_id, partitions: None

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done
    ) -> None:
        """Creates states of that epoch.

        :param partitions: topic id -> partition -> start offset; -1 where ``share.auto.offset.reset`` decides
        """
        wanted = {
            (topic_id, index): partial(
                INITIALIZE.partition, partition=index, state_epoch=state_epoch, start_offset=start_offset
            )
            for topic_id, starts in partitions.items()
            for index, start_offset in starts.items()
        }
        self._begin(Call(INITIALIZE, group_id, wanted, partial(self._changed, group_id, done), self._term_of(group_id)))

    def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, done: Done) -> None:
        """Reads the whole state on behalf of the leader of that epoch, and fences earlier leaders."""
        wanted = {(topic_id, partition): partial(READ.partition, partition=partition, leader_epoch=leader_epoch)}
        self._begin(Call(READ, group_id, wanted, done))

    def write(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        progress: Callable[[], Progress],
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        """Writes the state of some records. FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH: the caller has been replaced.

        :param progress: called for each attempt: others may have been written since the first one, and the share
            coordinator moves the start offset to where a write has it, forward or back
        """

        def fields() -> Any:
            start_offset, delivery_complete_count = progress()
            return WRITE.partition(
                partition=partition,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                state_batches=[
                    WRITE.partition.StateBatch(
                        first_offset=first, last_offset=last, delivery_state=delivery_state, delivery_count=count
                    )
                    for first, last, delivery_state, count in batches
                ],
            )

        self._begin(Call(WRITE, group_id, {(topic_id, partition): fields}, done))

    def summary(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Reads epochs, start offset and delivery complete count; UNINITIALIZED where there is no state."""
        wanted = {each: partial(SUMMARY.partition, partition=each[1], leader_epoch=NO_EPOCH) for each in partitions}
        self._begin(Call(SUMMARY, group_id, wanted, done))

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Deletes the states. It is no error if there is none."""
        wanted = {each: partial(DELETE.partition, partition=each[1]) for each in partitions}
        self._begin(Call(DELETE, group_id, wanted, partial(self._changed, group_id, done), self._term_of(group_id)))

    def close(self) -> None:
        """Stops retrying. The callbacks of calls that wait for a retry are not called."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _changed(self, group_id: str, done: Done, outcomes: Outcomes) -> None:
        self.on_change(group_id, outcomes)
        done(outcomes)

    # ------------------------------------------------------------ requests

    def _begin(self, call: Call) -> None:
        if call.partitions:
            self._ask(Attempt(call, list(call.partitions)))
        else:
            call.done({})

    def _term_of(self, group_id: str) -> CoordinatorTerm:
        return coordinator_term(self._node.image, CONSUMER_OFFSETS, group_id)

    def _is_current(self, call: Call) -> bool:
        return call.term is None or call.term == self._term_of(call.group_id)

    def _ask(self, attempt: Attempt) -> None:
        """Sends requests to the coordinators that the metadata has, and looks up the others."""
        image, call = self._node.image, attempt.call
        by_node: dict[int, list[TopicPartition]] = {}
        unknown: dict[str, TopicPartition] = {}
        for each in attempt.partitions:
            key = coordinator_key(SharePartitionKey(call.group_id, *each))
            node_id = coordinator_of(image, SHARE_GROUP_STATE, key)
            if node_id is None:
                unknown[key] = each
            else:
                by_node.setdefault(node_id, []).append(each)
        if unknown:
            self._find_coordinators(attempt, unknown)
        for node_id, partitions in by_node.items():
            self._channel(node_id, call.rpc).send(attempt.of(partitions))

    def _find_coordinators(self, attempt: Attempt, keys: Mapping[str, TopicPartition]) -> None:
        """Looks up the coordinators of these keys, which creates the internal topic if there is none."""
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=list(keys))
        self._node.peers.send(self._node.node_id, request, partial(self._found, attempt, keys), lane=LANE)

    def _found(
        self,
        attempt: Attempt,
        keys: Mapping[str, TopicPartition],
        response: FindCoordinatorResponse | None,
        error: KafkaError | None,
    ) -> None:
        if response is None:
            self._settle(attempt, dict.fromkeys(keys.values(), Outcome(error or UnknownServerError())))
            return
        failures: Outcomes = {}
        for coordinator in response.coordinators:
            partition = keys[coordinator.key]
            error = error_of(coordinator.error_code, coordinator.error_message)
            if error is None:
                self._channel(coordinator.node_id, attempt.call.rpc).send(attempt.of([partition]))
            else:
                failures[partition] = Outcome(error)
        self._settle(attempt, failures)

    def _channel(self, node_id: int, rpc: Rpc) -> "Channel":
        channel = self._channels.get((node_id, rpc))
        if channel is None:
            send = partial(self._node.peers.send, node_id, lane=LANE)
            channel = self._channels[node_id, rpc] = Channel(rpc, send, self._settle, self._is_current)
        return channel

    def _settle(self, attempt: Attempt, outcomes: Outcomes) -> None:
        """Passes outcomes on to the call. Retriable errors cause another attempt instead."""
        call, retried = attempt.call, []
        for partition, outcome in outcomes.items():
            if type(outcome.error) in RETRIED and attempt.number < ATTEMPTS:
                retried.append(partition)
            else:
                call.settle(partition, outcome)
        if retried:
            self._retry(attempt.of(retried))

    def _retry(self, attempt: Attempt) -> None:
        name, call = attempt.call.rpc.request.__name__, attempt.call
        logger.debug("%s of share group %s: %d partitions to retry", name, call.group_id, len(attempt.partitions))
        jitter = self._node.random.uniform(1 - JITTER, 1 + JITTER)
        backoff = min(BACKOFF_S * 2**attempt.number * jitter, LONGEST_BACKOFF_S)

        def ask() -> None:
            self._timers.discard(timer)
            self._ask(attempt._replace(number=attempt.number + 1))

        timer = self._node.scheduler.call_later(backoff, ask)
        self._timers.add(timer)


class Channel:
    """Requests of one kind to one node, one at a time, so that writes of a share partition keep their order.

    While a request is in flight, others are queued; those of the same group are then sent as one. A call whose group
    coordinator has been replaced is not sent: the next one makes its own, and a late one would undo what came after.
    """

    def __init__(
        self,
        rpc: Rpc,
        send: Callable[[Request, Callable[[Any, KafkaError | None], object]], object],
        settle: Callable[[Attempt, Outcomes], object],
        is_current: Callable[[Call], bool],
    ) -> None:
        self._rpc = rpc
        self._send = send
        self._settle = settle
        self._is_current = is_current
        self._queue: deque[Attempt] = deque()
        self._is_busy = False

    def send(self, attempt: Attempt) -> None:
        """Sends the request of the attempt, after those in the queue."""
        self._queue.append(attempt)
        self._send_next()

    def _send_next(self) -> None:
        while self._queue and not self._is_busy:
            current: list[Attempt] = []
            ended: list[Attempt] = []
            for attempt in self._take():
                (current if self._is_current(attempt.call) else ended).append(attempt)
            if current:
                self._is_busy = True
                self._send_all(current)
            for attempt in ended:
                attempt.end(NotCoordinator())

    def _send_all(self, attempts: Sequence[Attempt]) -> None:
        """Sends attempts of one group in one request."""
        rpc, group_id = self._rpc, attempts[0].call.group_id
        topics: dict[bytes, list[Any]] = {}
        for attempt in attempts:
            for each in attempt.partitions:
                topics.setdefault(each[0], []).append(attempt.call.partitions[each]())
        request = rpc.request(
            group_id=group_id,
            topics=[rpc.topic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
        )
        self._send(request, partial(self._received, attempts))

    def _take(self) -> list[Attempt]:
        """Takes the first attempt, and the others of its group, no partition twice, since the order has to be kept."""
        if len(self._queue) == 1:
            return [self._queue.popleft()]
        group_id = self._queue[0].call.group_id
        taken: list[Attempt] = []
        left: deque[Attempt] = deque()
        seen: set[TopicPartition] = set()
        for attempt in self._queue:
            is_taken = attempt.call.group_id == group_id and seen.isdisjoint(attempt.partitions)
            (taken if is_taken else left).append(attempt)
            if attempt.call.group_id == group_id:
                seen.update(attempt.partitions)
        self._queue = left
        return taken

    def _received(self, attempts: Sequence[Attempt], response: Any, error: KafkaError | None) -> None:
        self._is_busy = False
        found = {} if response is None else self._outcomes(response)
        missing = Outcome(error or UnknownServerError())
        try:
            for attempt in attempts:
                self._settle(attempt, {each: found.get(each, missing) for each in attempt.partitions})
        finally:
            if self._queue:
                self._send_next()

    def _outcomes(self, response: Any) -> Outcomes:
        outcomes: Outcomes = {}
        state = self._rpc.state
        for topic in response.results:
            for result in topic.partitions:
                error = error_of(result.error_code, result.error_message)
                outcomes[topic.topic_id, result.partition] = (
                    Outcome(error) if error is not None else DONE if state is None else Outcome(None, state(result))
                )
        return outcomes
