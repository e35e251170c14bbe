"""A share coordinator and its log, as the world of scenario files.

A share partition is named by group, topic and partition: ``g/t/0``. Topics ``t`` and ``u`` have partitions 0 to 2 each.
State batches are ``10-14:2x1``: offsets 10 to 14 with delivery state 2 and delivery count 1. The log has two
partitions, and the number of a share partition decides which of them stores it. Responses and records are printed in
the order in which they happen; ``log 0@3`` is offset 3 of the log's partition 0.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import KafkaError, NotEnoughReplicas
from barnabas.share.config import ShareCoordinatorConfig
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.messages import Outcome, SharePartitionKey, StateBatch
from barnabas.share.shard import ShareShard
from barnabas.wire.messages.share_records import ShareSnapshotValue, decode_key, decode_value
from tests.coordinators.fake_runtime import FakeRuntime
from tests.scenarios import Speaker

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
ERRORS = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).upper(): error for error in KafkaError.by_code.values()}
NAMES = {error: name for name, error in ERRORS.items()}
PARTITIONS = range(3)

Words = Sequence[str]
Options = dict[str, str]


def milliseconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(number) * UNITS[unit]


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"\0")


def key_of(text: str) -> SharePartitionKey:
    group, topic, number = text.split("/")
    return SharePartitionKey(group, topic_id(topic), int(number))


def name_of(key) -> str:
    return f"{key.group_id}/{key.topic_id.lstrip(bytes(1)).decode()}/{key.partition}"


def batch(text: str) -> StateBatch:
    first, last, state, count = map(int, re.fullmatch(r"(\d+)-(\d+):(\d)x(-?\d+)", text).groups())
    return StateBatch(first, last, state, count)


def batches_text(batches) -> str:
    return " ".join(
        f"{each.first_offset}-{each.last_offset}:{each.delivery_state}x{each.delivery_count}" for each in batches
    )


class World(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(0)
        self.settings: dict[str, int] = {}
        self.topics = {"t", "u"}
        self.log: dict[int, list[tuple[bytes, bytes | None]]] = {0: [], 1: []}
        self.starts = {0: 0, 1: 0}
        self.log_error: type[KafkaError] | None = None
        self.held: list[tuple[int, int, Callable[[], object]]] | None = None
        self.runtime = FakeRuntime(self.clock, self.new_shard, self.index_of)
        self.coordinator = ShareCoordinator(self.runtime)
        self.load(self.log)

    # ---------------------------------------------------------------- around

    def new_shard(self, index: int, deadlines: Deadlines) -> ShareShard:
        return ShareShard(
            ShareCoordinatorConfig(**self.settings),
            self.clock,
            deadlines,
            append=partial(self.append, index),
            when_written=partial(self.when_written, index),
            has_partition=lambda topic, index: topic in map(topic_id, self.topics) and index in PARTITIONS,
            prune=partial(self.prune, index),
        )

    @staticmethod
    def index_of(key: str) -> int:
        return int(key.rpartition(":")[2]) % 2

    def append(self, index, record_key, value, appended, written) -> None:
        if self.log_error is not None:
            self.say("log: refused")
            written(self.log_error())
            return
        self.log[index].append((record_key, value))
        offset = len(self.log[index]) - 1
        self.say(f"log {index}@{offset}: {self.record(record_key, value)}")
        appended(offset)
        if self.held is None:
            written(None)
        else:
            written = self.runtime.guarded(written, index)
            self.held.append((index, offset, lambda: written(None)))

    def when_written(self, index, done) -> None:
        if any(index == each for each, _, _ in self.held or ()):
            done = self.runtime.guarded(done, index)
            self.held.append((index, len(self.log[index]), lambda: done(None)))
        else:
            done(None)

    def record(self, record_key: bytes, value: bytes | None) -> str:
        key = decode_key(record_key)
        if value is None:
            return f"{name_of(key)} is gone"
        kept = decode_value(key, value)
        text = f"{name_of(key)} "
        if isinstance(kept, ShareSnapshotValue):
            text += f"snapshot {kept.snapshot_epoch} state {kept.state_epoch}"
        else:
            text += f"update of {kept.snapshot_epoch}"
        text += f" leader {kept.leader_epoch} start {kept.start_offset} done {kept.delivery_complete_count}"
        if isinstance(kept, ShareSnapshotValue) and kept.create_timestamp != kept.write_timestamp:
            text += f" of {kept.create_timestamp} at {kept.write_timestamp}"
        return f"{text} [{batches_text(kept.state_batches)}]"

    def prune(self, index: int, offset: int) -> bool:
        if any(index == each and at <= offset for each, at, _ in self.held or ()):
            return False
        if offset > self.starts[index]:
            self.starts[index] = offset
            self.say(f"log {index}: begins at {offset}")
        return True

    def do_config(self, _, options: Options) -> None:
        """``config updates=3 prune=1m cold=1m``."""
        names = {
            "updates": "snapshot_update_records_per_snapshot",
            "prune": "state_topic_prune_interval_ms",
            "cold": "cold_partition_snapshot_interval_ms",
        }
        for name, value in options.items():
            number = int(value) if name == "updates" else milliseconds(value)
            self.settings[f"share_coordinator_{names[name]}"] = number
        self.do_restart()

    def do_advance(self, words: Words, _) -> None:
        self.clock.advance(milliseconds(words[0]) / 1000)

    def do_restart(self, *_) -> None:
        """Restarts the coordinator with its log."""
        self.held = None
        led = self.led()
        for index in led:
            self.runtime.kill(index)
        self.load(led)

    def led(self) -> list[int]:
        return [index for index in self.log if self.runtime.has(index)]

    def load(self, indexes) -> None:
        for index in indexes:
            self.runtime.start(self.log[index][self.starts[index] :], index, self.starts[index])

    def do_stop(self, *_) -> None:
        """Stops the coordinator."""
        self.give_up(self.led())

    def give_up(self, indexes) -> None:
        for index in indexes:
            self.runtime.resign(index)

    def do_strange(self, words: Words, _) -> None:
        """Adds records of newer brokers to that partition of the log: ``strange 0``."""
        self.log[int(words[0])] += [(b"\0\7whatever", b"\0\0"), (self.log[int(words[0])][0][0], b"\0\1whatever")]

    def do_hold(self, *_) -> None:
        """Makes further records wait before they are durable."""
        self.held = []

    def do_release(self, *_) -> None:
        held, self.held = self.held, None
        for _, _, call in held:
            call()

    def do_break(self, words: Words, _) -> None:
        """Makes every further write fail: ``break``, or ``break NOT_COORDINATOR``."""
        self.log_error = ERRORS[words[0]] if words else NotEnoughReplicas

    def do_mend(self, *_) -> None:
        self.log_error = None

    def do_lose(self, words: Words, _) -> None:
        """Moves the leadership of a partition of the log: ``lose 0``."""
        self.give_up([int(words[0])])

    def do_resign(self, *_) -> None:
        """Deletes the topic, and creates it again."""
        self.give_up(self.led())
        self.log, self.starts = {0: [], 1: []}, {0: 0, 1: 0}
        self.load(self.log)

    def do_drop(self, words: Words, _) -> None:
        """Deletes topics."""
        self.topics -= set(words)
        for shard in self.runtime.shards():
            shard.topics_deleted({topic_id(name) for name in words})

    # ---------------------------------------------------------------- asking

    def reply(self, name: str, what: str) -> Callable[[Outcome], None]:
        def reply(outcome: Outcome) -> None:
            if outcome.error is None:
                self.say(f"{name}: {what}" if what else f"{name}: {self.state(outcome.state)}")
            else:
                assert str(outcome.error)
                self.say(f"{name}: {NAMES[type(outcome.error)]}")

        return reply

    @staticmethod
    def state(state) -> str:
        return (
            f"state {state.state_epoch} leader {state.leader_epoch} start {state.start_offset}"
            f" done {state.delivery_complete_count} [{batches_text(state.batches)}]"
        )

    def do_init(self, words: Words, options: Options) -> None:
        """``init g/t/0 state=1 start=10``."""
        (name,) = words
        state, start = int(options.get("state", 0)), int(options.get("start", 0))
        self.coordinator.initialize(key_of(name), state, start, self.reply(name, "begun"))

    def do_read(self, words: Words, options: Options) -> None:
        """``read g/t/0 leader=3``."""
        (name,) = words
        self.coordinator.read(key_of(name), int(options.get("leader", -1)), self.reply(name, ""))

    def do_write(self, words: Words, options: Options) -> None:
        """``write g/t/0 state=1 leader=3 start=10 done=4 10-13:2x1``."""
        name, *batches = words
        state, leader, start, done = (int(options.get(each, -1)) for each in ("state", "leader", "start", "done"))
        reply = self.reply(name, "written")
        self.coordinator.write(key_of(name), state, leader, start, done, list(map(batch, batches)), reply)

    def do_tangle(self, words: Words, _) -> None:
        """Writes a number of overlapping batches: ``tangle g/t/0 1000``."""
        name, count = words[0], int(words[1])
        batches = [StateBatch(0, last, 0, count - last) for last in range(count)]
        self.coordinator.write(key_of(name), -1, -1, 0, 0, batches, self.reply(name, "written"))

    def do_summary(self, words: Words, _) -> None:
        (name,) = words
        self.reply(name, "")(self.coordinator.read_summary(key_of(name)))

    def do_delete(self, words: Words, _) -> None:
        (name,) = words
        self.coordinator.delete(key_of(name), self.reply(name, "deleted"))
