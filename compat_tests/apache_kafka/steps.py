"""The vocabulary of scenarios: short makers of steps, and of the groups of steps that many begin with.

Data only: must not open a socket. ``~x`` in a string is the scenario's own topic or group x; ``$x`` is a value that a
step saved under that name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .batches import Records, records
from .play import Step

ADVERTISED: dict[str, tuple[int, int]] = {
    "Produce": (3, 13),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "AddPartitionsToTxn": (0, 5),
    "AddOffsetsToTxn": (0, 4),
    "EndTxn": (0, 5),
    "WriteTxnMarkers": (1, 2),
    "TxnOffsetCommit": (0, 5),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "CreateDelegationToken": (1, 3),
    "RenewDelegationToken": (1, 2),
    "ExpireDelegationToken": (1, 2),
    "DescribeDelegationToken": (1, 3),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "AlterReplicaLogDirs": (1, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "DeleteGroups": (0, 2),
    "ElectLeaders": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "OffsetDelete": (0, 0),
    "DescribeClientQuotas": (0, 1),
    "AlterClientQuotas": (0, 1),
    "DescribeUserScramCredentials": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "DescribeQuorum": (0, 2),
    "DescribeCluster": (0, 2),
    "UpdateFeatures": (0, 2),
    "DescribeProducers": (0, 0),
    "DescribeTransactions": (0, 0),
    "ListTransactions": (0, 2),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "StreamsGroupHeartbeat": (0, 0),
    "StreamsGroupDescribe": (0, 0),
    "ShareGroupHeartbeat": (1, 1),
    "ShareGroupDescribe": (1, 1),
    "DescribeShareGroupOffsets": (0, 1),
    "AlterShareGroupOffsets": (0, 0),
    "DeleteShareGroupOffsets": (0, 0),
    "ShareFetch": (1, 2),
    "ShareAcknowledge": (1, 2),
    "InitializeShareGroupState": (0, 0),
    "ReadShareGroupState": (0, 0),
    "WriteShareGroupState": (0, 1),
    "DeleteShareGroupState": (0, 0),
    "ReadShareGroupStateSummary": (0, 1),
}
"""The versions of these APIs in Apache Kafka 4.3.1 (Produce 0 to 2 are listed too, and refused)."""

HELPERS = {api: last for api, (_, last) in ADVERTISED.items()} | {
    "Produce": 12,
    "Fetch": 12,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
}
"""The version of a step whose API is not the subject of its scenario."""


@dataclass(frozen=True)
class Scenario:
    """Steps that are played on both brokers, once for each version of the scenario's API."""

    name: str
    api: str
    steps: tuple[Step, ...]
    versions: tuple[int, ...]
    alone: bool = False


def flat(steps: "Iterable[Step | Iterable[Any]]") -> Iterator[Step]:
    """Yields the steps of nested groups, one by one."""
    for step in steps:
        if isinstance(step, Step):
            yield step
        else:
            yield from flat(step)


def scenario(name: str, api: str, *steps: Step | Iterable[Any], versions: str = "", alone: bool = False) -> Scenario:
    """`versions` is like ``"3-7"``, ``"5+"``, ``"4"`` or ``"3,8,11"``; empty means all that Apache Kafka serves.

    `alone` is for scenarios that affect the whole broker.
    """
    first, last = ADVERTISED[api]
    low, _, high = versions.partition("-")
    if versions.endswith("+"):
        low, high = versions[:-1], str(last)
    if "," in versions:
        chosen = tuple(int(each) for each in versions.split(","))
    else:
        chosen = tuple(range(max(first, int(low or first)), min(last, int(high or low or last)) + 1))
    return Scenario(f"{api}: {name}", api, tuple(flat(steps)), chosen, alone)


def ask(
    api: str,
    /,
    *,
    on: str = "main",
    v: int | None = None,
    save: Mapping[str, str] | None = None,
    until: tuple[str, Any] | None = None,
    within: float = 10.0,
    quiet: bool = False,
    mine: bool = False,
    client_id: str | bytes | None = "compat",
    correct: Callable[[bytes], bytes] | None = None,
    patient: bool = True,
    **body: Any,
) -> Step:
    return Step("ask", api, body, on, v, save or {}, until, within, quiet, mine, client_id, correct, patient)


def send(api: str, /, *, on: str = "main", v: int | None = None, client_id: str = "compat", **body: Any) -> Step:
    return Step("send", api, body, on, v, client_id=client_id)


