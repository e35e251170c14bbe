"""Groups with members of the classic and of the consumer protocol, which change their type while they are used."""

from typing import Any

from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from ..play import Step
from ..steps import ask, commit, join, scenario, stable, sync
from .consumer_groups import AT_ONCE, enter, leave, listed, refused, shown
from .consumer_groups import beat as consumer_beat
from .groups import beat, protocols
from .groups import leave as classic_leave

TOPIC = "migrating"
"""One topic for all scenarios: a subscription is bytes, which cannot contain a scenario's names."""


def topic() -> Step:
    """Creates it with the default number of partitions, two, if it does not exist."""
    return ask(
        "Metadata",
        v=12,
        quiet=True,
        until=("Topics.0.ErrorCode", 0),
        save={f"$id {TOPIC}": "Topics.0.TopicId"},
        Topics=[{"Name": TOPIC}],
        AllowAutoTopicCreation=True,
    )


def reads(*owned: int, version: int = 1, topics: tuple[str, ...] = (TOPIC,)) -> bytes:
    """Returns a subscription with the member's owned partitions."""
    kind = ConsumerProtocolSubscription.TopicPartition
    has = [kind(topic=TOPIC, partitions=list(owned))] if owned else []
    return ConsumerProtocolSubscription(topics=list(topics), owned_partitions=has).encode_prefixed(version)


def has(*partitions: int, version: int = 1, data: bytes | None = None) -> bytes:
    kind = ConsumerProtocolAssignment.TopicPartition
    found = [kind(topic=TOPIC, partitions=list(partitions))] if partitions else []
    return ConsumerProtocolAssignment(assigned_partitions=found, user_data=data).encode_prefixed(version)


READER: dict[str, Any] = {"Protocols": protocols(("range", reads()))}


def classic(assignment: bytes = has(0, 1), **more: Any) -> list[Step]:
    """Makes a stable group ``~g`` of one member of the classic protocol, which has this assignment."""
    found = [{"MemberId": "$m", "Assignment": assignment}]
    joining = {**READER, **more}
    return [topic(), *AT_ONCE, join(v=3, quiet=True, **joining), sync(v=3, quiet=True, Assignments=found)]


def mixed(**more: Any) -> list[Step]:
    """Adds a member ``~c`` of the consumer protocol, for which the other has to revoke partitions."""
    return [*classic(**more), enter("~c", TOPIC)]


def again(member: str = "$m", **more: Any) -> list[Step]:
    """Joins and syncs; the member is saved as ``$m``."""
    return [join(member, quiet=True, v=3, **{**READER, **more}), sync("$m", quiet=True, v=3, Assignments=[])]


GONE_BACK = [listed(), ask("DescribeGroups", v=5, mine=True, Groups=["~g"])]

JOINING = [
    scenario(
        "a classic member after the upgrade of its group",
        "JoinGroup",
        mixed(),
        beat(v=3),
        join("$m", **READER),
        beat(v=3),
        sync(v=3, Assignments=[]),
        consumer_beat("~c"),
        shown(),
        listed(),
        join("$m", **READER),
        consumer_beat("~c"),
    ),
    scenario(
        "a classic member that keeps what it has until it is told",
        "JoinGroup",
        mixed(),
        [join("$m", Protocols=protocols(("range", reads(0, 1)))) for _ in "12"],
        beat(v=3),
        sync(v=3, Assignments=[]),
        beat(v=3),
        consumer_beat("~c"),
        join("$m", Protocols=protocols(("range", reads(0)))),
        consumer_beat("~c"),
        beat(v=3),
        shown(),
        versions="0,5,9",
    ),
    scenario(
        "a classic member that comes to a consumer group",
        "JoinGroup",
        topic(),
        AT_ONCE,
        enter("~c", TOPIC),
        join(**READER),
        join("$m", **READER),
        sync(v=3, Assignments=[]),
        consumer_beat("~c", owned={TOPIC: [0]}),
        beat(v=3),
        join("$m", **READER),
        sync(v=3, Assignments=[]),
        beat(v=3),
        shown(),
    ),
    scenario(
        "a classic member that may not come to a consumer group",
        "JoinGroup",
        topic(),
        AT_ONCE,
        enter("~c", TOPIC),
        join(ProtocolType="connect"),
        join(Protocols=[]),
        join("somebody", Protocols=protocols(("range", b"\0"))),
        join("somebody", Protocols=protocols(("range", reads()), ("sticky", reads()))),
        join("other", Protocols=protocols(("roundrobin", reads()))),
        join("other", Protocols=protocols(("sticky", reads()))),
        join("third", **READER),
        join("third", Protocols=protocols(("sticky", reads()))),
        join("fourth", Protocols=protocols(("sticky", reads()))),
        shown(),
    ),
    scenario(
        "a static member that changes its protocol in a consumer group",
        "JoinGroup",
        topic(),
        AT_ONCE,
        enter("~c", TOPIC, InstanceId="~i"),
        enter("~d", TOPIC),
        consumer_beat("~c", owned={TOPIC: [0]}, InstanceId="~i"),
        consumer_beat("~d"),
        join("unknown", GroupInstanceId="~k", **READER),
        join("unknown", GroupInstanceId="~i", **READER),
        join(GroupInstanceId="~i", **READER),
        beat(v=3, GroupInstanceId="~i"),
        sync(v=3, GroupInstanceId="~i", Assignments=[]),
        refused("~c", 3, InstanceId="~i"),
        enter("~e", TOPIC, InstanceId="~i"),
        beat(v=3, GroupInstanceId="~i"),
        versions="5+",
    ),
    scenario(
        "a static member without which there is no consumer protocol in the group",
        "JoinGroup",
        topic(),
        AT_ONCE,
        enter("~c", TOPIC, InstanceId="~i"),
        again("~me"),
        consumer_beat("~c", owned={TOPIC: [0]}, InstanceId="~i"),
        again("~me"),
        join(save="n", GroupInstanceId="~i", **READER),
        beat("$n", v=3, GroupInstanceId="~i"),
        beat(v=3),
        GONE_BACK,
        versions="5+",
    ),
    scenario(
        "an empty consumer group gives way",
        "JoinGroup",
        topic(),
        enter("~c", TOPIC),
        leave("~c"),
        commit(TOPIC, v=8),
        join("somebody", **READER),
        join(v=3, **READER),
        sync(v=3, Assignments=[]),
        listed(),
        ask("OffsetFetch", v=7, GroupId="~g", Topics=[{"Name": TOPIC, "PartitionIndexes": [0]}]),
        versions="3,9",
    ),
]

