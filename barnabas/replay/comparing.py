"""Compares a response with the recorded one, except for fields that differ from run to run.

Knows nothing of connections. The first response with an id of the recording tells which id corresponds to it in this
run; later responses must have the same one.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from barnabas.replay.fetched import Fetched
from barnabas.replay.meanings import Meaning, is_address, is_given, meaning_of
from barnabas.replay.nodes import Sizes
from barnabas.replay.translation import Scope, Translation
from barnabas.uuids import uuid_text
from barnabas.wire.frames import ResponseFrame
from barnabas.wire.schema import Field, Struct

IDENTITIES: Final = (
    "name", "topic", "topic_name", "topic_id", "partition_index", "partition", "partition_id", "index", "node_id",
    "broker_id", "group_id", "member_id", "transactional_id", "resource_name", "api_key", "user", "feature", "key",
    "producer_id",
)  # fmt: skip
"""Fields that identify the entries of an array; the first one that a structure has counts. The order of such entries
does not matter.
"""

UNORDERED: Final = ("isr_nodes", "offline_replicas", "eligible_leader_replicas", "last_known_elr")

OF_ONE_NODE: Final = ("AlterReplicaLogDirsResponse", "DescribeLogDirsResponse")
"""Responses about the replicas of one node. Where there are several nodes, it may have others than in the recording."""


class Difference(NamedTuple):
    """A field that differs from the recording."""

    path: str  #: ``responses[orders].partition_responses[0].error_code``
    recorded: Any
    replayed: Any


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""Stands for a missing entry of an array."""


