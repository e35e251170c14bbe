"""Streams groups, their members and their log, as the world of scenario files.

The group is ``g``, and each member is a process of its own unless ``process=`` gives another one. A member goes by its
name, and remembers its epoch and its tasks. Responses and records are printed in the order in which they happen.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import KafkaError, NotEnoughReplicas
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.environment import TopicsMade, TopicToMake
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.groups.shard import GroupShard
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.member import Endpoint, Member
from barnabas.groups.streams.messages import Heartbeat, HeartbeatResult
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    decode_key,
    decode_value,
)
from tests.coordinators.fake_runtime import FakeRuntime
from tests.groups.conftest import milliseconds, turn
from tests.scenarios import Speaker

GROUP = "g"
Subtopology = StreamsGroupTopologyValue.Subtopology

DEFAULTS: Mapping[str, Any] = {
    "streams.session.timeout.ms": 45_000,
    "streams.heartbeat.interval.ms": 5_000,
    "streams.num.standby.replicas": 0,
    "streams.initial.rebalance.delay.ms": 0,
    "streams.assignment.interval.ms": 0,
    "group.streams.max.size": 100,
}


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: Mapping[int, Any]


class Partition(NamedTuple):
    replicas: tuple[int, ...] = (1,)


class Image(NamedTuple):
    topics_by_name: dict[str, Topic]
    offset: int = 0
    features: Mapping[str, int] = {}
    brokers: Mapping[int, Any] = {}

    @property
    def topics_by_id(self) -> dict[bytes, Topic]:
        return {topic.id: topic for topic in self.topics_by_name.values()}


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.epoch = 0
        self.tasks: tuple[Mapping[str, Collection[int]], ...] = ({}, {}, {})

    def owned(self) -> list[list[tuple[str, list[int]]]]:
        return [[(each, sorted(partitions)) for each, partitions in role.items()] for role in self.tasks]


def error_name(error: KafkaError) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()


def show(tasks: Mapping[str, Collection[int]]) -> str:
    return " ".join(f"{each}:{','.join(map(str, sorted(tasks[each])))}" for each in sorted(tasks)) or "-"


def ids(listed: Any) -> str:
    return show({each.subtopology_id: each.partitions for each in listed})


def roles(active: str, standby: str) -> str:
    return active if standby == "-" else f"{active} standby {standby}"


class World(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.settings = dict(DEFAULTS)
        self.image = Image({})
        self.clients: dict[str, Client] = {}
        self.subtopologies: list[Subtopology] = []
        self.log: list[tuple[bytes, bytes | None]] = []
        self.is_broken = self.is_barren = False
        self.held: list[Callable[[], object]] | None = None
        self.runtime = FakeRuntime(self.clock, self.new_shard)
        self.runtime.start()
        self.coordinator = GroupCoordinator(GroupConfig(), self.runtime, lambda: self.settings)

    def new_shard(self, index: int, deadlines: Deadlines) -> GroupShard:
        return GroupShard(
            GroupConfig(),
            self.clock,
            deadlines,
            write=self.write,
            new_uuid=lambda: "an id",
            index=index,
            image=lambda: self.image,
            settings=lambda: self.settings,
            group_settings=lambda group_id: self.settings,
            create_topics=self.create_topics,
        )

    # ---------------------------------------------------------------- around

    def write(self, group_id, records, written, producer=None, appended=None) -> None:
        if records and self.is_broken:
            self.say("log: refused")
            written(NotEnoughReplicas())
            return
        for key, value in records:
            self.log.append((key, value))
            self.say("log: " + self.record(key, value))
        if appended is not None:
            appended()
        if self.held is None:
            written(None)
        else:
            self.held.append(lambda: written(None))

    @staticmethod
    def record(key: bytes, value: bytes | None) -> str:
        decoded = decode_key(key)
        found: Any = None if value is None else decode_value(decoded, value)
        about, tell = RECORDS[type(decoded)]
        name = about(decoded)
        return f"{name} is gone" if found is None else f"{name} {tell(found)}"

    def create_topics(self, topics: list[TopicToMake], made: TopicsMade) -> None:
        if self.is_barren:
            made({each.name: "not today" for each in topics})
            return
        for each in topics:
            self.say(f"made {each.name} of {each.partitions} {dict(each.configs) or ''}".rstrip())
            self.put_topic(each.name, each.partitions)
        made({})

    def put_topic(self, name: str, partitions: int) -> None:
        self.image.topics_by_name[name] = Topic(
            name, name.encode().ljust(16), dict.fromkeys(range(partitions), Partition())
        )
        self.runtime.only.topics_changed([name])

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def do_config(self, _, options) -> None:
        for name, value in options.items():
            key = name if name.startswith("group.") else "streams." + name
            self.settings[key] = int(value)

    def do_advance(self, words, _) -> None:
        self.clock.advance(milliseconds(words[0]) / 1000)

    def do_turn(self, words, _) -> None:
        turn(self.clock, *words)

    def do_topic(self, words, _) -> None:
        self.put_topic(words[0], int(words[1]))

    def do_drop(self, words, _) -> None:
        del self.image.topics_by_name[words[0]]
        self.runtime.only.topics_changed([words[0]])

    def do_subtopology(self, words, options) -> None:
        """Adds a subtopology: its sources (``from=``, or ``read=`` for repartition topics), its sinks and its
        changelogs."""

        def infos(name: str) -> list[StreamsGroupTopologyValue.TopicInfo]:
            return [
                StreamsGroupTopologyValue.TopicInfo(
                    name=each, partitions=int(count or 0), replication_factor=0, topic_configs=[]
                )
                for each, _, count in (word.partition("*") for word in options.get(name, "").split(",") if word)
            ]

        sources = [each for each in options.get("from", "").split(",") if each]
        groups = []
        if "together" in options:
            reads = infos("read")
            groups = [
                Subtopology.CopartitionGroup(
                    source_topics=list(range(len(sources))),
                    source_topic_regex=[],
                    repartition_source_topics=list(range(len(reads))),
                )
            ]
        self.subtopologies.append(
            Subtopology(
                subtopology_id=words[0],
                source_topics=sources,
                source_topic_regex=[],
                state_changelog_topics=infos("keep"),
                repartition_sink_topics=[each for each in options.get("write", "").split(",") if each],
                repartition_source_topics=infos("read"),
                copartition_groups=groups,
            )
        )

    def do_topology(self, _, __) -> None:
        """Begins another topology."""
        self.subtopologies = []

    def do_log(self, words, _) -> None:
        self.is_broken = words == ["broken"]

    def do_hold(self, _, __) -> None:
        """Makes further records wait before they are durable."""
        self.held = []

    def do_release(self, _, __) -> None:
        """Makes all records durable."""
        held, self.held = self.held, None
        for written in held:
            written()

    def do_controller(self, words, _) -> None:
        self.is_barren = words == ["broken"]

    def do_restart(self, _, __) -> None:
        """Restarts the coordinator with its log, compacted or not, and checks that the state is the same."""
        before = self.state()
        self.held = None
        self.runtime.kill()
        last = {key: at for at, (key, _) in enumerate(self.log)}
        cleaned = [(key, value) for at, (key, value) in enumerate(self.log) if last[key] == at]
        for log in (cleaned, self.log):
            shard = self.runtime.add()
            for offset, (key, value) in enumerate(log):
                shard.replay(offset, -1, key, value)
            assert self.state() == before
        self.runtime.activate()

    def do_resign(self, _, __) -> None:
        """Loses the log, and all groups with it."""
        self.log.clear()
        self.runtime.resign()
        self.runtime.start()

    # --------------------------------------------------------------- members

    def do_join(self, words, options) -> None:
        for name in words:
            client = self.client(name)
            client.epoch, client.tasks = 0, ({}, {}, {})
            topology = StreamsGroupTopologyValue(
                epoch=int(options.get("topology", 0)), subtopologies=self.subtopologies
            )
            self.beat(
                client,
                {
                    "rebalance_timeout_ms": int(options.get("timeout", 10_000)),
                    "topology": topology,
                    "process_id": options.get("process", name),
                    "client_tags": {},
                    "active": (),
                    "standby": (),
                    "warmup": (),
                    **self.more(options),
                },
            )

    def do_beat(self, words, options) -> None:
        for name in words:
            client = self.client(name)
            if "epoch" in options:
                client.epoch = int(options["epoch"])
            self.beat(client, self.more(options))

    def do_ack(self, words, options) -> None:
        """Sends a heartbeat that reports the assigned tasks."""
        for name in words:
            active, standby, warmup = self.client(name).owned()
            more = {"active": active, "standby": standby, "warmup": warmup, **self.more(options)}
            self.beat(self.client(name), more)

    def do_leave(self, words, options) -> None:
        for name in words:
            self.beat(self.client(name), {"member_epoch": -1, **self.more(options)})

    @staticmethod
    def more(options: Mapping[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "endpoint" in options:
            host, port = options["endpoint"].split(":")
            found["user_endpoint"] = Endpoint(host, int(port))
        if "shutdown" in options:
            found["shutdown_application"] = True
        if "knows" in options:
            found["endpoint_epoch"] = int(options["knows"])
        return found

    def beat(self, client: Client, more: dict[str, Any]) -> None:
        ask = Heartbeat(GROUP, client.name, **{"member_epoch": client.epoch, "client_host": "/127.0.0.1", **more})
        self.coordinator.streams.heartbeat(ask, lambda result: self.answered(client, result))

    def answered(self, client: Client, result: HeartbeatResult) -> None:
        if result.error:
            self.say(f"{client.name}: {error_name(result.error)}")
            return
        client.epoch = result.member_epoch
        printed = ""
        if result.tasks is not None:
            client.tasks = result.tasks
            printed = " runs " + roles(show(result.tasks[0]), show(result.tasks[1]))
        status = "".join(f", {each.status.name}" for each in result.status)
        where = ""
        for each in result.endpoints or ():
            where += f", {each.endpoint.host} has {show(dict(each.active))}"
        self.say(f"{client.name}: epoch {result.member_epoch}{printed}{status}{where}")

    def do_commit(self, words, options) -> None:
        name, place = words
        topic, partition = place.rsplit("-", 1)
        client = self.client(name)
        offsets = [OffsetToCommit(topic, int(partition), 1)]
        commit = OffsetCommit(GROUP, offsets, int(options.get("epoch", client.epoch)), name)
        try:
            self.coordinator.commit_offsets(commit, lambda errors: self.committed(name, errors))
        except KafkaError as error:
            self.say(f"{name}: {error_name(error)}")

    def committed(self, name: str, errors: Sequence[KafkaError | None]) -> None:
        (error,) = errors
        self.say(f"{name}: {error_name(error) if error else 'committed'}")

    # ------------------------------------------------------------ inspection

    def do_describe(self, _, __) -> None:
        try:
            found = self.coordinator.streams.describe(GROUP)
        except KafkaError as error:
            self.say(error_name(error))
            return
        self.say(f"{found.state} epoch {found.epoch} assigned {found.assignment_epoch}")
        for member, target in found.members:
            self.say("  " + self.member(member, target))

    @staticmethod
    def member(member: Member, target: Any) -> str:
        held, revoking = member.assigned, member.revoking
        runs = roles(show(held.active), show(held.standby))
        wants = roles(show(target.active), show(target.standby)) if target else "-"
        gives = "" if revoking.is_empty else f", gives up {roles(show(revoking.active), show(revoking.standby))}"
        return f"{member.member_id} {member.state.name} epoch {member.epoch} runs {runs}{gives}, is to run {wants}"

    def do_delete(self, _, __) -> None:
        self.coordinator.delete(GROUP, lambda error: self.say(error_name(error) if error else "deleted"))

    @property
    def group(self) -> StreamsGroup | None:
        group = self.runtime.only._groups.get(GROUP)
        return group if isinstance(group, StreamsGroup) else None

    def state(self) -> Any:
        """Returns the state of the group that is in records."""
        group = self.group
        if group is None:
            return None
        return (
            group.epoch,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
            group.assignment_epoch,
            group.assignment_timestamp_ms,
            group.topology,
            group.members,
            group.targets,
            group._active,
            group._others,
        )


RECORDS: dict[type, tuple[Callable[[Any], str], Callable[[Any], str]]] = {
    StreamsGroupMetadataKey: (
        lambda key: "group",
        lambda value: f"epoch {value.epoch} validated {value.validated_topology_epoch}",
    ),
    StreamsGroupTopologyKey: (lambda key: "topology", lambda value: f"epoch {value.epoch}"),
    StreamsGroupMemberMetadataKey: (
        lambda key: f"member {key.member_id}",
        lambda value: f"of {value.process_id} topology {value.topology_epoch}",
    ),
    StreamsGroupTargetAssignmentMetadataKey: (lambda key: "targets", lambda value: f"epoch {value.assignment_epoch}"),
    StreamsGroupTargetAssignmentMemberKey: (
        lambda key: f"target {key.member_id}",
        lambda value: roles(ids(value.active_tasks), ids(value.standby_tasks)),
    ),
    StreamsGroupCurrentMemberAssignmentKey: (
        lambda key: f"current {key.member_id}",
        lambda value: (
            f"epoch {value.member_epoch} after {value.previous_member_epoch} state {value.state} "
            + roles(ids(value.active_tasks), ids(value.standby_tasks))
        ),
    ),
    OffsetCommitKey: (lambda key: f"offset {key.topic}-{key.partition}", lambda value: str(value.offset)),
    GroupMetadataKey: (lambda key: "classic group", lambda value: f"generation {value.generation}"),
}