SYNCING = [
    scenario(
        "a classic member of a consumer group",
        "SyncGroup",
        mixed(),
        sync(Assignments=[]),
        join("$m", v=3, quiet=True, **READER),
        sync(Assignments=[]),
        sync(ProtocolName="sticky", Assignments=[]),
        sync(ProtocolType="connect", Assignments=[]),
        sync(generation=1, Assignments=[]),
        sync("nobody", generation=2, Assignments=[]),
        sync("~c", generation=2, Assignments=[]),
        sync(GroupInstanceId="~i", Assignments=[]),
    ),
]

BEATING = [
    scenario(
        "a classic member of a consumer group",
        "Heartbeat",
        mixed(),
        beat(),
        beat(generation=2),
        beat("nobody", 1),
        beat("~c", 2),
        beat(GroupInstanceId="~i"),
        join("$m", v=3, quiet=True, **READER),
        beat(),
        enter("~d", TOPIC),
        beat(),
    ),
]

LEAVING = [
    scenario(
        "members of both protocols leave a consumer group",
        "LeaveGroup",
        mixed(),
        again(),
        enter("~d", TOPIC),
        classic_leave("nobody"),
        classic_leave("$m"),
        classic_leave("~d"),
        shown(),
        join("me", v=3, quiet=True, **READER),
        classic_leave("~c"),
        GONE_BACK,
    ),
    scenario(
        "static members leave a consumer group",
        "LeaveGroup",
        topic(),
        enter("~c", TOPIC, InstanceId="~i"),
        enter("~d", TOPIC),
        classic_leave({"MemberId": "~d", "GroupInstanceId": "~i"}),
        classic_leave({"MemberId": "", "GroupInstanceId": "~k"}),
        classic_leave({"MemberId": "", "GroupInstanceId": "~i"}, {"MemberId": "~d", "GroupInstanceId": None}),
        shown(),
        versions="3+",
    ),
]

CHANGING = [
    scenario(
        "a classic group becomes a consumer group and is one no longer",
        "ConsumerGroupHeartbeat",
        mixed(),
        again(),
        consumer_beat("~c"),
        commit(TOPIC, v=9, MemberId="$m", GenerationIdOrMemberEpoch="$m.generation"),
        commit(TOPIC, v=9, MemberId="$m", GenerationIdOrMemberEpoch=7),
        commit(TOPIC, v=8, MemberId="~c", GenerationIdOrMemberEpoch=2),
        commit(TOPIC, v=9, MemberId="~c", GenerationIdOrMemberEpoch=2),
        leave("~c"),
        GONE_BACK,
        beat(v=3),
        join("$m", v=5, **READER),
        refused("~c", 2),
    ),
    scenario(
        "a classic group that cannot be upgraded",
        "ConsumerGroupHeartbeat",
        topic(),
        [join(v=3, GroupId="~connect", ProtocolType="connect", Protocols=protocols(("default", b"")))],
        refused("~c", 0, {}, GroupId="~connect", RebalanceTimeoutMs=60000, SubscribedTopicNames=[TOPIC]),
        refused("~c", 1, GroupId="~connect"),
        classic(has(0, data=b"custom")),
        refused("~c", 0, {}, RebalanceTimeoutMs=60000, SubscribedTopicNames=[TOPIC]),
        sync(v=3, quiet=True, Assignments=[]),
        classic_leave("$m"),
        classic(b"\0\0\0"),
        refused("~c", 0, {}, RebalanceTimeoutMs=60000, SubscribedTopicNames=[TOPIC]),
        classic_leave("$m"),
        classic(has(0), Protocols=protocols(("range", b"\0\1"))),
        refused("~c", 0, {}, RebalanceTimeoutMs=60000, SubscribedTopicNames=[TOPIC]),
        listed(),
    ),
    scenario(
        "an empty classic group gives way",
        "ConsumerGroupHeartbeat",
        stable(),
        topic(),
        classic_leave("$m"),
        enter("~c", TOPIC),
        listed(),
    ),
]

SCENARIOS = [*JOINING, *SYNCING, *BEATING, *LEAVING, *CHANGING]
