"""The records that members of share groups have acquired (KIP-932), in the recording and in this run.

Knows nothing of connections. Which of several responses has the records of a partition depends on how many nodes there
are, and on timing: a fetch goes on until as many are acquired as were, and acquired records are compared at the end, by
group and partition.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from barnabas.replay.ahead import Place
from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

TopicOf = Callable[[bytes], str | None]
Key = tuple[str, Place]

_Topic = ShareFetchResponse.ShareFetchableTopicResponse
_Partition = _Topic.PartitionData


class _Acquired:
    """What was acquired of one partition."""

    def __init__(self) -> None:
        self.size = 0
        self.deliveries: Counter[tuple[int, int]] = Counter()  # offset and delivery count, with the offsets of this run

    @property
    def count(self) -> int:
        """How many records, each as often as it was acquired."""
        return self.deliveries.total()

    def take(self, entry: Any, shift: int) -> None:
        """Takes what was acquired out of an entry of a response, whose offsets are so far from those of this run."""
        self.size += len(entry.records or b"")
        for each in entry.acquired_records:
            for at in range(each.first_offset, each.last_offset + 1):
                self.deliveries[at + shift, each.delivery_count] += 1
        entry.acquired_records = []


class Acquired:
    """The acquired records of all groups."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._recorded: dict[Key, _Acquired] = {}
        self._replayed: dict[Key, _Acquired] = {}

    def surplus(self, group: str, place: Place) -> int:
        """Returns how many bytes of a partition have come earlier than they did, so that none will come now."""
        there, here = self._recorded.get((group, place)), self._replayed.get((group, place))
        return max((0 if here is None else here.size) - (0 if there is None else there.size), 0)

    def take_recorded(self, request: Any, recorded: Any) -> list[Place]:
        """Takes the acquired records out of a recorded response to a ShareFetch. Returns their partitions."""
        found = []
        if isinstance(request, ShareFetchRequest):
            for place, each in _entries(recorded, self._translation.topics.get).items():
                if each.acquired_records:
                    found.append(place)
                shift = self._translation.offset(Scope(*place), 0)
                self._recorded.setdefault((request.group_id or "", place), _Acquired()).take(each, shift)
        return found

    def take_replayed(self, request: Any, replayed: Any, topic_of: TopicOf) -> None:
        """Takes the acquired records out of a response of this run to a ShareFetch.

        :param topic_of: returns the name of a topic of this run
        """
        if isinstance(request, ShareFetchRequest):
            for place, each in _entries(replayed, topic_of).items():
                self._replayed.setdefault((request.group_id or "", place), _Acquired()).take(each, 0)

    def behind(self, group: str, places: Iterable[Place]) -> dict[Place, int]:
        """Returns how many records fewer have been acquired than were, of those partitions that are behind."""
        found = {}
        for place in places:
            here = self._replayed.get((group, place))
            missing = self._recorded[group, place].count - (0 if here is None else here.count)
            if missing > 0:
                found[place] = missing
        return found

    def level(self, request: Any, recorded: Any, replayed: Any, topic_of: TopicOf) -> None:
        """Gives two responses to a ShareFetch the same partitions, since records may be in another response."""
        if not isinstance(request, ShareFetchRequest):
            return
        there, here = _entries(recorded, self._translation.topics.get), _entries(replayed, topic_of)
        for topic, partition in here.keys() - there.keys():
            _added(recorded, self._recorded_id(topic), partition)
        for topic, partition in there.keys() - here.keys():
            _added(replayed, self._id_of_now(topic), partition)

    def differing(self) -> Iterator[tuple[str, str, str]]:
        """Yields the partitions of groups of which other records were acquired, with what differs on both sides."""
        for key in {**self._recorded, **self._replayed}:
            group, (topic, partition) = key
            there = self._recorded[key].deliveries if key in self._recorded else Counter[tuple[int, int]]()
            here = self._replayed[key].deliveries if key in self._replayed else Counter[tuple[int, int]]()
            if there != here:
                yield f"{topic}-{partition}, share group {group}", _text(there - here), _text(here - there)

    def _recorded_id(self, name: str | None) -> bytes:
        return next((topic_id for topic_id, each in self._translation.topics.items() if each == name), bytes(16))

    def _id_of_now(self, name: str | None) -> bytes:
        return bytes(self._translation.value(Meaning.TOPIC_ID, Scope(), self._recorded_id(name)))


def _entries(response: Any, topic_of: TopicOf) -> dict[Place, Any]:
    return {
        (topic_of(bytes(topic.topic_id)), each.partition_index): each
        for topic in response.responses
        for each in topic.partitions
    }


def _added(response: Any, topic_id: bytes, partition: int) -> None:
    """Adds a partition without records to a response."""
    added = _Partition(
        partition_index=partition,
        acknowledge_error_code=0,
        current_leader=_Partition.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=b"",
        acquired_records=[],
    )
    topic = next((each for each in response.responses if bytes(each.topic_id) == topic_id), None)
    if topic is None:
        response.responses = [*response.responses, _Topic(topic_id=topic_id, partitions=[added])]
    else:
        topic.partitions = [*topic.partitions, added]


def _text(deliveries: Counter[tuple[int, int]]) -> str:
    found = [f"{offset} (delivery {count})" for offset, count in sorted(deliveries.elements())]
    return ", ".join(found) or "no others"
