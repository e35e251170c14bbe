"""The fetcher's side of a fetch session: unchanged partitions are not sent again (KIP-227).

Knows nothing of logs, nor of the leader. Apache Kafka's ``FetchSessionHandler``.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

Key = tuple[bytes, int]
"""Topic id and index of a partition."""

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
"""The epoch that requests a new session."""

LAST_EPOCH: Final = 0x7FFFFFFF
FETCH_SESSION_ID_NOT_FOUND: Final = 70

FetchTopic = FetchRequest.FetchTopic


class Wanted(NamedTuple):
    """The fetch position of a partition."""

    topic: str
    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchSessionHandler:
    """A session with one leader.

    :attr:`sent` has all partitions of the session, as the leader knows them.
    """

    __slots__ = ("_epoch", "_id", "sent")

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self.sent: dict[Key, Wanted] = {}

    @property
    def is_new(self) -> bool:
        """Whether the next request starts a session, and has to include all partitions."""
        return self._epoch == INITIAL_EPOCH

    def begin(self) -> None:
        """Starts a new session: the next request includes all partitions."""
        self.sent = {}

    def fill(self, request: FetchRequest, wanted: Mapping[Key, Wanted], forgotten: Iterable[Key]) -> None:
        """Adds the changed partitions to a request: all, if :attr:`is_new`."""
        request.session_id, request.session_epoch = self._id, self._epoch
        topics: dict[bytes, FetchTopic] = {}
        for key, want in wanted.items():
            topic_id, index = key
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = FetchTopic(topic=want.topic, topic_id=topic_id, partitions=[])
            topic.partitions.append(
                FetchTopic.FetchPartition(
                    partition=index,
                    current_leader_epoch=want.leader_epoch,
                    fetch_offset=want.fetch_offset,
                    last_fetched_epoch=want.last_fetched_epoch,
                    log_start_offset=want.log_start_offset,
                    partition_max_bytes=want.max_bytes,
                )
            )
            self.sent[key] = want
        request.topics = list(topics.values())
        gone: dict[bytes, FetchRequest.ForgottenTopic] = {}
        for topic_id, index in forgotten:
            name = self.sent.pop((topic_id, index)).topic
            if topic_id not in gone:
                gone[topic_id] = FetchRequest.ForgottenTopic(topic=name, topic_id=topic_id, partitions=[])
            gone[topic_id].partitions.append(index)
        request.forgotten_topics_data = list(gone.values())

    def take(self, response: FetchResponse) -> str | None:
        """Continues the session after a response. Returns an error message, or None if its data can be used."""
        if response.error_code:
            self._epoch = INITIAL_EPOCH
            if response.error_code == FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            return f"error {response.error_code}"
        answered = {(topic.topic_id, each.partition_index) for topic in response.responses for each in topic.partitions}
        if self.is_new and response.session_id and answered != self.sent.keys():
            self._id = NO_SESSION
            return "a response that does not have the partitions of its request"
        if not answered <= self.sent.keys():
            self._epoch = INITIAL_EPOCH
            return "a response with partitions that are not in the session"
        self._id = response.session_id
        if not response.session_id:
            self._epoch = INITIAL_EPOCH
        else:
            self._epoch = self._epoch + 1 if self._epoch < LAST_EPOCH else 1
        return None

    def fail(self) -> None:
        """Starts a new session after a request without a response. The leader may still have the session, and closes
        it.
        """
        self._epoch = INITIAL_EPOCH
