"""A transaction coordinator, its clients, its log and its partitions, as the world of scenario files.

The transactional id is ``t`` unless ``id=`` gives another one. A client goes by its name, remembers its producer id and
epoch, and uses the newer generation of transactions unless ``v=1`` is given. ``by=3`` selects the connection of a
request. Producer ids begin with 1000. Responses, records and markers are printed in the order in which they happen;
1000/3 is producer id 1000 with epoch 3.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence

import pytest

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorLoadInProgress, KafkaError, NotEnoughReplicas
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.messages import (
    EndResult,
    InitProducer,
    InitResult,
    Marker,
    Overtaken,
    ProducerIdentity,
    Record,
    TopicPartition,
)
from barnabas.transactions.records import record_of
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.states import BY_TITLE, State
from barnabas.transactions.transaction import Facts
from barnabas.wire.messages.transaction_records import decode_key, decode_value
from tests.coordinators.fake_runtime import FakeRuntime
from tests.scenarios import Speaker

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
ERRORS = {re.sub(r"(?<=[a-z])(?=[A-Z])", "_", error.__name__).upper(): error for error in KafkaError.by_code.values()}
NAMES = {error: name for name, error in ERRORS.items()}

Words = Sequence[str]
Options = dict[str, str]


def milliseconds(text: str) -> int:
    number, unit = re.fullmatch(r"(-?\d+)(ms|s|m|h|d)", text).groups()
    return int(number) * UNITS[unit]


def partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def listed(partitions: Sequence[tuple[str, int]]) -> str:
    return " ".join(f"{topic}-{number}" for topic, number in partitions)


class Client:
    def __init__(self, name: str) -> None:
        self.name = name
        self.producer_id = self.epoch = -1


class World(Speaker):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.settings: dict[str, int] = {}
        self.level = 2
        self.clients: dict[str, Client] = {}
        self.log: list[Record] = []
        self.next_id = 1000
        self.log_error: type[KafkaError] | None = None
        self.marker_errors: dict[TopicPartition, type[KafkaError]] = {}
        self.held: dict[str, list[Callable[[], None]]] = {}
        self.runtime = FakeRuntime(self.clock, self.new_shard)
        self.do_lead()

    # ---------------------------------------------------------------- around

    def new_shard(self, index: int, deadlines: Deadlines) -> TransactionShard:
        return TransactionShard(
            TransactionConfig(**self.settings),
            self.clock,
            deadlines,
            write=self.write,
            send_markers=self.send_markers,
            next_producer_id=self.next_producer_id,
            coordinator_epoch=lambda: 7,
            transaction_version=lambda: self.level,
        )

    def next_producer_id(self) -> int:
        if self.next_id < 0:
            raise CoordinatorLoadInProgress
        self.next_id += 1
        return self.next_id - 1

    def write(self, transactional_id, record, written) -> None:
        assert decode_key(record[0]) == transactional_id
        if self.log_error is not None:
            self.say("log: refused")
            written(self.log_error())
            return
        self.log.append(record)
        self.say(f"log: {self.record(*record)}")
        written = self.runtime.guarded(written)
        self.later("log", lambda: written(None))

    @staticmethod
    def record(key: bytes, value: bytes | None) -> str:
        name = decode_key(key)
        if value is None:
            return f"{name} is gone"
        kept = decode_value(value)
        text = f"{name} {State(kept.transaction_status).title} {kept.producer_id}/{kept.producer_epoch}"
        if kept.transaction_partitions:
            text += (
                f" [{listed([(each.topic, i) for each in kept.transaction_partitions for i in each.partition_ids])}]"
            )
        if kept.previous_producer_id not in (-1, kept.producer_id):
            text += f" after {kept.previous_producer_id}"
        if kept.next_producer_id != -1:
            text += f" before {kept.next_producer_id}"
        if value[:2] == b"\0\0":
            return text + " (old record)"
        return text + (" v2" if kept.client_transaction_version == 2 else "")

    def send_markers(self, marker: Marker, partitions, done) -> None:
        assert marker.coordinator_epoch == 7
        kinds = {each: self.marker_errors.get(each) for each in partitions}
        errors = {each: None if found is None else found() for each, found in kinds.items()}
        refused = {each: error for each, error in errors.items() if error is not None}
        text = f"marker: {'commit' if marker.is_commit else 'abort'} {marker.producer_id}/{marker.producer_epoch}"
        text += f" v{marker.transaction_version or 1} to {listed(partitions)}"
        self.say(text + "".join(f", {listed([each])} {NAMES[type(error)]}" for each, error in refused.items()))
        self.later("markers", lambda: done(errors))

    def later(self, what: str, call: Callable[[], None]) -> None:
        if what in self.held:
            self.held[what].append(call)
        else:
            call()

    def do_hold(self, words: Words, _) -> None:
        """Holds back further records or markers: ``hold log``, ``hold markers``."""
        self.held[words[0]] = []

    def do_release(self, words: Words, _) -> None:
        """``release log``, ``release markers``."""
        for call in self.held.pop(words[0]):
            call()

    def do_config(self, _, options: Options) -> None:
        self.settings.update({name.replace(".", "_"): milliseconds(value) for name, value in options.items()})
        self.do_restart()

    def do_level(self, words: Words, _) -> None:
        """Sets transaction.version."""
        self.level = int(words[0])

    def do_advance(self, words: Words, _) -> None:
        self.clock.advance(milliseconds(words[0]) / 1000)

    def do_restart(self, *_) -> None:
        """Kills the coordinator, and restarts it with its log."""
        if self.runtime.has(0):
            self.runtime.kill()
        self.held.clear()
        self.do_lead()

    def do_stop(self, *_) -> None:
        """Stops the coordinator, as before the broker closes its logs."""
        self.runtime.resign()

    def do_break(self, words: Words, _) -> None:
        """Makes further writes fail: ``break``, or ``break NOT_COORDINATOR``."""
        self.log_error = ERRORS[words[0]] if words else NotEnoughReplicas

    def do_mend(self, *_) -> None:
        self.log_error = None
        self.marker_errors.clear()

    def do_refuse(self, _, options: Options) -> None:
        """Makes partitions refuse markers: ``refuse x-0=NOT_LEADER_OR_FOLLOWER``."""
        self.marker_errors |= {partition(name): ERRORS[error] for name, error in options.items()}

    def do_given(self, words: Words, options: Options) -> None:
        """Writes a record to the log: ``given t CompleteCommit producer=1000 epoch=32764``."""
        transactional_id, state = words
        producer_id, epoch = int(options["producer"]), int(options["epoch"])
        facts = Facts(BY_TITLE[state], producer_id, epoch, 60_000, previous_producer_id=producer_id, client_version=2)
        self.next_id = producer_id + 1
        self.log.append(record_of(transactional_id, facts, self.level))
        self.do_restart()

    def do_lose(self, *_) -> None:
        """Makes another node the leader of the partition of ``__transaction_state``."""
        self.runtime.resign()

    def do_resign(self, *_) -> None:
        """Deletes the topic ``__transaction_state``, and creates it again."""
        self.runtime.resign()
        self.log.clear()
        self.do_lead()

    def do_lead(self, *_) -> None:
        """Makes this node the leader of that partition, with its log."""
        self.runtime.start(self.log)
        self.coordinator = TransactionCoordinator(TransactionConfig(**self.settings), self.runtime, self.clock.time_ms)

    def do_ids(self, words: Words, _) -> None:
        """``ids gone``: no producer ids are available; ``ids 2000``: the next one."""
        self.next_id = -1 if words[0] == "gone" else int(words[0])

    def do_drop(self, words: Words, _) -> None:
        """Deletes topics."""
        self.runtime.only.topics_deleted(words)

    # --------------------------------------------------------------- clients

    def client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client(name))

    def who(self, client: Client, options: Options) -> ProducerIdentity:
        """Returns the identity of a request: ``epoch=-1`` and ``epoch=+1`` are relative; ``by=3`` is its connection."""
        epoch = options.get("epoch", "+0")
        number = int(epoch)
        return ProducerIdentity(
            options.get("id", "t"),
            int(options.get("producer", client.producer_id)),
            client.epoch + number if epoch[0] in "+-" else number,
            int(options.get("by", 0)),
        )

    def do_init(self, words: Words, options: Options) -> None:
        """``init a``; ``init a again`` sends id and epoch, too."""
        client = self.client(words[0])
        transactional_id, producer_id, epoch, *_ = self.who(client, options)
        expected = (producer_id, epoch) if "again" in words else (-1, -1)
        ask = InitProducer(transactional_id, milliseconds(options.get("timeout", "60s")), *expected)

        def reply(result: InitResult) -> None:
            if result.error is None:
                client.producer_id, client.epoch = result[1:]
                self.say(f"{client.name}: has {client.producer_id}/{client.epoch}")
            else:
                assert result[1:] == (-1, -1)
                self.say(f"{client.name}: {NAMES[type(result.error)]}")

        self.coordinator.init_producer_id(ask, reply)

    def do_is(self, words: Words, options: Options) -> None:
        """``is b producer=1000 epoch=4``: sets the identity of a client."""
        client = self.client(words[0])
        client.producer_id, client.epoch = int(options["producer"]), int(options["epoch"])

    def do_add(self, words: Words, options: Options) -> None:
        """``add a x-0 x-1``."""
        name, *partitions = words
        with self.hung_up_on(name):
            self.coordinator.add_partitions(
                self.who(self.client(name), options),
                [partition(each) for each in partitions],
                lambda error: self.say(f"{name}: {NAMES[type(error)] if error else 'added'}"),
                client_version=generation(options),
            )

    def do_verify(self, words: Words, options: Options) -> None:
        name, *partitions = words
        requested = [partition(each) for each in partitions]
        found = self.coordinator.verify_partitions(self.who(self.client(name), options), requested)
        self.say(
            f"{name}: " + ", ".join(f"{listed([each])} {NAMES[type(e)] if e else 'is in'}" for each, e in found.items())
        )

    def do_commit(self, words: Words, options: Options) -> None:
        self.end(words, options, True)

    def do_abort(self, words: Words, options: Options) -> None:
        self.end(words, options, False)

    def end(self, words: Words, options: Options, is_commit: bool) -> None:
        """``commit a``; ``commit a late`` has a response that no client gets: the client has continued."""
        client = self.client(words[0])

        def reply(result: EndResult) -> None:
            text = NAMES[type(result.error)] if result.error else "committed" if is_commit else "aborted"
            if result.producer_id != -1:
                assert result.error is None
                text += f", goes on with {result.producer_id}/{result.producer_epoch}"
                if "late" not in words:
                    client.producer_id, client.epoch = result[1:]
            self.say(f"{client.name}: {text}")

        with self.hung_up_on(client.name):
            self.coordinator.end(self.who(client, options), is_commit, reply, client_version=generation(options))

    @contextlib.contextmanager
    def hung_up_on(self, name: str) -> Iterator[None]:
        """Checks that a request of an older connection than the client's newest changes nothing."""
        try:
            yield
        except Overtaken:
            self.say(f"{name}: too late, hung up on")

    # ---------------------------------------------------------------- looking

    def do_describe(self, words: Words, _) -> None:
        for transactional_id in words or ["t"]:
            try:
                found = self.coordinator.describe(transactional_id)
            except KafkaError as error:
                self.say(f"{transactional_id}: {NAMES[type(error)]}")
                continue
            age = f" for {self.clock.time_ms() - found.start_time_ms} ms" if found.start_time_ms >= 0 else ""
            self.say(
                f"{found.transactional_id}: {found.state} {found.producer_id}/{found.producer_epoch}{age}"
                f" of {found.timeout_ms} ms [{listed(found.partitions)}]"
            )

    def do_list(self, _, options: Options) -> None:
        """``list states=Ongoing,Empty producers=1000 longer=5s pattern=t.*``."""
        states, producers = (list(filter(None, options.get(name, "").split(","))) for name in ("states", "producers"))
        longer = milliseconds(options["longer"]) if "longer" in options else -1
        try:
            listing = self.coordinator.list_transactions(states, map(int, producers), longer, options.get("pattern"))
        except KafkaError as error:
            self.say(NAMES[type(error)])
            return
        for state in listing.unknown_states:
            self.say(f"there is no state {state}")
        for each in listing.transactions:
            self.say(f"{each.transactional_id} {each.producer_id} {each.state}")


def generation(options: Options) -> int:
    return 0 if options.get("v", "2") == "1" else 2


@pytest.fixture
def world() -> World:
    return World()
