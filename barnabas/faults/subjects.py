"""Finds the topics, partitions, groups and transactional ids that a request names, by its schema.

Knows nothing of what an API does. Fields with these meanings have the same few names in all messages.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.wire.schema import Field, Struct

TOPIC: Final = ("topic", "topic_name", "name")
TOPIC_ARRAYS: Final = (
    "topics", "topic_data", "topic_names", "responses", "topic_partitions", "topics_by_name", "topic_results",
    "results", "v3_and_below_topics", "results_by_topic_v3_and_below",
)  # fmt: skip
PARTITION: Final = ("partition", "partition_index", "partition_id", "index")
PARTITION_ARRAYS: Final = ("partitions", "partition_indexes", "partition_ids")
GROUP: Final = ("group_id", "group")
GROUP_ARRAYS: Final = ("groups", "group_ids", "groups_names")
TRANSACTIONAL: Final = ("transactional_id", "v3_and_below_transactional_id")
TRANSACTIONAL_ARRAYS: Final = ("transactional_ids",)

Wanted = Callable[[str, int | None], bool]
"""Whether a topic's partition is selected; None stands for the topic as a whole."""

TopicName = Callable[[bytes], str | None]
"""Returns the name of the topic with an id."""


class Subjects(NamedTuple):
    """The topics, partitions, groups and transactional ids that one request names."""

    topics: frozenset[tuple[str, int | None]]
    groups: frozenset[str]
    transactional_ids: frozenset[str]


def fields_of(cls: type[Struct]) -> Iterator[Field]:
    """Yields all fields of a structure, and of those in it."""
    for field in cls.wire_fields():
        yield field
        if isinstance(field.kind, type):
            yield from fields_of(field.kind)


def can_name(request: type[Struct], subject: str) -> bool:
    """Returns whether a request has a field for a topic, partition, group or transactional_id."""
    names = {field.name for field in fields_of(request)}
    if request.__name__ == "FindCoordinatorRequest":
        return subject in ("group", "transactional_id")
    return bool(names.intersection(_PLACES[subject]))


_PLACES: Final = {
    "topic": ("topic", "topic_name", "topic_id", *TOPIC_ARRAYS),
    "partition": ("topic_data", *PARTITION[:3], *PARTITION_ARRAYS),
    "group": (*GROUP, *GROUP_ARRAYS),
    "transactional_id": (*TRANSACTIONAL, *TRANSACTIONAL_ARRAYS),
}


def subjects_of(request: Struct, topic_name: TopicName) -> Subjects:
    """Returns the subjects of the request."""
    topics: set[tuple[str, int | None]] = set()

    def note(topic: str, partition: int | None) -> bool:
        topics.add((topic, partition))
        return True

    selected(request, note, topic_name)
    groups, transactional = (
        set(_texts(request, GROUP, GROUP_ARRAYS)),
        set(_texts(request, TRANSACTIONAL, TRANSACTIONAL_ARRAYS)),
    )
    key_type = getattr(request, "key_type", None)
    if key_type is not None and hasattr(request, "key"):
        keys = {request.key, *(getattr(request, "coordinator_keys", None) or ())} - {"", None}
        (groups if key_type == 0 else transactional).update(keys)
    return Subjects(frozenset(topics), frozenset(groups), frozenset(transactional))


def _texts(structure: Struct, single: tuple[str, ...], arrays: tuple[str, ...]) -> Iterator[str]:
    for field in structure.wire_fields():
        value = getattr(structure, field.name, None)
        if isinstance(value, str) and field.name in single and value != field.default:
            yield value
        elif field.is_array:
            for each in value or ():
                if isinstance(each, Struct):
                    yield from _texts(each, single, arrays)
                elif isinstance(each, str) and field.name in arrays:
                    yield each


def topic_of(structure: Struct, topic_name: TopicName, *, is_topic: bool) -> str | None:
    """Returns the name of the topic that a structure is about; None if it is about none."""
    for name in TOPIC if is_topic else TOPIC[:2]:
        value = getattr(structure, name, None)
        if isinstance(value, str) and value:
            return value
    topic_id = getattr(structure, "topic_id", None)
    return topic_name(topic_id) if topic_id is not None and any(topic_id) else None


def partition_of(structure: Struct) -> int | None:
    """Returns the partition that a structure is about."""
    return next((value for name in PARTITION if isinstance(value := getattr(structure, name, None), int)), None)


def selected(structure: Any, wanted: Wanted, topic_name: TopicName, topic: str | None = None) -> Any:
    """Returns a copy of a request or response with only those topics and partitions that are wanted."""
    values: dict[str, Any] = {}
    for field in structure.wire_fields():
        value = getattr(structure, field.name, field.default)
        if field.is_array and value:
            value = [kept for each in value if (kept := _kept(field.name, each, wanted, topic_name, topic)) is not None]
        values[field.name] = value
    return type(structure)(**values)


def _kept(array: str, each: Any, wanted: Wanted, topic_name: TopicName, topic: str | None) -> Any:
    """Returns an entry of an array, reduced to the wanted parts; None if none is wanted."""
    if isinstance(each, str):
        return each if array not in TOPIC_ARRAYS or wanted(each, None) else None
    if isinstance(each, int):
        return each if array not in PARTITION_ARRAYS or topic is None or wanted(topic, each) else None
    if not isinstance(each, Struct):
        return each
    own = topic_of(each, topic_name, is_topic=array in TOPIC_ARRAYS) or topic
    if own is None:
        return selected(each, wanted, topic_name)
    partition = partition_of(each)
    if partition is not None:
        return each if wanted(own, partition) else None
    inner = next((field.name for field in each.wire_fields() if field.is_array and _is_of_partitions(field)), None)
    if inner is None or not getattr(each, inner):
        return each if wanted(own, None) else None
    left = selected(each, wanted, topic_name, own)
    return left if getattr(left, inner) else None


def _is_of_partitions(field: Field) -> bool:
    if isinstance(field.kind, type):
        return any(each.name in PARTITION for each in field.kind.wire_fields())
    return field.name in PARTITION_ARRAYS
