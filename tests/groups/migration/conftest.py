"""Consumer groups with members of both protocols, as the world of scenario files.

The commands are those of ``tests/groups/consumer`` and these. A member of the classic protocol goes by its name: ``a``
remembers its member id, its generation and its partitions. Member ids of the coordinator are printed as the names of
their members.
"""

import struct

import pytest

from barnabas.errors import KafkaError
from barnabas.groups.messages import Join, JoinResult, LeavingMember, OffsetCommit, OffsetToCommit, Sync, SyncResult
from barnabas.wire.messages import group_records as wire
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.groups.conftest import error_name, milliseconds
from tests.groups.consumer.conftest import World as ConsumerWorld


def subscription(topics: list[str], owned: dict[str, list[int]], version: int) -> bytes:
    kind = ConsumerProtocolSubscription.TopicPartition
    owns = [kind(topic=topic, partitions=partitions) for topic, partitions in owned.items()]
    return ConsumerProtocolSubscription(topics=topics, owned_partitions=owns).encode_prefixed(version)


def assignment(partitions: dict[str, list[int]], version: int, user_data: bytes | None = None) -> bytes:
    kind = ConsumerProtocolAssignment.TopicPartition
    listed = [kind(topic=topic, partitions=indexes) for topic, indexes in partitions.items()]
    return ConsumerProtocolAssignment(assigned_partitions=listed, user_data=user_data).encode_prefixed(version)


def parse(text: str) -> dict[str, list[int]]:
    """Parses ``t-0,1+u-2``."""
    pairs = (each.rpartition("-") for each in text.split("+") if each)
    return {topic: [int(each) for each in indexes.split(",")] for topic, _, indexes in pairs}


def listed(partitions: dict[str, list[int]]) -> str:
    return "+".join(f"{topic}-{','.join(map(str, indexes))}" for topic, indexes in partitions.items()) or "nothing"


class ClassicClient:
    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.has: dict[str, list[int]] = {}