class Comparison:
    """Compares responses.

    Where there are several nodes, a partition may have another leader than in the recording, and a group another
    coordinator. Then only whether there is a node, or a log directory, is compared; and how many replicas there are, if
    there are as many nodes.

    :param ignored: names of fields that are not compared
    :param sizes: of the recorded cluster and of this one
    """

    def __init__(
        self,
        translation: Translation,
        fetched: Fetched,
        ignored: frozenset[str],
        sizes: Sizes = Sizes(),  # noqa: B008
    ) -> None:
        self._translation = translation
        self._fetched = fetched
        self._ignored = ignored
        self._sizes = sizes
        self._topic_names: dict[bytes, str] = {}  # by the ids of this run

    def topic_name(self, topic_id: bytes) -> str | None:
        """Returns the name of a topic of this run."""
        return self._topic_names.get(bytes(topic_id))

    def compare(
        self, scope: Scope, recorded: ResponseFrame, replayed: ResponseFrame, *, is_of_all: bool = False
    ) -> Iterator[Difference]:
        """Yields the differences of a response.

        :param scope: of the recorded request
        :param is_of_all: the response has the entries of all nodes of this run, the recorded one those of one node
        """
        if recorded.version != replayed.version:
            yield Difference("version", recorded.version, replayed.version)
            return
        self._translation.topics.update(topics_in(recorded.response))
        self._topic_names.update(topics_in(replayed.response))
        if not self._sizes.are_one and type(recorded.response).__name__ in OF_ONE_NODE:
            return
        found = self._structures(scope, recorded.response, replayed.response, recorded.version, "", "")
        yield from (each for each in found if not (is_of_all and each.recorded is MISSING))

    # ------------------------------------------------------------ structures

    def _structures(
        self, scope: Scope, recorded: Any, replayed: Any, version: int, path: str, array: str
    ) -> Iterator[Difference]:
        scope = scope.within(recorded, array, self._translation.topics.get)
        for field in recorded.wire_fields():
            if version not in field.versions or field.name in self._ignored:
                continue
            pair = getattr(recorded, field.name), getattr(replayed, field.name)
            here = f"{path}.{field.name}" if path else field.name
            meaning = None if isinstance(field.kind, type) else meaning_of(recorded, field)
            if meaning is Meaning.PASSING or field.name == "aborted_transactions":
                continue  # aborted transactions depend on which records happen to be in a response
            if field.name == "replication_factor" and self._sizes.differ:
                continue
            if meaning is Meaning.RECORDS:
                yield from (Difference(f"{here}{at}", *both) for at, both in self._fetched.compare(scope, *pair))
            elif None in pair or not field.is_array:
                yield from self._values(scope, meaning, *pair, version, here, field)
            else:
                yield from self._arrays(scope, meaning, *pair, version, here, field)

    def _values(
        self, scope: Scope, meaning: Meaning | None, recorded: Any, replayed: Any, version: int, path: str, field: Field
    ) -> Iterator[Difference]:
        if isinstance(recorded, Struct) and isinstance(replayed, Struct):
            yield from self._structures(scope, recorded, replayed, version, path, field.name)
            return
        if meaning in (Meaning.NODE, Meaning.LOG_DIR) and not self._sizes.are_one:
            if is_given(recorded) != is_given(replayed):
                yield Difference(path, recorded, replayed)
            return
        if meaning is not None:
            self._translation.learn(meaning, scope, recorded, replayed)
            if meaning is Meaning.LEADER_EPOCH and not self._sizes.are_one and is_given(recorded) and replayed >= 0:
                return  # leaders may have moved in one of the clusters
            recorded = self._translation.value(meaning, scope, recorded)
        if recorded != replayed:
            yield Difference(path, recorded, replayed)

    # ------------------------------------------------------------ arrays

    def _arrays(
        self,
        scope: Scope,
        meaning: Meaning | None,
        recorded: Sequence[Any],
        replayed: Sequence[Any],
        version: int,
        path: str,
        field: Field,
    ) -> Iterator[Difference]:
        if field.name in UNORDERED:
            recorded = sorted(recorded, key=lambda each: self._of_this_run(meaning, scope, each))
            replayed = sorted(replayed)
        for at, one, other in self._matched(scope, recorded, replayed):
            if one is MISSING or other is MISSING:
                if self._may_be_missing(meaning, field, other if one is MISSING else one):
                    continue
                yield Difference(f"{path}[{at}]", one, other)
            else:
                yield from self._values(scope, meaning, one, other, version, f"{path}[{at}]", field)

    def _may_be_missing(self, meaning: Meaning | None, field: Field, entry: Any) -> bool:
        """Returns whether an entry is of a node that only one of the clusters has, or has now."""
        if self._sizes.are_one:
            return False
        if isinstance(entry, Struct):
            return is_address(entry)
        return meaning is Meaning.NODE and (self._sizes.differ or field.name in UNORDERED)

    def _of_this_run(self, meaning: Meaning | None, scope: Scope, value: Any) -> Any:
        return value if meaning is None else self._translation.value(meaning, scope, value)

    def _matched(
        self, scope: Scope, recorded: Sequence[Any], replayed: Sequence[Any]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """Yields the pairs of corresponding entries: those with the same identity, or at the same index."""
        ours = [self._identity(scope, each, is_recorded=True) for each in recorded]
        theirs = [self._identity(scope, each, is_recorded=False) for each in replayed]
        if None in ours or None in theirs or len({*ours}) < len(ours) or len({*theirs}) < len(theirs):
            pairs = zip_longest(recorded, replayed, fillvalue=MISSING)
            yield from ((at, *pair) for at, pair in enumerate(pairs))
            return
        by_identity = dict(zip(theirs, replayed, strict=True))
        for identity, each in zip(ours, recorded, strict=True):
            yield self._label(identity), each, by_identity.pop(identity, MISSING)
        for identity, each in by_identity.items():
            yield self._label(identity), MISSING, each

    def _label(self, identity: Any) -> Any:
        """Returns the name of an entry in the report: for a topic id the topic's name, if it is known."""
        return self._topic_names.get(identity, uuid_text(identity)) if isinstance(identity, bytes) else identity

    def _identity(self, scope: Scope, entry: Any, *, is_recorded: bool) -> Any:
        """Returns the identity of an entry of an array, with the ids of this run; None if it has none."""
        if not isinstance(entry, Struct):
            return None
        for field in entry.wire_fields():
            value = getattr(entry, field.name, None)
            if field.name not in IDENTITIES or field.is_array or not is_given(value):
                continue
            meaning = meaning_of(entry, field)
            if meaning is not None and is_recorded:
                if not self._translation.knows(meaning, scope, value):
                    return None
                value = self._translation.value(meaning, scope, value)
            return bytes(value) if isinstance(value, memoryview) else value
        return None


def topics_in(response: Any) -> Iterator[tuple[bytes, str]]:
    """Yields id and name of each topic for which the response has both."""
    for topic in getattr(response, "topics", None) or ():
        name, topic_id = getattr(topic, "name", None), getattr(topic, "topic_id", None)
        if name and topic_id is not None and is_given(topic_id):
            yield bytes(topic_id), name
