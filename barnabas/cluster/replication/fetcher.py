"""A follower's requests to the leader of its partitions, and the handling of the responses.

Knows nothing of sockets, timers or metadata: it returns requests, takes responses, and gets the time. The rules are
those of Apache Kafka's ``AbstractFetcherThread`` and ``ReplicaFetcherThread``; :mod:`barnabas.log.follower` decides
where a log is truncated. All brokers since metadata.version 3.3 support Fetch 13, whose responses have the diverging
epoch (KIP-595) and topic ids, so a follower never sends OffsetForLeaderEpoch.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.cluster.replication.fetch_session_handler import FetchSessionHandler, Key, Wanted
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.throttle import ReplicationThrottle
from barnabas.errors import (
    CorruptMessage,
    FencedLeaderEpoch,
    FetchSessionIdNotFound,
    InconsistentTopicId,
    InvalidFetchSessionEpoch,
    InvalidRecord,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.log.follower import EpochEnd, Fetched, Follower
from barnabas.wire.message import Request
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

logger = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData

LEVELS: Final = {
    UnknownLeaderEpoch.code: logging.DEBUG,  # the leader does not know yet that it leads
    NotLeaderOrFollower.code: logging.DEBUG,
    # A topic that is being created or deleted.
    UnknownTopicOrPartition.code: logging.INFO,
    UnknownTopicId.code: logging.INFO,
    InconsistentTopicId.code: logging.INFO,
}
"""The log levels of temporary errors of a leader; other errors are logged as errors. All requests are repeated."""

FIRST_PAUSE_S: Final = 0.01
"""The pause before a partition is fetched again after one of these errors; doubled each time, up to ``backoff_s``.

A follower often knows a new leader a millisecond before the leader does. Apache Kafka pauses for
``replica.fetch.backoff.ms`` immediately, during which no record is acknowledged with acks=all.
"""

SESSION_LOST: Final = (FetchSessionIdNotFound.code, InvalidFetchSessionEpoch.code)
"""The leader has evicted the session, or was restarted: the next request needs no pause."""


class FetchSettings(NamedTuple):
    """Kafka's configs ``replica.fetch.*``."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int  #: the maximum size of a response
    partition_max_bytes: int
    backoff_s: float


class Following:
    """A partition that follows a leader in one epoch."""

    __slots__ = ("is_behind", "is_throttled", "leader_epoch", "partition", "pause_s")

    def __init__(self, partition: Partition, *, is_throttled: bool) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.is_throttled = is_throttled
        self.is_behind = True  #: False if the leader is known to have no more records
        self.pause_s = FIRST_PAUSE_S  #: the pause after the next error of :data:`LEVELS`

    def wanted(self, max_bytes: int) -> Wanted:
        """Returns the next fetch position."""
        partition, log = self.partition, self.partition.log
        return Wanted(
            partition.topic, self.leader_epoch, log.log_end_offset, log.latest_epoch, log.log_start_offset, max_bytes
        )