def receive(
    *, on: str = "main", save: Mapping[str, str] | None = None, within: float = 10.0, quiet: bool = False
) -> Step:
    return Step("receive", on=on, save=save or {}, within=within, quiet=quiet)


def unanswered(*, on: str = "main", within: float = 10.0) -> Step:
    return Step("unanswered", on=on, within=within)


def raw(data: bytes | str, *, api: str = "", v: int = 0, on: str = "main", within: float = 10.0) -> Step:
    """Sends a frame unchanged, without a length before it; text is hex."""
    given = bytes.fromhex(data) if isinstance(data, str) else data
    return Step("raw", api, {"bytes": given}, on, v, within=within)


def pause(seconds: float) -> Step:
    return Step("pause", within=seconds)


def published() -> Step:
    """Waits until all parts of the broker, as its coordinators, have heard of the changes so far."""
    return Step("published", quiet=True)


def hang_up(on: str) -> Step:
    return Step("hang_up", on=on)


# ---------------------------------------------------------------- topics and their records


def create(topic: str, partitions: int = 1, **configs: str) -> list[Step]:
    """Creates a topic and waits until it is ready; its id is saved as ``$~topic``. Configs have ``_`` for the dots."""
    wanted = [{"Name": name.replace("_", "."), "Value": value} for name, value in configs.items()]
    return [
        ask(
            "CreateTopics",
            v=7,
            quiet=True,
            save={f"$id {topic}": "Topics.0.TopicId"},
            Topics=[{"Name": topic, "NumPartitions": partitions, "ReplicationFactor": 1, "Configs": wanted}],
            timeoutMs=10000,
        ),
        *ready(topic, partitions),
    ]


def ready(topic: str, partitions: int = 1) -> list[Step]:
    """Waits until the topic is described, and each of its partitions has a leader."""
    return [
        ask(
            "Metadata",
            v=8,
            quiet=True,
            until=("Topics.0.Partitions.0.LeaderId", 1),
            Topics=[{"Name": topic}],
            AllowAutoTopicCreation=False,
        ),
        *(
            ask(
                "ListOffsets",
                v=4,
                quiet=True,
                until=("Topics.0.Partitions.0.ErrorCode", 0),
                ReplicaId=-1,
                Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": index, "Timestamp": -1}]}],
            )
            for index in range(partitions)
        ),
    ]


def gone(topic: str) -> Step:
    """Waits until the topic is no longer described."""
    return ask(
        "Metadata",
        v=8,
        quiet=False,
        until=("Topics.0.ErrorCode", 3),
        Topics=[{"Name": topic}],
        AllowAutoTopicCreation=False,
    )


def produce(
    topic: str,
    *data: Any,
    partition: int = 0,
    quiet: bool = False,
    acks: int = -1,
    v: int | None = None,
    **options: Any,
) -> Step:
    """Produces to one partition; the data are a `Records`, bytes, or values of records."""
    if len(data) == 1 and (data[0] is None or (isinstance(data[0], Records | bytes) and not options)):
        content = data[0]
    else:
        content = records(*data, **options)
    return ask("Produce", v=v, quiet=quiet, **produce_body(topic, content, partition=partition, acks=acks))


def produce_body(topic: str, content: Any, *, partition: int = 0, acks: int = -1) -> dict[str, Any]:
    return {
        "Acks": acks,
        "TimeoutMs": 10000,
        "TopicData": [
            {
                "Name": topic,
                "TopicId": f"$id {topic}",
                "PartitionData": [{"Index": partition, "Records": content}],
            }
        ],
    }


def seed(topic: str, *data: Any, partition: int = 0, **options: Any) -> Step:
    """Produces the first records of a scenario; the response is not compared."""
    return produce(topic, *data, partition=partition, quiet=True, v=12, **options)


