"""Makers of steps for the state of share partitions, with the requests between brokers.

Data only: must not open a socket. By default the group is ``~g`` and the topic ``~t``. A place is a topic and a
partition's number.
"""

from collections.abc import Sequence
from typing import Any

from .play import Step
from .steps import ask

PARTITIONS = "Topics.0.Partitions"

NOBODY = "~nobody"
"""A topic that does not exist."""

Batches = Sequence[tuple[int, int, int, int]]
"""First and last offset, delivery state and count."""


def found(**more: Any) -> Step:
    """Waits for the coordinator's topic, and for the coordinator."""
    key = "~g:AAAAAAAAAAAAAAAAAAAAAA:0"
    return ask("FindCoordinator", v=6, quiet=True, KeyType=2, CoordinatorKeys=[key], **more)


def placed(*places: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns topics by their ids, each once, with fields of their partitions."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for topic, partition in places:
        topics.setdefault(topic, []).append(partition)
    return [{"TopicId": f"$id {topic}", "Partitions": partitions} for topic, partitions in topics.items()]


def about(api: str, *places: tuple[str, dict[str, Any]], group: str = "~g", **more: Any) -> Step:
    return ask(api, GroupId=group, Topics=placed(*places), **more)


def initialize(*places: tuple[str, int], state: int = 0, start: int = 0, group: str = "~g", **more: Any) -> Step:
    return about(
        "InitializeShareGroupState",
        *((topic, {"Partition": index, "StateEpoch": state, "StartOffset": start}) for topic, index in _or_t(places)),
        group=group,
        **more,
    )


def read(*places: tuple[str, int], leader: int = -1, group: str = "~g", **more: Any) -> Step:
    return about(
        "ReadShareGroupState",
        *((topic, {"Partition": index, "LeaderEpoch": leader}) for topic, index in _or_t(places)),
        group=group,
        **more,
    )


def summary(*places: tuple[str, int], leader: int = -1, group: str = "~g", **more: Any) -> Step:
    return about(
        "ReadShareGroupStateSummary",
        *((topic, {"Partition": index, "LeaderEpoch": leader}) for topic, index in _or_t(places)),
        group=group,
        **more,
    )


def delete(*places: tuple[str, int], group: str = "~g", **more: Any) -> Step:
    return about(
        "DeleteShareGroupState", *((topic, {"Partition": index}) for topic, index in _or_t(places)), group=group, **more
    )


def write(
    *places: tuple[str, int],
    state: int = -1,
    leader: int = -1,
    start: int = -1,
    done: int = -1,
    batches: Batches = (),
    group: str = "~g",
    **more: Any,
) -> Step:
    names = ("FirstOffset", "LastOffset", "DeliveryState", "DeliveryCount")
    said = {
        "StateEpoch": state,
        "LeaderEpoch": leader,
        "StartOffset": start,
        "DeliveryCompleteCount": done,
        "StateBatches": [dict(zip(names, each, strict=True)) for each in batches],
    }
    return about(
        "WriteShareGroupState",
        *((topic, {"Partition": index, **said}) for topic, index in _or_t(places)),
        group=group,
        **more,
    )


def _or_t(places: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    return places or (("~t", 0),)