class Fetcher:
    """The partitions that are fetched from one leader, by one connection. One request is in flight at a time.

    :param replica_id: the follower's node id
    :param replica_epoch: returns the follower's broker epoch
    """

    def __init__(
        self,
        replica_id: int,
        replica_epoch: Callable[[], int],
        settings: Callable[[], FetchSettings],
        throttle: ReplicationThrottle,
    ) -> None:
        self._replica_id = replica_id
        self._replica_epoch = replica_epoch
        self._settings = settings
        self._throttle = throttle
        self._partitions: dict[Key, Following] = {}
        self._session = FetchSessionHandler()
        self._changed: dict[Key, None] = {}  # those that the next request may include, in order
        self._delayed: dict[Key, float] = {}  # the times until which they are not fetched
        self._throttled: set[Key] = set()  # throttled ones that have lag
        self._out_of_range: dict[Key, Following] = {}
        self._leader_ends: dict[Key, int] = {}  # for those out of range, the leader's log end offsets
        self._pending: deque[tuple[Key, Wanted, PartitionData]] = deque()  # fetched, and not handled yet
        self._resumes_at = 0.0

    # ------------------------------------------------------------ partitions

    @property
    def is_empty(self) -> bool:
        return not self._partitions

    def add(self, partition: Partition, *, is_throttled: bool = False) -> None:
        """Starts to fetch a partition in its current leader epoch.

        :raises KafkaStorageError: the disk fails or has failed
        """
        key = partition.topic_id, partition.index
        self.remove(key)
        log = partition.log
        if log.latest_epoch < 0 and log.log_end_offset > log.high_watermark:
            log.truncate_to(log.high_watermark)  # without epochs the leader cannot tell where it diverges
        self._partitions[key] = Following(partition, is_throttled=is_throttled)
        self._changed[key] = None
        if is_throttled:
            self._throttled.add(key)

    def remove(self, key: Key) -> None:
        """Stops to fetch a partition."""
        if self._partitions.pop(key, None) is not None:
            self._changed[key] = None
        self._delayed.pop(key, None)
        self._throttled.discard(key)
        self._out_of_range.pop(key, None)
        self._leader_ends.pop(key, None)

    def set_throttled(self, key: Key, *, is_throttled: bool) -> None:
        """Throttles a partition, or stops throttling it."""
        following = self._partitions.get(key)
        if following is None or following.is_throttled == is_throttled:
            return
        following.is_throttled = is_throttled
        if is_throttled and following.is_behind:
            self._throttled.add(key)
        else:
            self._throttled.discard(key)

    # ------------------------------------------------------------ requests

    def next_request(self, now: float, now_ms: int) -> Request | None:
        """Returns the next request; None if there is none now. :meth:`wakes_at` then returns when there may be one.

        :param now: the monotonic time in seconds
        :param now_ms: the time in milliseconds since 1970
        """
        if self._pending or now < self._resumes_at:
            return None
        for key in [key for key, until in self._delayed.items() if until <= now]:
            del self._delayed[key]
            self._changed[key] = None
        if self._out_of_range:
            return self._list_offsets()
        if self._throttled and (pause_ms := self._throttle.pause_ms(now_ms)):
            for key in self._throttled - self._delayed.keys():
                self._delay(key, now + min(pause_ms / 1000, self._settings().backoff_s))
        if len(self._partitions) <= len(self._delayed):
            return None
        return self._fetch()

    def wakes_at(self) -> float | None:
        """Returns when there may be a request again without another event; None if never."""
        if not self._delayed:
            return self._resumes_at if self._partitions else None
        return max(min(self._delayed.values()), self._resumes_at)

    def _fetch(self) -> FetchRequest:
        settings, session = self._settings(), self._session
        if session.is_new:
            session.begin()
            self._changed = dict.fromkeys(self._partitions)
        wanted: dict[Key, Wanted] = {}
        forgotten = []
        for key in self._changed:
            following = self._partitions.get(key)
            if following is None or key in self._delayed:
                if key in session.sent:
                    forgotten.append(key)
                continue
            want = following.wanted(settings.partition_max_bytes)
            if session.sent.get(key) != want:
                wanted[key] = want
        self._changed = {}
        request = FetchRequest(
            replica_id=self._replica_id,
            replica_state=FetchRequest.ReplicaState(replica_id=self._replica_id, replica_epoch=self._replica_epoch()),
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            topics=[],
        )
        session.fill(request, wanted, forgotten)
        return request

    def _list_offsets(self) -> ListOffsetsRequest:
        """Returns the request for the leader's log end offset of the partitions that are out of range, or for its
        start.
        """
        timestamp = EARLIEST if self._leader_ends else LATEST
        topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
        for key in self._leader_ends or self._out_of_range:
            following = self._out_of_range[key]
            name = following.partition.topic
            if name not in topics:
                topics[name] = ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=[])
            topics[name].partitions.append(
                ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
                    partition_index=key[1], current_leader_epoch=following.leader_epoch, timestamp=timestamp
                )
            )
        return ListOffsetsRequest(replica_id=self._replica_id, topics=list(topics.values()))

    # ------------------------------------------------------------ responses

    def failed(self, now: float) -> None:
        """Starts a pause after a request without a response."""
        self._session.fail()
        self._resumes_at = now + self._settings().backoff_s

    def answered(self, response: FetchResponse | ListOffsetsResponse, now: float, now_ms: int) -> None:
        """Accepts a response. Call :meth:`work` until nothing is left."""
        if isinstance(response, ListOffsetsResponse):
            self._take_offsets(response, now, now_ms)
            return
        sent = self._session.sent
        problem = self._session.take(response)
        if problem is not None:
            logger.info("Starting a new fetch session after %s", problem)
            if response.error_code not in SESSION_LOST:
                self._resumes_at = now + self._settings().backoff_s
            return
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                self._pending.append((key, sent[key], data))

    def work(self, max_bytes: int, now: float, now_ms: int) -> bool:
        """Handles fetched data until that was ``max_bytes`` or more. Returns whether something is left."""
        pending = self._pending
        while pending and max_bytes > 0:
            key, wanted, data = pending.popleft()
            following = self._partitions.get(key)
            if following is None:
                continue
            self._changed[key] = None
            # The leader or the log of the partition may have changed since.
            if (
                following.leader_epoch == wanted.leader_epoch
                and following.partition.log.log_end_offset == wanted.fetch_offset
                and key not in self._delayed
            ):
                max_bytes -= self._take(key, following, data, now, now_ms)
        return bool(pending)

    def _take(self, key: Key, following: Following, data: PartitionData, now: float, now_ms: int) -> int:
        """Handles the data of a partition. Returns the number of bytes that were appended."""
        if data.error_code:
            self._refused(key, following, kind_of(data.error_code), now)
            return 0
        following.pause_s = FIRST_PAUSE_S
        diverging = data.diverging_epoch
        fetched = Fetched(
            data.records or b"",
            data.high_watermark,
            data.log_start_offset,
            EpochEnd(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        )
        partition = following.partition
        try:
            size = partition.follow(fetched, now_ms, following.leader_epoch)
        except KafkaStorageError as error:
            logger.error("Cannot copy %s-%d: %s", partition.topic, partition.index, error)
            self.remove(key)
            return 0
        except (CorruptMessage, InvalidRecord, UnknownLeaderEpoch, OffsetOutOfRange) as error:
            logger.error(
                "Cannot append the batches fetched for %s-%d at offset %d: %s",
                partition.topic,
                partition.index,
                partition.log.log_end_offset,
                error or type(error).__name__,
            )
            self._delay(key, now + self._settings().backoff_s)
            return len(fetched.data)
        except Exception:  # of one partition, which must not stop the others
            logger.exception("%s-%d cannot follow its leader any more", partition.topic, partition.index)
            self.remove(key)
            return len(fetched.data)
        following.is_behind = fetched.high_watermark > partition.log.log_end_offset or diverging.epoch >= 0
        if following.is_throttled:
            self._throttle.record(size, now_ms)
            (self._throttled.add if following.is_behind else self._throttled.discard)(key)
        return size

    def _refused(self, key: Key, following: Following, error: type[KafkaError], now: float) -> None:
        """Handles the error of a leader: requests its offsets, waits for metadata, or repeats the request later."""
        if error is OffsetOutOfRange:
            self._out_of_range[key] = following
            return
        name = f"{following.partition.topic}-{following.partition.index}"
        if error is FencedLeaderEpoch:
            logger.info("%s waits for the leader after epoch %d", name, following.leader_epoch)
            self.remove(key)
            return
        level = LEVELS.get(error.code, logging.ERROR)
        logger.log(level, "The leader of %s in epoch %d answers %s", name, following.leader_epoch, error.__name__)
        pause_s = self._settings().backoff_s
        if error.code in LEVELS:
            pause_s = min(pause_s, following.pause_s)
            following.pause_s = 2 * pause_s
        self._delay(key, now + pause_s)

    def _delay(self, key: Key, until: float) -> None:
        self._delayed[key] = until
        self._changed[key] = None

    def _take_offsets(self, response: ListOffsetsResponse, now: float, now_ms: int) -> None:
        by_name = {(each.partition.topic, key[1]): key for key, each in self._out_of_range.items()}
        ends, self._leader_ends = self._leader_ends, {}
        for topic in response.topics:
            for answer in topic.partitions:
                key = by_name.get((topic.name, answer.partition_index))
                if key is None or (ends and key not in ends):
                    continue
                following = self._out_of_range[key]
                if answer.error_code:
                    del self._out_of_range[key]
                    self._refused(key, following, kind_of(answer.error_code), now)
                elif not ends and answer.offset >= following.partition.log.log_end_offset:
                    self._leader_ends[key] = answer.offset
                elif ends:
                    self._take_range(key, following, answer.offset, ends[key], now_ms)
                else:
                    self._take_range(key, following, 0, answer.offset, now_ms)

    def _take_range(self, key: Key, following: Following, start: int, end: int, now_ms: int) -> None:
        """Continues within the leader's range, and truncates the log to it if necessary."""
        del self._out_of_range[key]
        self._changed[key] = None
        partition = following.partition
        before = partition.log.log_end_offset
        try:
            Follower(partition.log).handle_out_of_range(start, end, now_ms)
        except KafkaStorageError as error:
            logger.error("Cannot truncate %s-%d: %s", partition.topic, partition.index, error)
            self.remove(key)
            return
        logger.warning(
            "Offset %d of %s-%d is not in the log of its leader; continuing at %d",
            before,
            partition.topic,
            partition.index,
            partition.log.log_end_offset,
        )


def kind_of(code: int) -> type[KafkaError]:
    return KafkaError.by_code.get(code, UnknownServerError)
