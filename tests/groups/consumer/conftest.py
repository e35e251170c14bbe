"""Consumer groups, their members and their log, as the world of scenario files.

The group is ``g`` unless ``group=`` gives another one. A member goes by its name, which is its member id, and remembers
its epoch and its partitions. Responses and records are printed in the order in which they happen, the records of one
batch under one ``log:``.
"""

import re

import pytest

from barnabas.errors import KafkaError
from barnabas.groups.consumer.messages import Heartbeat, HeartbeatResult
from barnabas.groups.messages import Join, OffsetCommit, OffsetToCommit
from barnabas.wire.messages import group_records as wire
from barnabas.wire.messages.group_records import decode_key, decode_value
from tests.groups.conftest import error_name, milliseconds, turn
from tests.groups.consumer.machine import Machine
from tests.scenarios import Speaker

STATES = {0: "stable", 1: "unrevoked", 2: "unreleased"}


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.member_id = name
        self.epoch = 0
        self.assigned: dict[bytes, list[int]] = {}


class World(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(**{"group.consumer.assignment.interval.ms": "0"})
        self.machine.on_batch = self.wrote
        self.clients: dict[str, Client] = {}
        self.hashes: list[int] = []
        self.topic_names: dict[bytes, str] = {}

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    # ---------------------------------------------------------------- around

    def do_config(self, _, options) -> None:
        """``config group.consumer.max.size=2``, or ``config of=g consumer.session.timeout.ms=50000``"""
        group_id = options.pop("of", None)
        if group_id is None:
            self.machine.configure(options)
        else:
            self.machine.own_settings.setdefault(group_id, {}).update(options)

    def do_topic(self, words, _) -> None:
        """``topic t 4``: creates the topic, or gives it so many partitions."""
        name, count = words
        self.machine.change_topic(name, int(count))
        self.topic_names[self.machine.image.topics_by_name[name].id] = name

    def do_drop(self, words, _) -> None:
        for name in words:
            self.machine.change_topic(name, 0)

    def do_advance(self, words, _) -> None:
        self.machine.clock.advance(milliseconds(words[0]) / 1000)

    def do_turn(self, words, _) -> None:
        turn(self.machine.clock, *words)

    def do_restart(self, words, _) -> None:
        """``restart``, or ``restart compacted`` after a compaction of the log."""
        self.machine.restart(compacted=words == ["compacted"])

    def do_break(self, *_) -> None:
        """Makes every further write fail."""
        self.machine.is_broken = True

    def do_mend(self, *_) -> None:
        self.machine.is_broken = False

    def do_hold(self, *_) -> None:
        """Makes further records wait before they are durable."""
        self.machine.held = []

    def do_release(self, *_) -> None:
        held, self.machine.held = self.machine.held or [], None
        for written in held:
            written()

    # ---------------------------------------------------------------- records

    def wrote(self, records) -> None:
        for at, (key, value) in enumerate(records):
            self.say(("log: " if at == 0 else "     ") + self.record(key, value))

    def record(self, key: bytes, value: bytes | None) -> str:
        decoded = decode_key(key)
        found = None if value is None else decode_value(decoded, value)
        kind = re.sub(r"^ConsumerGroup|Key$", "", type(decoded).__name__)
        names = [
            str(getattr(decoded, field)) for field in ("group_id", "group", "member_id") if hasattr(decoded, field)
        ]
        what = f"{' '.join(names)} {WORDS[kind]}"
        return f"{what} {getattr(self, f'tell_{kind}')(decoded, found)}" if found is not None else f"no more: {what}"

    def tell_GroupMetadata(self, _, value: wire.GroupMetadataValue) -> str:
        return f"in generation {value.generation} of {len(value.members)}"

    def tell_OffsetCommit(self, key: wire.OffsetCommitKey, value: wire.OffsetCommitValue) -> str:
        return f"{key.topic}-{key.partition} at {value.offset}"

    def tell_Metadata(self, _, value: wire.ConsumerGroupMetadataValue) -> str:
        return f"{value.epoch}, {self.hash(value.metadata_hash)}"

    def hash(self, value: int) -> str:
        """Returns a letter for each hash."""
        if value == 0:
            return "no topics"
        if value not in self.hashes:
            self.hashes.append(value)
        return "topics " + "ABCDEFGHIJKLMNOP"[self.hashes.index(value)]

    def tell_MemberMetadata(self, _, value: wire.ConsumerGroupMemberMetadataValue) -> str:
        found = ["+".join(value.subscribed_topic_names) or "nothing"]
        for word, each in (
            ("by", value.subscribed_topic_regex),
            ("instance", value.instance_id),
            ("rack", value.rack_id),
            ("assignor", value.server_assignor),
        ):
            found += [f"{word} {each}"] if each else []
        found += ["classic"] if value.classic_member_metadata is not None else []
        return ", ".join([*found, f"{value.rebalance_timeout_ms / 1000:g}s"])

    def tell_TargetAssignmentMetadata(self, _, value: wire.ConsumerGroupTargetAssignmentMetadataValue) -> str:
        return str(value.assignment_epoch)

    def tell_TargetAssignmentMember(self, _, value: wire.ConsumerGroupTargetAssignmentMemberValue) -> str:
        return self.partitions({each.topic_id: each.partitions for each in value.topic_partitions})

    def tell_CurrentMemberAssignment(self, _, value: wire.ConsumerGroupCurrentMemberAssignmentValue) -> str:
        has, revoking = (
            {
                each.topic_id: [
                    f"{p}@{epoch}" for p, epoch in zip(each.partitions, each.assignment_epochs, strict=True)
                ]
                for each in partitions
            }
            for partitions in (value.assigned_partitions, value.partitions_pending_revocation)
        )
        found = f"{self.partitions(has)} in {value.member_epoch} after {value.previous_member_epoch}"
        found += f", {STATES.get(value.state, value.state)}"
        return found + (f", revokes {self.partitions(revoking)}" if revoking else "")

    def tell_RegularExpression(self, key, value: wire.ConsumerGroupRegularExpressionValue) -> str:
        return f"{key.regular_expression} is {'+'.join(value.topics) or 'nothing'}"

    def partitions(self, by_topic) -> str:
        found = [
            f"{self.topic_names[topic_id]}-{','.join(map(str, partitions))}"
            for topic_id, partitions in by_topic.items()
        ]
        return " ".join(sorted(found)) or "nothing"

    # --------------------------------------------------------------- members

    def do_join(self, words, options) -> None:
        """``join a topics=t+u regex=x.* instance=i assignor=range timeout=60s``"""
        for name in words:
            self.client(name).assigned = {}
            defaults = {"epoch": "0", "owned": "", "timeout": "60s"}
            if "regex" not in options:
                defaults["topics"] = "t"
            self.beat(name, defaults | options)

    def do_beat(self, words, options) -> None:
        """``beat a``: without changes. ``owned=all`` reports all assigned partitions, ``owned=t-0,1`` these."""
        for name in words:
            self.beat(name, options)

    def do_leave(self, words, options) -> None:
        self.do_beat(words, {"epoch": "-1"} | options)

    def do_away(self, words, options) -> None:
        """A static member leaves temporarily."""
        self.do_beat(words, {"epoch": "-2"} | options)

    def beat(self, name: str, options) -> None:
        client = self.client(name)
        beat = Heartbeat(
            options.get("group", "g"),
            options.get("id", client.member_id),
            int(options.get("epoch", client.epoch)),
            options.get("instance"),
            options.get("rack"),
            milliseconds(options["timeout"]) if "timeout" in options else -1,
            options["topics"].split("+") if options.get("topics") else ([] if "topics" in options else None),
            options.get("regex"),
            options.get("assignor"),
            self.owned(client, options.get("owned")),
            "me",
            "/127.0.0.1",
            options.get("version") != "0",
        )
        self.machine.coordinator.consumer.heartbeat(beat, lambda result: self.answered(client, beat, result))

    def owned(self, client: Client, text: str | None) -> dict[bytes, list[int]] | None:
        if text is None:
            return None
        if text == "all":
            return dict(client.assigned)
        topics = {name: topic_id for topic_id, name in self.topic_names.items()}
        pairs = (each.rpartition("-") for each in text.split())
        return {topics[name]: [int(p) for p in partitions.split(",")] for name, _, partitions in pairs}

    def answered(self, client: Client, beat: Heartbeat, result: HeartbeatResult) -> None:
        if result.error:
            self.say(f"{client.name}: {error_name(result.error)}")
            return
        client.epoch = result.member_epoch
        if result.member_id != client.member_id:
            client.member_id = result.member_id
        found = f"{result.member_id}: epoch {result.member_epoch}"
        if result.assignment is not None:
            client.assigned = dict(result.assignment)
            found += f", has {self.partitions(client.assigned)}"
        self.say(found)

    # ---------------------------------------------------------------- groups

    def do_describe(self, words, _) -> None:
        for group_id in words or ["g"]:
            try:
                group = self.machine.coordinator.consumer.describe(group_id)
            except KafkaError as error:
                self.say(error_name(error))
                continue
            self.say(f"{group_id}: {group.state} {group.epoch}/{group.assignment_epoch} by {group.assignor}")
            for each in group.members:
                has, target = (
                    " ".join(f"{name}-{','.join(map(str, indexes))}" for _, name, indexes in partitions) or "nothing"
                    for partitions in (each.assignment, each.target_assignment)
                )
                static = f" ({each.instance_id})" if each.instance_id else ""
                self.say(f"  {each.member_id}{static} in {each.member_epoch} has {has}, is to have {target}")

    def do_list(self, *_) -> None:
        for each in self.machine.coordinator.list_groups():
            self.say(f"{each.group_id} {each.protocol_type or '-'} {each.state} {each.type}")

    def do_delete(self, words, _) -> None:
        for group_id in words:
            self.machine.coordinator.delete(
                group_id, lambda error: self.say(f"{error_name(error) if error else 'deleted'}")
            )

    def do_interval(self, words, _) -> None:
        """Prints the heartbeat interval of the next response."""
        client = self.client(words[0])
        beat = Heartbeat("g", client.member_id, client.epoch, client_id="me", client_host="/127.0.0.1")
        self.machine.coordinator.consumer.heartbeat(
            beat, lambda result: self.say(f"{client.name}: again in {result.heartbeat_interval_ms} ms")
        )

    # --------------------------------------------------------------- offsets

    def do_commit(self, words, options) -> None:
        """``commit a t-0=5``; without a member as a simple consumer."""
        client = self.client(words[0]) if words else None
        offsets = [
            OffsetToCommit(name.rpartition("-")[0], int(name.rpartition("-")[2]), int(value))
            for name, value in options.items()
            if "-" in name
        ]
        commit = OffsetCommit(
            options.get("group", "g"),
            offsets,
            int(options.get("epoch", client.epoch if client else -1)),
            client.member_id if client else "",
            knows_member_epochs=options.get("version") != "8",
            knows_group_id_not_found=options.get("version") != "8",
        )
        try:
            self.machine.coordinator.commit_offsets(
                commit, lambda errors: self.say(" ".join(error_name(each) if each else "ok" for each in errors))
            )
        except KafkaError as error:
            self.say(error_name(error))

    def do_offsets(self, words, _) -> None:
        offsets = self.machine.coordinator.fetch_offsets(words[0] if words else "g")
        found = [f"{topic}-{p} at {at.offset}" for topic, each in offsets.items() for p, at in each.items()]
        self.say(", ".join(found) or "nothing")

    def do_classic(self, words, options) -> None:
        """``classic a``: a member of the classic protocol joins."""
        join = Join(
            options.get("group", "g"),
            options.get("id", ""),
            None,
            words[0],
            "/127.0.0.1",
            10_000,
            60_000,
            options.get("type", "consumer"),
            (("range", b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
        )
        self.machine.coordinator.join(
            join,
            lambda result: self.say(f"{words[0]}: {error_name(result.error) if result.error else 'joined'}"),
        )


WORDS = {
    "GroupMetadata": "(classic)",
    "OffsetCommit": "offset",
    "Metadata": "epoch",
    "PartitionMetadata": "partition metadata",
    "MemberMetadata": "reads",
    "TargetAssignmentMetadata": "targets of",
    "TargetAssignmentMember": "is to have",
    "CurrentMemberAssignment": "has",
    "RegularExpression": "pattern",
}


@pytest.fixture
def world() -> World:
    return World()
