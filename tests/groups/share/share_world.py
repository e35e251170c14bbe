"""Share groups, their members, the log and the persister, as the world of scenario files.

The group is ``g`` unless ``group=`` gives another one. A member goes by its name, which is its id, and remembers its
epoch. A topic's id is made of its name. Responses, records and calls of the persister are printed in the order in which
they happen.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorNotAvailable, KafkaError, NotEnoughReplicas
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.messages import Join, OffsetCommit, OffsetToCommit
from barnabas.groups.shard import GroupShard
from barnabas.groups.share.messages import Heartbeat, HeartbeatResult
from barnabas.groups.share.share_group import ShareGroup
from barnabas.wire.messages import group_records
from barnabas.wire.messages.group_records import decode_key, decode_value
from tests.coordinators.fake_runtime import FakeRuntime
from tests.groups.conftest import error_name, milliseconds, turn

DEFAULTS = {
    "group.share.max.size": 200,
    "group.share.initialize.retry.interval.ms": 30_000,
    "share.session.timeout.ms": 45_000,
    "share.heartbeat.interval.ms": 5_000,
    "share.assignment.interval.ms": 1_000,
}


class Partition(NamedTuple):
    replicas: tuple[int, ...] = (1,)


class Broker(NamedTuple):
    rack: str | None = None


class Topic(NamedTuple):
    name: str
    id: bytes
    partitions: Mapping[int, Partition]


class Image:
    """The cluster: its topics, by name and by id."""

    def __init__(self) -> None:
        self.offset = 0
        self.brokers = {1: Broker()}
        self.topics_by_name: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}

    def make(self, name: str, partitions: int, generation: int) -> None:
        topic_id = f"{name}{generation}".encode().rjust(16, b"\0")
        self.put(Topic(name, topic_id, dict.fromkeys(range(partitions), Partition())))

    def put(self, topic: Topic) -> None:
        self.offset += 1
        self.topics_by_name[topic.name] = self.topics_by_id[topic.id] = topic

    def drop(self, name: str) -> None:
        self.offset += 1
        del self.topics_by_id[self.topics_by_name.pop(name).id]


class Outcome(NamedTuple):
    error: KafkaError | None = None


class FakePersister:
    """A persister that stores start offsets, prints its calls, and may fail or be slow."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.kept: dict[tuple[str, bytes, int], tuple[int, int]] = {}
        """State epoch and start offset by group, topic id and partition."""
        self.failing: set[str] | None = None
        """The partitions whose state cannot be written; every partition if it is empty."""
        self.held: list[Callable[[], None]] | None = None

    def initialize(self, group_id, partitions, state_epoch, done) -> None:
        starts = {(topic_id, index): at for topic_id, each in partitions.items() for index, at in each.items()}

        def make() -> None:
            outcomes = self.outcomes(starts)
            made = [at for at, outcome in outcomes.items() if outcome.error is None]
            self.kept.update(((group_id, *at), (state_epoch, starts[at])) for at in made)
            done(outcomes)

        found = ", ".join(f"{self.world.place(*at)} at {start}" for at, start in starts.items())
        self.answer(f"state: {group_id} begins {found} in epoch {state_epoch}", make)

    def delete(self, group_id, partitions, done) -> None:
        partitions = list(partitions)

        def forget() -> None:
            outcomes = self.outcomes(partitions)
            for at, outcome in outcomes.items():
                if outcome.error is None:
                    self.kept.pop((group_id, *at), None)
            done(outcomes)

        found = ", ".join(self.world.place(*at) for at in partitions)
        self.answer(f"state: {group_id} forgets {found or 'nothing'}", forget)

    def outcomes(self, partitions) -> dict[tuple[bytes, int], Outcome]:
        return {at: Outcome(CoordinatorNotAvailable() if self.fails(at) else None) for at in partitions}

    def fails(self, at: tuple[bytes, int]) -> bool:
        return self.failing is not None and (not self.failing or self.world.place(*at) in self.failing)

    def answer(self, text: str, then: Callable[[], None]) -> None:
        self.world.say(text)
        if self.held is None:
            then()
        else:
            self.held.append(then)