class World(ConsumerWorld):
    def __init__(self) -> None:
        super().__init__()
        self.machine.configure({"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"})
        self.machine.restart()
        self.classics: dict[str, ClassicClient] = {}

    def do_config(self, words, options) -> None:
        super().do_config(words, options)
        self.machine.restart()

    def classic(self, name: str) -> ClassicClient:
        return self.classics.setdefault(name, ClassicClient(name))

    def say(self, text: str) -> None:
        for client in self.classics.values():
            if client.member_id:
                text = text.replace(client.member_id, client.name)
        super().say(text)

    def know(self, client: ClassicClient, member_id: str) -> None:
        """Prints the id as the client's name from now on, and in earlier output."""
        if member_id:
            client.member_id = member_id
            self.printed = [each.replace(member_id, client.name) for each in self.printed]

    def tell_GroupMetadata(self, _, value: wire.GroupMetadataValue) -> str:
        has = [
            f"{each.member_id} {listed(self.assigned(each.assignment)) if each.assignment else '-'}"
            for each in sorted(value.members, key=lambda each: each.member_id)
        ]
        return f"in generation {value.generation} by {value.protocol or '-'}: {', '.join(has) or 'nobody'}"

    @staticmethod
    def assigned(data: bytes) -> dict[str, list[int]]:
        found = ConsumerProtocolAssignment.decode_prefixed(data)
        return {each.topic: list(each.partitions) for each in found.assigned_partitions}

    # ------------------------------------------------------- classic requests

    def do_joingroup(self, words, options) -> None:
        """``joingroup a topics=t+u owned=t-0,1 protocols=range,sticky version=9``; the owned partitions are optional.

        A protocol with a question mark, ``protocols=range,sticky?``, has metadata that cannot be read.
        """
        client = self.classic(words[0])
        protocols = tuple(
            (name.rstrip("?"), self.said(client, options, name))
            for name in options.get("protocols", "range").split(",")
            if name
        )
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
            protocols,
            knows_member_id_required=version >= 4,
            knows_skip_assignment=version >= 9,
        )
        self.machine.coordinator.join(join, lambda result: self.joined(client, result))

    def said(self, client: ClassicClient, options, protocol: str) -> bytes:
        if options.get("topics") == "?" or protocol.endswith("?"):
            return b"?"
        owned = parse(options["owned"]) if "owned" in options else ({} if protocol == "range" else client.has)
        version = int(options.get("says", 1))
        return subscription([each for each in options.get("topics", "t").split("+") if each], owned, version)

    def joined(self, client: ClassicClient, result: JoinResult) -> None:
        self.know(client, result.member_id)
        if result.error:
            super().say(f"{client.name}: {error_name(result.error)}")
            return
        client.generation = result.generation_id
        text = f"{client.name}: joined {result.generation_id}, {result.protocol_name}"
        text += f", led by {result.leader}" if result.leader else ""
        self.say(text + (" of " + " ".join(each.member_id for each in result.members) if result.members else ""))

    def do_syncgroup(self, words, options) -> None:
        """``syncgroup a``; as a leader: ``syncgroup a a=t-0,1 b=t-2,3``"""
        client = self.classic(words[0])
        data = b"u" if "custom" in words else None
        brought = [
            (self.classics[name].member_id, assignment(parse(value), 1, data))
            for name, value in options.items()
            if name in self.classics
        ]
        sync = Sync(
            options.get("group", "g"),
            int(options.get("generation", client.generation)),
            options.get("id", client.member_id),
            options.get("instance"),
            options.get("type", "consumer"),
            options.get("protocol", "range"),
            brought,
        )
        self.machine.coordinator.sync(sync, lambda result: self.synced(client, result))

    def synced(self, client: ClassicClient, result: SyncResult) -> None:
        if result.error:
            self.say(f"{client.name}: {error_name(result.error)}")
            return
        client.has = self.assigned(result.assignment)
        (version,) = struct.unpack_from(">h", result.assignment)
        self.say(f"{client.name}: has {listed(client.has)} (version {version})")

    def do_heartbeat(self, words, options) -> None:
        for name in words:
            client = self.classic(name)
            try:
                self.machine.coordinator.heartbeat(
                    options.get("group", "g"),
                    options.get("id", client.member_id),
                    options.get("instance"),
                    int(options.get("generation", client.generation)),
                )
            except KafkaError as error:
                self.say(f"{name}: {error_name(error)}")
            else:
                self.say(f"{name}: ok")

    def do_leavegroup(self, words, options) -> None:
        """``leavegroup a b``, or ``leavegroup instance=i`` as an administrator."""
        instance = options.get("instance")
        ids = [self.classics[name].member_id if name in self.classics else name for name in words] or [""]
        for answer in self.machine.coordinator.leave("g", [LeavingMember(each, instance) for each in ids]):
            who = answer.member_id or answer.group_instance_id or "nobody"
            self.say(f"{who}: {error_name(answer.error) if answer.error else 'left'}")

    def do_again(self, words, options) -> None:
        """Makes each of these rejoin and sync, as its heartbeat demands. Nothing is printed."""
        extra = " ".join(f"{name}={value}" for name, value in options.items())
        lines = [self.command(f"{verb} {name} {extra}") for name in words for verb in ("joingroup", "syncgroup")]
        self.printed = [each for line in lines for each in line.splitlines() if " has " in each and "log:" not in each]
        self.printed = [each for each in self.printed if each.startswith(tuple(f"{name}:" for name in words))]

    def do_stable(self, words, options) -> None:
        """``stable a=t-0,1 b=t-2,3``: a stable classic group with this assignment."""
        extra = " ".join(f"{name}={value}" for name, value in options.items() if name not in options or len(name) > 1)
        names = [name for name in options if len(name) == 1]
        for name in names:
            self.command(f"joingroup {name} id='' {extra}")
            self.command(f"joingroup {name} {extra}")
        self.machine.clock.advance(0)
        for name in names[:-1]:
            self.command(f"joingroup {name} {extra}")
        protocol = options.get("protocols", "range").split(",")[0]
        for name in names[1:]:
            self.command(f"syncgroup {name} protocol={protocol}")
        brought = " ".join(f"{name}={options[name]}" for name in names)
        self.command(f"syncgroup {names[0]} protocol={protocol} {brought}")
        self.printed.clear()
        self.do_list((), {})

    # ----------------------------------------------------------------- offsets

    def do_commitas(self, words, options) -> None:
        """``commitas a t-0=5``: a classic member commits."""
        client = self.classic(words[0])
        offsets = [
            OffsetToCommit(name.rpartition("-")[0], int(name.rpartition("-")[2]), int(value))
            for name, value in options.items()
            if "-" in name
        ]
        generation = int(options.get("generation", client.generation))
        commit = OffsetCommit("g", offsets, generation, client.member_id, knows_member_epochs="8" not in words)
        try:
            self.machine.coordinator.commit_offsets(
                commit, lambda errors: self.say(" ".join(error_name(each) if each else "ok" for each in errors))
            )
        except KafkaError as error:
            self.say(error_name(error))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(scope="session")
def new_world() -> type[World]:
    return World
