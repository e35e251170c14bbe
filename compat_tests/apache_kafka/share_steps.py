"""Makers of steps for scenarios: requests of a share group's members to a partition's leader.

Data only: must not open a socket. By default the group is ``~g``, the member ``anna`` and the topic ``~t``. A place is
a topic and a partition's number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .play import Step
from .share_state_steps import found, initialize, placed
from .steps import ask, create, published, seed

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

Place = tuple[str, int]
Said = tuple[int, int, Sequence[int] | int]
"""First and last offset, and their acknowledgements: one type, or one of each."""

T0: Place = ("~t", 0)


def acknowledged(said: Sequence[Said]) -> list[dict[str, Any]]:
    return [
        {
            "FirstOffset": first,
            "LastOffset": last,
            "AcknowledgeTypes": [types] if isinstance(types, int) else list(types),
        }
        for first, last, types in said
    ]


def share_fetch(
    epoch: int,
    *places: Place,
    member: str | None = "anna",
    group: str | None = "~g",
    said: Mapping[Place, Sequence[Said]] | None = None,
    forget: Sequence[Place] = (),
    on: str = "main",
    v: int | None = None,
    quiet: bool = False,
    **more: Any,
) -> Step:
    """Returns a ShareFetch; ``places`` are added to the session, as are those of ``said``."""
    said = said or {}
    wanted = [*places, *(each for each in said if each not in places)]
    forgotten: dict[str, list[int]] = {}
    for topic, index in forget:
        forgotten.setdefault(topic, []).append(index)
    fields = {
        "MaxWaitMs": 50,
        "MinBytes": 1,
        "MaxBytes": 1 << 20,
        "MaxRecords": 100,
        "BatchSize": 100,
        "ShareAcquireMode": 0,
        "IsRenewAck": False,
        **more,
    }
    return ask(
        "ShareFetch",
        on=on,
        v=v,
        quiet=quiet,
        GroupId=group,
        MemberId=member,
        ShareSessionEpoch=epoch,
        Topics=placed(
            *(
                (
                    topic,
                    {"PartitionIndex": index, "AcknowledgementBatches": acknowledged(said.get((topic, index), ()))},
                )
                for topic, index in wanted
            )
        ),
        ForgottenTopicsData=[{"TopicId": f"$id {topic}", "Partitions": each} for topic, each in forgotten.items()],
        **fields,
    )


def acknowledge(
    epoch: int,
    *said: Said,
    at: Place = T0,
    also: Mapping[Place, Sequence[Said]] | None = None,
    member: str | None = "anna",
    group: str | None = "~g",
    on: str = "main",
    v: int | None = None,
    quiet: bool = False,
    is_renewal: bool = False,
) -> Step:
    places = {at: said, **(also or {})}
    return ask(
        "ShareAcknowledge",
        on=on,
        v=v,
        quiet=quiet,
        GroupId=group,
        MemberId=member,
        ShareSessionEpoch=epoch,
        IsRenewAck=is_renewal,
        Topics=placed(
            *(
                (topic, {"PartitionIndex": index, "AcknowledgementBatches": acknowledged(each)})
                for (topic, index), each in places.items()
            )
        ),
    )


def shared(*sizes: int, partitions: int = 1, **configs: str) -> list[Any]:
    """Makes ``~t`` with batches of these sizes in 0, which the group ``~g`` reads from the start."""
    return [
        create("~t", partitions, **configs),
        found(),
        initialize(*(("~t", index) for index in range(partitions)), quiet=True),
        [seed("~t", *(f"{number}-{each}" for each in range(size))) for number, size in enumerate(sizes)],
    ]


def group_config(**configs: str) -> list[Step]:
    """Sets configs of ``~g``, with ``_`` for the dots, and waits until they are in force."""
    changes = [
        {"Name": name.replace("_", "."), "ConfigOperation": 0, "Value": value} for name, value in configs.items()
    ]
    resource = {"ResourceType": 32, "ResourceName": "~g", "Configs": changes}
    return [ask("IncrementalAlterConfigs", quiet=True, Resources=[resource]), published()]