class World:
    """A coordinator that can be restarted with its log."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.clock = ManualClock()
        self.quiet = quiet
        self.settings: dict[str, Any] = dict(DEFAULTS)
        self.image = Image()
        self.generations = 0
        self.names: dict[bytes, str] = {}
        self.log: list[tuple[bytes, bytes | None]] = []
        self.printed: list[str] = []
        self.epochs: dict[tuple[str, str], int] = {}
        """The epochs of members by group and member."""
        self.assigned: dict[tuple[str, str], dict[bytes, tuple[int, ...]]] = {}
        self.is_broken = False
        self.held: list[Callable[[], None]] | None = None
        self.persister = FakePersister(self)
        self.runtime = FakeRuntime(self.clock, self.new_shard)
        self.runtime.start()
        self.coordinator = GroupCoordinator(GroupConfig(), self.runtime, lambda: self.settings)

    def command(self, line: str) -> str:
        """Runs one line, and returns what it printed."""
        verb, *words = shlex.split(line)
        options = dict(word.split("=", 1) for word in words if "=" in word)
        try:
            getattr(self, "do_" + verb)([word for word in words if "=" not in word], options)
        except KafkaError as error:
            self.say(error_name(error))
        printed, self.printed = self.printed, []
        return "\n".join(printed)

    def say(self, text: str) -> None:
        if not self.quiet:
            self.printed.append(text)

    # ---------------------------------------------------------------- around

    def new_shard(self, index: int, deadlines: Deadlines) -> GroupShard:
        return GroupShard(
            GroupConfig(),
            self.clock,
            deadlines,
            write=self.write,
            new_uuid=lambda: "uuid",
            index=index,
            image=lambda: self.image,
            settings=lambda: self.settings,
            group_settings=lambda group_id: self.settings,
            persister=lambda: self.persister,
        )

    def write(self, group_id, records, written, producer=None, appended=lambda: None) -> None:
        if records and self.is_broken:
            self.say("log: refused")
            written(NotEnoughReplicas())
            return
        for key, value in records:
            self.log.append((key, value))
            self.say(f"log: {self.record(key, value)}")
        appended()
        if self.held is None:
            written(None)
        else:
            self.held.append(lambda: written(None))

    def place(self, topic_id: bytes, partition: int) -> str:
        return f"{self.names[topic_id]}-{partition}"

    def partitions(self, topics) -> str:
        found = [f"{self.names[bytes(each.topic_id)]}:{','.join(map(str, each.partitions))}" for each in topics]
        return f"[{' '.join(sorted(found))}]"

    def record(self, key: bytes, value: bytes | None) -> str:
        decoded = decode_key(key)
        kind = type(decoded).__name__.removeprefix("ShareGroup").removesuffix("Key")
        who = " ".join(filter(None, (getattr(decoded, "group_id", None), getattr(decoded, "member_id", None))))
        tell = getattr(self, "tell_" + kind, None)
        if tell is None:
            return type(decoded).__name__
        what = tell(decode_value(decoded, value)) if value is not None else "is gone"
        return f"{who} {NAMES[kind]} {what}"

    def tell_MemberMetadata(self, value: group_records.ShareGroupMemberMetadataValue) -> str:
        rack = f" in rack {value.rack_id}" if value.rack_id else ""
        return f"[{' '.join(value.subscribed_topic_names)}] {value.client_id}@{value.client_host}{rack}"

    def tell_Metadata(self, value: group_records.ShareGroupMetadataValue) -> str:
        return f"{value.epoch}" + ("" if value.metadata_hash else " without topics")

    def tell_TargetAssignmentMetadata(self, value: group_records.ShareGroupTargetAssignmentMetadataValue) -> str:
        return f"{value.assignment_epoch}"

    def tell_TargetAssignmentMember(self, value: group_records.ShareGroupTargetAssignmentMemberValue) -> str:
        return self.partitions(value.topic_partitions)

    def tell_CurrentMemberAssignment(self, value: group_records.ShareGroupCurrentMemberAssignmentValue) -> str:
        epochs = f"{value.previous_member_epoch} -> {value.member_epoch}"
        return f"{epochs} {self.partitions(value.assigned_partitions)}"

    def tell_StatePartitionMetadata(self, value: group_records.ShareGroupStatePartitionMetadataValue) -> str:
        parts = {"begins": self.partitions(value.initializing_topics), "has": self.partitions(value.initialized_topics)}
        parts["forgets"] = f"[{' '.join(sorted(each.topic_name for each in value.deleting_topics))}]"
        return ", ".join(f"{name} {part}" for name, part in parts.items() if part != "[]") or "nothing"

    def do_config(self, _, options) -> None:
        self.settings.update({name: int(value) for name, value in options.items()})

    def do_advance(self, words, _) -> None:
        self.clock.advance(milliseconds(words[0]) / 1000)

    def do_turn(self, words, _) -> None:
        turn(self.clock, *words)

    def do_restart(self, *_) -> None:
        """Restarts the coordinator with what the log has. Pending requests are dropped."""
        self.runtime.kill()
        if self.held is not None:
            self.held = []
        if self.persister.held is not None:
            self.persister.held = []
        self.runtime.start(self.log)

    def replay(self, log: list[tuple[bytes, bytes | None]]) -> None:
        """Replays that log, too, in the shard."""
        for offset, (key, value) in enumerate(log):
            self.runtime.only.replay(offset, -1, key, value)

    def do_break(self, *_) -> None:
        """Makes every further write fail."""
        self.is_broken = True

    def do_mend(self, *_) -> None:
        self.is_broken = False

    def do_hold(self, *_) -> None:
        """Makes further records wait before they are durable."""
        self.held = self.held or []

    def do_release(self, *_) -> None:
        held, self.held = self.held or [], None
        for written in held:
            written()

    def do_persister(self, words, _) -> None:
        """``persister fails``, or ``fails t-0``, ``works``, ``waits`` until it ``answers``."""
        how, *places = words
        if how == "fails":
            self.persister.failing = set(places)
        elif how == "works":
            self.persister.failing = None
        elif how == "waits":
            self.persister.held = self.persister.held or []
        else:
            assert how == "answers"
            while self.persister.held:  # calls that come meanwhile wait, too
                self.persister.held.pop(0)()
            self.persister.held = None

    # ---------------------------------------------------------------- topics

    def do_topic(self, words, _) -> None:
        """``topic t 3``: creates the topic, or gives it so many partitions."""
        name, count = words[0], int(words[1]) if len(words) > 1 else 1
        there = self.image.topics_by_name.get(name)
        if there is None:
            self.generations += 1
            self.image.make(name, count, self.generations)
            self.names[self.image.topics_by_name[name].id] = name
        else:
            self.image.put(there._replace(partitions=dict.fromkeys(range(count), Partition())))
        self.runtime.only.topics_changed({name})

    def do_drop(self, words, _) -> None:
        for name in words:
            self.image.drop(name)
        self.runtime.only.topics_changed(set(words))

    # --------------------------------------------------------------- members

    def do_join(self, words, options) -> None:
        """``join a t u``: topics t and u."""
        self.beat(words[0], 0, words[1:], options)

    def do_beat(self, words, options) -> None:
        for name in words:
            group = options.get("group", "g")
            topics = options["topics"].split("+") if options.get("topics") else [] if "topics" in options else None
            self.beat(name, int(options.get("epoch", self.epochs.get((group, name), 0))), topics, options)

    def do_leave(self, words, options) -> None:
        for name in words:
            self.beat(name, -1, None, options)

    def beat(self, name: str, epoch: int, topics: list[str] | None, options: Mapping[str, str]) -> None:
        group, rack = options.get("group", "g"), options.get("rack")
        client_id = options.get("client", "client")
        ask = Heartbeat(group, name, epoch, client_id, "/127.0.0.1", rack, topics)
        try:
            self.coordinator.share.heartbeat(ask, lambda result: self.beaten(group, name, result))
        except KafkaError as error:
            self.say(f"{name}: {error_name(error)}")

    def beaten(self, group: str, name: str, result: HeartbeatResult | KafkaError) -> None:
        if not isinstance(result, HeartbeatResult):
            self.say(f"{name}: {error_name(result)}")
            return
        self.epochs[group, name] = result.member_epoch
        if result.member_epoch < 0:
            self.assigned.pop((group, name), None)
            self.say(f"{name}: left")
            return
        found = ""
        if result.assignment is not None:
            self.assigned[group, name] = {each: tuple(indexes) for each, indexes in result.assignment.items()}
            places = [f"{self.names[each]}:{','.join(map(str, p))}" for each, p in result.assignment.items()]
            found = f" reads [{' '.join(sorted(places))}]"
        self.say(f"{name}: epoch {result.member_epoch}{found}")

    # ---------------------------------------------------------------- groups

    def do_describe(self, words, _) -> None:
        for group_id in words or ["g"]:
            group = self.coordinator.share.describe(group_id)
            self.say(f"{group_id}: {group.state}, epoch {group.epoch}, assigned {group.assignment_epoch}")
            for member in group.members:
                reads = " ".join(f"{name}:{','.join(map(str, p))}" for _, name, p in member.assignment)
                about = f"[{' '.join(member.subscribed_topic_names)}]"
                self.say(f"  {member.member_id} epoch {member.member_epoch} {about} reads [{reads}]")

    def do_list(self, _, __) -> None:
        for each in self.coordinator.list_groups():
            self.say(f"{each.group_id} {each.protocol_type} {each.state} {each.type}")

    def do_delete(self, words, _) -> None:
        for group_id in words or ["g"]:
            self.coordinator.delete(group_id, lambda error: self.say(error_name(error) if error else "deleted"))

    def do_expire(self, *_) -> None:
        self.runtime.only.expire_offsets()

    # --------------------------------------------------------------- offsets

    def do_kept(self, words, _) -> None:
        """Prints the group's share partitions, and what the persister stores."""
        for group_id in words or ["g"]:
            kept = self.coordinator.share.initialized(group_id)
            has = [f"{self.names[each]}:{','.join(map(str, p))}" for each, p in kept.items()]
            self.say(f"{group_id} has [{' '.join(sorted(has))}]")
        for (group_id, *at), (epoch, start) in sorted(self.persister.kept.items()):
            self.say(f"  {group_id} {self.place(*at)} at {start} of epoch {epoch}")

    def do_alter(self, words, options) -> None:
        """``alter t-0=5 t-1=0``."""
        starts: dict[bytes, dict[int, int]] = {}
        for place, start in options.items():
            name, _, index = place.rpartition("-")
            if name:
                starts.setdefault(self.image.topics_by_name[name].id, {})[int(index)] = int(start)
        self.coordinator.share.alter_offsets(options.get("group", "g"), starts, self.altered)

    def altered(self, found) -> None:
        if not isinstance(found, dict):
            self.say(error_name(found))
            return
        shown = [f"{self.place(*at)} {error_name(error) if error else 'ok'}" for at, error in found.items()]
        self.say(", ".join(shown) or "nothing to do")

    def do_forget(self, words, options) -> None:
        ids = [self.image.topics_by_name[name].id for name in words]
        self.coordinator.share.delete_offsets(options.get("group", "g"), ids, self.forgotten)

    def forgotten(self, found) -> None:
        if not isinstance(found, dict):
            self.say(error_name(found))
            return
        shown = [f"{self.names[each]} {error_name(error) if error else 'ok'}" for each, error in found.items()]
        self.say(", ".join(shown) or "nothing to do")

    # ---------------------------------------------------- other kinds of group

    def do_commit(self, _, options) -> None:
        commit = OffsetCommit(options.get("group", "g"), [OffsetToCommit("t", 0, 5)])
        self.coordinator.commit_offsets(
            commit, lambda errors: self.say(", ".join(error_name(each) if each else "ok" for each in errors))
        )

    def do_classic(self, _, options) -> None:
        join = Join(
            options.get("group", "g"), "", None, "c", "/127.0.0.1", 10_000, 10_000, "consumer", (("range", b""),)
        )
        self.coordinator.join(join, lambda result: self.say(f"classic: {error_name(result.error)}"))

    def group(self, group_id: str = "g") -> ShareGroup | None:
        try:
            return self.runtime.only.share.find(group_id)
        except KafkaError:
            return None


NAMES = {
    "MemberMetadata": "subscribes",
    "Metadata": "epoch",
    "TargetAssignmentMetadata": "assigned for",
    "TargetAssignmentMember": "is meant to read",
    "CurrentMemberAssignment": "is told",
    "StatePartitionMetadata": "state",
}
