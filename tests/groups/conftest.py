"""A group coordinator, its clients and its log, as the world of scenario files.

The group is ``g`` unless ``group=`` gives another one. A client goes by its name: ``a`` has the client id "a", and
remembers its member id, generation and protocol. Member ids are numbered. Responses and records are printed in the
order in which they happen.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import KafkaError, NotEnoughReplicas
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.messages import (
    Join,
    JoinResult,
    LeavingMember,
    OffsetCommit,
    OffsetToCommit,
    Sync,
    SyncResult,
)
from barnabas.groups.shard import GroupShard
from barnabas.offsets.pending import Producer
from barnabas.wire.messages.group_records import GroupMetadataKey, OffsetCommitKey, decode_key, decode_value
from tests.coordinators.fake_runtime import FakeRuntime
from tests.scenarios import Speaker

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text).groups()
    return int(number) * UNITS[unit]


def turn(clock: ManualClock, direction: str, by: str) -> None:
    """Turns the time of day: ``turn back 1h``, ``turn forward 1h``."""
    clock.turn(milliseconds(by) * {"back": -1, "forward": 1}[direction])


def error_name(error: KafkaError) -> str:
    name = type(error).__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def subscription(topics: str) -> bytes:
    """Returns a consumer's metadata, version 0; "?" is metadata that cannot be read."""
    if topics == "?":
        return b"?"
    names = [name.encode() for name in topics.split("+") if name]
    parts = [b"\0\0", len(names).to_bytes(4, "big")]
    parts += [len(name).to_bytes(2, "big") + name for name in names]
    return b"".join(parts) + b"\xff\xff\xff\xff"


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.is_leader = False


class Logged(NamedTuple):
    """A record, in a producer's transaction or in none."""

    key: bytes
    value: bytes | None
    producer: Producer | None


class Ended(NamedTuple):
    """A marker."""

    producer_id: int
    is_commit: bool