def fetch_body(topic: str, offset: int = 0, *, partition: int = 0, **more: Any) -> dict[str, Any]:
    """Returns a fetch of one partition, without a session; lower-case names belong to the partition."""
    inner = {name: more.pop(name) for name in list(more) if name in PARTITION_FIELDS}
    return {
        "MaxWaitMs": 100,
        "MinBytes": 0,
        "ReplicaId": -1,
        "Topics": [
            {
                "Topic": topic,
                "TopicId": f"$id {topic}",
                "Partitions": [{"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20, **inner}],
            }
        ],
        **more,
    }


PARTITION_FIELDS = {"CurrentLeaderEpoch", "LastFetchedEpoch", "LogStartOffset", "PartitionMaxBytes"}


def fetch(topic: str, offset: int = 0, *, v: int | None = None, on: str = "main", **more: Any) -> Step:
    return ask("Fetch", v=v, on=on, **fetch_body(topic, offset, **more))


# ---------------------------------------------------------------- groups

SUBSCRIPTION = bytes.fromhex("00000000000100017400000000")
"""A consumer's subscription, version 0, to the topic "t"; the broker forwards it unread."""

CHANGED = bytes.fromhex("0000000000010001740000000178")
"""The same subscription with user data for the assignor."""


def join_body(group: str = "~g", member: str = "", **more: Any) -> dict[str, Any]:
    return {
        "GroupId": group,
        "SessionTimeoutMs": 10000,
        "RebalanceTimeoutMs": 10000,
        "MemberId": member,
        "ProtocolType": "consumer",
        "Protocols": [{"Name": "range", "Metadata": SUBSCRIPTION}],
        **more,
    }


def join(
    member: str = "", *, v: int | None = None, on: str = "main", quiet: bool = False, save: str = "m", **more: Any
) -> Step:
    """Sends a JoinGroup with an immediate response; saves member id ``$m`` and generation ``$m.generation``."""
    saved = {f"${save}": "MemberId", f"${save}.generation": "GenerationId"}
    return ask("JoinGroup", v=v, on=on, quiet=quiet, save=saved, **join_body(member=member, **more))


def sync_body(
    group: str = "~g", member: str = "$m", *others: str, generation: Any = None, **more: Any
) -> dict[str, Any]:
    """Returns the leader's SyncGroup, with an assignment for each member that contains its name."""
    return {
        "GroupId": group,
        "GenerationId": f"{member}.generation" if generation is None else generation,
        "MemberId": member,
        "ProtocolType": "consumer",
        "ProtocolName": "range",
        "Assignments": [{"MemberId": each, "Assignment": each.encode()} for each in (member, *others)],
        **more,
    }


def sync(
    member: str = "$m", *others: str, v: int | None = None, on: str = "main", quiet: bool = False, **more: Any
) -> Step:
    return ask("SyncGroup", v=v, on=on, quiet=quiet, **sync_body("~g", member, *others, **more))


def stable(save: str = "m", **more: Any) -> list[Step]:
    """Makes a group ``~g`` with one member that has its assignment."""
    return [join(v=3, quiet=True, save=save, **more), sync(f"${save}", v=3, quiet=True)]


def becomes(state: str) -> Step:
    """Waits until the group ``~g`` is in that state."""
    return ask("DescribeGroups", v=5, quiet=True, until=("Groups.0.GroupState", state), Groups=["~g"])


def rebalancing() -> Step:
    """Waits until the group ``~g`` rebalances, as a join on another connection makes it do."""
    return becomes("PreparingRebalance")


def commit_body(
    topic: str = "~t", offset: int = 7, *, partition: int = 0, group: str = "~g", **more: Any
) -> dict[str, Any]:
    inner = {name: more.pop(name) for name in ("CommittedLeaderEpoch", "CommittedMetadata") if name in more}
    return {
        "GroupId": group,
        "MemberId": "",
        "Topics": [
            {
                "Name": topic,
                "TopicId": f"$id {topic}",
                "Partitions": [
                    {"PartitionIndex": partition, "CommittedOffset": offset, "CommittedMetadata": "note", **inner}
                ],
            }
        ],
        **more,
    }


def commit(topic: str = "~t", offset: int = 7, *, v: int | None = None, quiet: bool = False, **more: Any) -> Step:
    return ask("OffsetCommit", v=v, quiet=quiet, **commit_body(topic, offset, **more))


def committed_body(
    group: str = "~g", topic: str | None = "~t", partitions: tuple[int, ...] = (0,), **more: Any
) -> dict[str, Any]:
    """Returns an OffsetFetch in the form of each version; without a topic it requests all topics."""
    entries = None if topic is None else [{"Name": topic, "PartitionIndexes": list(partitions)}]
    by_id = (
        None if topic is None else [{"Name": topic, "TopicId": f"$id {topic}", "PartitionIndexes": list(partitions)}]
    )
    inner = {name: more.pop(name) for name in ("MemberId", "MemberEpoch") if name in more}
    return {"GroupId": group, "Topics": entries, "Groups": [{"GroupId": group, "Topics": by_id, **inner}], **more}


def committed(
    group: str = "~g",
    topic: str | None = "~t",
    *partitions: int,
    v: int | None = None,
    patient: bool = True,
    **more: Any,
) -> Step:
    return ask("OffsetFetch", v=v, patient=patient, **committed_body(group, topic, partitions or (0,), **more))