class World(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.settings: dict[str, int] = {"group_initial_rebalance_delay_ms": 0}
        self.clients: dict[str, Client] = {}
        self.log: list[Logged | Ended] = []
        self.ids = 0
        self.is_broken = False
        self.held: list[Callable[[], None]] | None = None
        self.new_coordinator()

    # ---------------------------------------------------------------- around

    def new_coordinator(self) -> None:
        config = GroupConfig(**self.settings)
        self.runtime = FakeRuntime(
            self.clock,
            lambda index, deadlines: GroupShard(
                config, self.clock, deadlines, write=self.write, new_uuid=self.new_uuid, index=index
            ),
        )
        self.runtime.start()
        self.coordinator = GroupCoordinator(config, self.runtime)

    def new_uuid(self) -> str:
        self.ids += 1
        return str(self.ids)

    def write(self, group_id, records, written, producer=None, appended=None) -> None:
        if records and self.is_broken:
            self.say("log: refused")
            written(NotEnoughReplicas())
            return
        for key, value in records:
            self.log.append(Logged(key, value, producer))
            self.say(f"log: {self.record(key, value)}" + (f" by {producer.id}" if producer else ""))
        if appended is not None:
            appended()
        if self.held is None:
            written(None)
        else:
            written = self.runtime.guarded(written)
            self.held.append(lambda: written(None))

    @staticmethod
    def record(key: bytes, value: bytes | None) -> str:
        decoded = decode_key(key)
        if isinstance(decoded, OffsetCommitKey):
            name = f"{decoded.group} {decoded.topic}-{decoded.partition}"
            return f"{name} is gone" if value is None else f"{name} at {decode_value(decoded, value).offset}"
        assert isinstance(decoded, GroupMetadataKey)
        if value is None:
            return f"{decoded.group} is gone"
        group = decode_value(decoded, value)
        members = " ".join(f"{each.member_id}={each.assignment.decode()}" for each in group.members)
        about = f"{group.protocol_type or '-'} {group.protocol or '-'} leader={group.leader or '-'}"
        return f"{decoded.group} generation {group.generation} {about} [{members}]"

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def do_config(self, _, options) -> None:
        self.settings.update({name.replace(".", "_"): int(value) for name, value in options.items()})
        self.new_coordinator()

    def do_advance(self, words, _) -> None:
        self.clock.advance(milliseconds(words[0]) / 1000)

    def do_restart(self, *_) -> None:
        """Restarts the coordinator with what the log has."""
        self.runtime.kill()
        self.replay(self.runtime.add())
        self.runtime.activate()

    def replayed(self) -> GroupShard:
        """Returns a second shard that has replayed the log."""
        config = GroupConfig(**self.settings)
        deadlines = Deadlines(self.clock, self.clock)
        shard = GroupShard(config, self.clock, deadlines, write=self.write, new_uuid=self.new_uuid)
        self.replay(shard)
        return shard

    def replay(self, shard: GroupShard) -> None:
        for offset, each in enumerate(self.log):
            if isinstance(each, Ended):
                shard.replay_end_marker(*each)
            else:
                shard.replay(offset, each.producer.id if each.producer else -1, each.key, each.value)

    def do_resign(self, *_) -> None:
        """Makes another node the coordinator."""
        self.runtime.resign()

    def do_break(self, *_) -> None:
        """Makes every further write fail."""
        self.is_broken = True

    def do_mend(self, *_) -> None:
        self.is_broken = False

    def do_hold(self, *_) -> None:
        """Makes further records wait before they are durable."""
        self.held = []

    def do_release(self, *_) -> None:
        held, self.held = self.held or [], None
        for written in held:
            written()

    # --------------------------------------------------------------- members

    def do_join(self, words, options) -> None:
        client = self.client(words[0])
        version = int(options.get("version", 9))
        join = Join(
            options.get("group", "g"),
            options.get("id", client.member_id),
            options.get("instance"),
            client.name,
            "/127.0.0.1",
            milliseconds(options.get("session", "10s")),
            milliseconds(options.get("rebalance", "60s")),
            options.get("type", "consumer"),
            self.protocols(options.get("protocols", "range:t")),
            knows_member_id_required=version >= 4,
            knows_skip_assignment=version >= 9,
        )
        self.coordinator.join(join, lambda result: self.joined(client, result))

    @staticmethod
    def protocols(text: str) -> tuple[tuple[str, bytes], ...]:
        pairs = (each.partition(":") for each in text.split(",") if each)
        return tuple((name, subscription(topics)) for name, _, topics in pairs)

    def joined(self, client: Client, result: JoinResult) -> None:
        if result.error:
            self.say(f"{client.name}: {error_name(result.error)} {result.member_id}".rstrip())
            if error_name(result.error) == "MEMBER_ID_REQUIRED":
                client.member_id = result.member_id
            return
        client.member_id, client.generation = result.member_id, result.generation_id
        text = f"{client.name}: joined {result.generation_id} as {result.member_id}, {result.protocol_name}"
        text += f" by {result.leader}"
        if result.members:
            text += " of " + " ".join(each.member_id for each in result.members)
        self.say(text + (", nothing to assign" if result.skip_assignment else ""))

    def do_sync(self, words, options) -> None:
        """``sync a a=0,1 b=2``: the leader a sends the assignments."""
        client = self.client(words[0])
        assignments = [
            (self.clients[name].member_id, value.encode()) for name, value in options.items() if name in self.clients
        ]
        sync = Sync(
            options.get("group", "g"),
            int(options.get("generation", client.generation)),
            options.get("id", client.member_id),
            options.get("instance"),
            options.get("type"),
            options.get("protocol"),
            assignments,
        )
        self.coordinator.sync(sync, lambda result: self.synced(client, result))

    def synced(self, client: Client, result: SyncResult) -> None:
        found = error_name(result.error) if result.error else f"has [{result.assignment.decode()}]"
        self.say(f"{client.name}: {found}")

    def do_heartbeat(self, words, options) -> None:
        for name in words:
            client = self.client(name)
            try:
                self.coordinator.heartbeat(
                    options.get("group", "g"),
                    options.get("id", client.member_id),
                    options.get("instance"),
                    int(options.get("generation", client.generation)),
                )
            except KafkaError as error:
                self.say(f"{name}: {error_name(error)}")
            else:
                self.say(f"{name}: ok")

    def do_leave(self, words, options) -> None:
        """``leave a b``, or ``leave instance=i`` as an administrator."""
        instance = options.get("instance")
        leavers = [LeavingMember(options.get("id", self.client(name).member_id), instance) for name in words]
        try:
            answers = self.coordinator.leave(options.get("group", "g"), leavers or [LeavingMember("", instance)])
        except KafkaError as error:
            self.say(error_name(error))
            return
        for answer in answers:
            who = answer.member_id or answer.group_instance_id or "nobody"
            self.say(f"{who} {error_name(answer.error) if answer.error else 'left'}")

    def do_stable(self, words, options) -> None:
        """Makes all of these join; the first one assigns each its own name."""
        extra = "".join(f" {name}={value}" for name, value in options.items())
        for name in words:
            self.command(f"join {name} id='' {extra}")
            self.command(f"join {name} {extra}")
        self.clock.advance(0)
        for name in words[:-1]:
            self.command(f"join {name} {extra}")
        leader, *others = words
        group = options.get("group", "g")
        for name in others:
            self.command(f"sync {name} group={group}")
        assigned = " ".join(f"{name}={name}" for name in words)
        self.command(f"sync {leader} group={group} {assigned}")
        self.printed.clear()
        self.do_describe([options.get("group", "g")], {})

    # ---------------------------------------------------------------- groups

    def do_describe(self, words, _) -> None:
        for group_id in words or ["g"]:
            try:
                group = self.coordinator.describe(group_id)
            except KafkaError as error:
                self.say(error_name(error))
                continue
            self.say(f"{group_id}: {group.state} {group.protocol_type or '-'} {group.protocol_name or '-'}")
            for member in group.members:
                static = f" ({member.group_instance_id})" if member.group_instance_id else ""
                self.say(f"  {member.member_id}{static} {member.client_id}@{member.client_host}".rstrip())
                if member.metadata or member.assignment:
                    self.printed[-1] += f" has [{member.assignment.decode()}]"

    def do_list(self, _, options) -> None:
        states, types = (tuple(filter(None, options.get(name, "").split(","))) for name in ("states", "types"))
        for each in self.coordinator.list_groups(states, types):
            self.say(f"{each.group_id} {each.protocol_type or '-'} {each.state} {each.type}")

    def do_delete(self, words, _) -> None:
        for group_id in words:
            self.coordinator.delete(group_id, lambda error: self.say(f"{error_name(error) if error else 'deleted'}"))

    # --------------------------------------------------------------- offsets

    def do_commit(self, words, options) -> None:
        """``commit a t-0=5``; without a client as a simple consumer, and with ``by=1`` in the transaction of
        producer 1."""
        client = self.client(words[0]) if words else Client("")
        offsets = [
            OffsetToCommit(topic, int(partition), int(value), -1, "m" * int(options.get("metadata", 0)))
            for topic, _, partition, value in (
                (*name.rpartition("-"), value) for name, value in options.items() if "-" in name
            )
        ]
        commit = OffsetCommit(
            options.get("group", "g"),
            offsets,
            int(options.get("generation", client.generation)),
            options.get("id", client.member_id),
            options.get("instance"),
            milliseconds(options["retention"]) if "retention" in options else -1,
            int(options.get("version", 9)) >= 9,
            Producer(int(options["by"]), 0) if "by" in options else None,
        )
        try:
            self.coordinator.commit_offsets(commit, lambda errors: self.results(offsets, errors))
        except KafkaError as error:
            self.say(error_name(error))

    def results(self, requested, errors) -> None:
        results = zip(requested, errors, strict=True)
        self.say(", ".join(f"{each[0]}-{each[1]} {error_name(error) if error else 'ok'}" for each, error in results))

    def do_offsets(self, words, _) -> None:
        for group_id in words or ["g"]:
            try:
                offsets = self.coordinator.fetch_offsets(group_id)
            except KafkaError as error:
                self.say(error_name(error))
                continue
            found = [f"{topic}-{p} at {at.offset}" for topic, each in offsets.items() for p, at in each.items()]
            pending = self.runtime.shard(group_id).offsets.unstable(group_id)
            found += [f"{topic}-{p} unstable" for topic, p in pending]
            self.say(f"{group_id}: {', '.join(found) or 'nothing'}")

    def do_fetch_stable(self, words, options) -> None:
        """``fetch_stable``; or ``fetch_stable g id=a epoch=1`` as a member of a newer type."""

        def reply(error, offsets, pending) -> None:
            found = [f"{topic}-{p} at {at.offset}" for topic, each in offsets.items() for p, at in each.items()]
            found += [f"{topic}-{p} unstable" for topic, p in pending]
            self.say(f"stable: {error_name(error) if error else ', '.join(found) or 'nothing'}")

        member = (options["id"], int(options["epoch"])) if options else ()
        try:
            self.coordinator.fetch_stable_offsets(words[0] if words else "g", reply, *member)
        except KafkaError as error:
            self.say(error_name(error))

    def do_end(self, words, _) -> None:
        """``end 1 commit``: the marker of producer 1."""
        producer, how = words
        ended = Ended(int(producer), {"commit": True, "abort": False}[how])
        self.log.append(ended)
        self.say(f"log: {how} of {producer}")
        if self.held is None:
            self.runtime.only.replay_end_marker(*ended)
        else:
            self.held.append(lambda: self.runtime.only.replay_end_marker(*ended))

    def do_forget(self, words, options) -> None:
        """OffsetDelete: ``forget t-0 t-1``."""
        positions = [(topic, int(p)) for topic, _, p in (word.rpartition("-") for word in words)]
        try:
            self.coordinator.delete_offsets(
                options.get("group", "g"),
                positions,
                lambda error, errors: self.say(error_name(error)) if error else self.results(positions, errors),
            )
        except KafkaError as error:
            self.say(error_name(error))

    def do_drop(self, words, _) -> None:
        """Deletes topics."""
        self.runtime.only.topics_deleted(words)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def new_world() -> type[World]:
    return World
