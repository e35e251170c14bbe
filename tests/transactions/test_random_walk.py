"""A random walk over the coordinator, compared with a model: invariants after any requests in any order.

Clients of two transactional ids send valid and invalid requests, and repeat requests late; the log and the partitions
are slow, or return errors; the coordinator restarts with its log. Besides the rules here, the model has the markers of
each partition, which determine what consumers read.
"""

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.clock import ManualClock
from barnabas.errors import (
    ConcurrentTransactions,
    CoordinatorNotAvailable,
    KafkaError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    ProducerFenced,
)
from barnabas.transactions.completion import LONGEST_WAIT
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.messages import InitProducer, Marker, ProducerIdentity, TopicPartition
from barnabas.transactions.records import facts_of, record_of
from barnabas.transactions.shard import TransactionShard
from barnabas.transactions.states import DECIDED, FROM, IDLE, State
from barnabas.transactions.transaction import LAST_EPOCH, Facts
from barnabas.wire.messages.transaction_records import decode_key
from tests.coordinators.fake_runtime import FakeRuntime
from tests.kinds import kind

IDS = ("t", "u")
PARTITIONS = [TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0)]
TIMEOUT_MS = 15_000


class End(NamedTuple):
    """An EndTxn as it was sent, which may be repeated, or delivered late."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_commit: bool
    generation: int


class Walk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.level = 2
        self.ids = 1000
        old = Facts(State.COMPLETE_COMMIT, 999, LAST_EPOCH - 5, TIMEOUT_MS, start_time_ms=1, update_time_ms=2)
        self.log: list[tuple[str, Facts]] = [("u", old)]
        """The content of the log; ``u`` is old, and its epochs will be exhausted."""
        self.records = [record_of("u", old, 1)]
        self.held_log: list | None = None
        self.held_markers: list | None = None
        self.log_error: type[KafkaError] | None = None
        self.marker_error: type[KafkaError] | None = None
        self.believed = {"t": (-1, -1), "u": (old.producer_id, old.producer_epoch)}
        self.sent: list[End] = []
        self.results: dict[tuple[str, TopicPartition], list[tuple[int, int, bool]]] = {}
        self.waiting = 0
        self.fenced_in_vain: set[str] = set()
        self.start()

    # ------------------------------------------------------------ its world

    def start(self) -> None:
        self.runtime = FakeRuntime(
            self.clock,
            lambda index, deadlines: TransactionShard(
                TransactionConfig(),
                self.clock,
                deadlines,
                write=self.write,
                send_markers=self.send_markers,
                next_producer_id=self.next_producer_id,
                transaction_version=lambda: self.level,
            ),
        )
        self.coordinator = TransactionCoordinator(TransactionConfig(), self.runtime, self.clock.time_ms)
        self.runtime.start(self.records)

    def next_producer_id(self) -> int:
        self.ids += 1
        return self.ids

    def write(self, transactional_id, record, written) -> None:
        if self.log_error is not None:
            if self.level < 2 and facts_of(record[1]).state is State.PREPARE_ABORT:
                self.fenced_in_vain.add(transactional_id)
            written(self.log_error())
            return
        assert decode_key(record[0]) == transactional_id
        former, facts = self.kept(transactional_id), facts_of(record[1])
        self.check_step(transactional_id, former, facts)
        self.log.append((transactional_id, facts))
        self.records.append(record)
        if self.held_log is None:
            written(None)
        else:
            self.held_log.append(self.runtime.guarded(written))

    def check_step(self, transactional_id: str, former: Facts | None, facts: Facts) -> None:
        """Checks the transition between two records of the log."""
        if former is None:
            assert (facts.state, facts.producer_epoch) == (State.EMPTY, 0)
            return
        assert former.state in FROM[facts.state]
        if facts.producer_id == former.producer_id:
            assert facts.producer_epoch >= former.producer_epoch, "an epoch goes back"
        else:
            assert facts.producer_id > former.producer_id and facts.producer_epoch == 0
        assert facts.producer_epoch <= LAST_EPOCH
        if facts.state is State.ONGOING:
            assert former.state in IDLE or former.partitions.keys() <= facts.partitions.keys()
        elif facts.state in DECIDED:
            assert facts.partitions == former.partitions
            if facts.client_version == 2 and transactional_id not in self.fenced_in_vain:
                assert facts.producer_epoch == min(former.producer_epoch + 1, LAST_EPOCH)
            self.fenced_in_vain.discard(transactional_id)
        else:
            assert not facts.partitions

    def kept(self, transactional_id: str) -> Facts | None:
        return next((facts for name, facts in reversed(self.log) if name == transactional_id), None)

    def current(self, transactional_id: str) -> tuple[int, int]:
        """Returns the producer id and the epoch that the coordinator uses."""
        described = self.coordinator.describe(transactional_id)
        return described.producer_id, described.producer_epoch

    def send_markers(self, marker: Marker, partitions, done) -> None:
        (name,) = {name for name, facts in self.log if facts.producer_id == marker.producer_id}
        decided = self.kept(name)
        assert decided.state is (State.PREPARE_COMMIT if marker.is_commit else State.PREPARE_ABORT)
        assert (decided.producer_id, decided.producer_epoch) == (marker.producer_id, marker.producer_epoch)
        assert set(partitions) <= decided.partitions.keys()
        error = self.marker_error
        if error is None:
            for each in partitions:
                self.results.setdefault((name, each), []).append(
                    (marker.producer_id, marker.producer_epoch, marker.is_commit)
                )
        answer = dict.fromkeys(partitions, error and error())
        if self.held_markers is None:
            done(answer)
        else:
            self.held_markers.append(lambda: done(answer))

    def answered(self, _=None) -> None:
        self.waiting -= 1

    # ---------------------------------------------------------------- clients

    @initialize()
    def begins(self) -> None:
        self.init("t", False, 0)

    @rule(transactional_id=st.sampled_from(IDS), goes_on=st.booleans(), off=st.sampled_from([0, 0, -1, 1]))
    def init(self, transactional_id, goes_on, off) -> None:
        producer_id, epoch = self.believed[transactional_id]
        expected = (producer_id, epoch + off) if goes_on and producer_id >= 0 else (-1, -1)
        former = self.kept(transactional_id)

        def reply(result) -> None:
            self.answered()
            if result.error is None:
                now = (result.producer_id, result.producer_epoch)
                assert now[1] < LAST_EPOCH, "nobody is given the last epoch"
                if former is not None and not goes_on:
                    assert now > (former.producer_id, former.producer_epoch), "two producers with one epoch"
                self.believed[transactional_id] = now

        self.waiting += 1
        self.coordinator.init_producer_id(InitProducer(transactional_id, TIMEOUT_MS, *expected), reply)

    @rule(
        transactional_id=st.sampled_from(IDS),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3),
        off=st.sampled_from([0, 0, 0, 0, -1, 1]),
        generation=st.sampled_from([0, 2]),
    )
    def add(self, transactional_id, partitions, off, generation) -> None:
        producer_id, epoch = self.believed[transactional_id]
        before = self.kept(transactional_id)

        def reply(error) -> None:
            self.answered()
            if error is None:
                now = self.kept(transactional_id)
                # In memory the epoch may be higher already, after fencing whose abort is not written yet.
                assert now.state is State.ONGOING and (producer_id, epoch + off) == self.current(transactional_id)
                assert set(partitions) <= now.partitions.keys()

        self.waiting += 1
        producer = ProducerIdentity(transactional_id, producer_id, epoch + off)
        self.coordinator.add_partitions(producer, partitions, reply, client_version=generation)
        if before is None or (producer_id, epoch + off) != (before.producer_id, before.producer_epoch):
            assert self.kept(transactional_id) == before, "somebody else's partitions"

    @rule(
        transactional_id=st.sampled_from(IDS),
        off=st.sampled_from([0, 0, 0, 0, -1, 1]),
        is_commit=st.booleans(),
        generation=st.sampled_from([0, 2]),
    )
    def end(self, transactional_id, off, is_commit, generation) -> None:
        producer_id, epoch = self.believed[transactional_id]
        end = End(transactional_id, producer_id, epoch + off, is_commit, generation)
        self.sent.append(end)
        self.say(end, goes_on=True)

    @rule(
        transactional_id=st.sampled_from(IDS),
        partitions=st.lists(st.sampled_from(PARTITIONS), min_size=1, max_size=3),
        is_commit=st.booleans(),
        generation=st.sampled_from([0, 2]),
    )
    def transaction(self, transactional_id, partitions, is_commit, generation) -> None:
        self.add(transactional_id, partitions, 0, generation)
        self.end(transactional_id, 0, is_commit, generation)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def end_late(self, data) -> None:
        """Repeats an EndTxn; no client gets the response."""
        self.say(data.draw(st.sampled_from(self.sent[-8:])), goes_on=False)

    def say(self, end: End, *, goes_on: bool) -> None:
        before = self.kept(end.transactional_id)
        written = len(self.log)

        def reply(result) -> None:
            self.answered()
            if result.error is None and result.producer_id >= 0:
                assert end.generation == 2
                now = self.kept(end.transactional_id)
                after = facts_after(now)
                if before is now:
                    assert is_done(end, before), "it was not this one that was done"
                assert (result.producer_id, result.producer_epoch) == after
                assert result.producer_epoch < LAST_EPOCH
                if goes_on:
                    self.believed[end.transactional_id] = after

        self.waiting += 1
        self.coordinator.end(ProducerIdentity(*end[:3]), end.is_commit, reply, client_version=end.generation)
        self.check_end(end, before, [facts for name, facts in self.log[written:] if name == end.transactional_id])

    @staticmethod
    def check_end(end: End, before: Facts | None, written: list[Facts]) -> None:
        """Checks that an EndTxn ends only the transaction that it was sent for."""
        if not written:
            return
        assert before is not None
        assert (end.producer_id, end.epoch) == (before.producer_id, before.producer_epoch), "a late end ends it"
        assert written[0].state is (State.PREPARE_COMMIT if end.is_commit else State.PREPARE_ABORT)
        if end.is_commit or end.generation == 0:
            assert before.state is State.ONGOING, "an end of nothing"

    @rule(transactional_id=st.sampled_from(IDS), off=st.sampled_from([0, 0, -1]))
    def verify(self, transactional_id, off) -> None:
        producer_id, epoch = self.believed[transactional_id]
        found = self.coordinator.verify_partitions(
            ProducerIdentity(transactional_id, producer_id, epoch + off), PARTITIONS
        )
        for each, error in found.items():
            if error is None:
                open_ones = [facts for name, facts in self.log if name == transactional_id and each in facts.partitions]
                assert open_ones and off == 0
            if error is ProducerFenced:
                assert self.kept(transactional_id) is not None

    # ----------------------------------------------------- slow, out of order

    @rule(
        what=st.sampled_from([
            "log is slow", "markers are slow", "log refuses", "markers are refused",
            "level", "time", "restart", "resign",
        ]),
        data=st.data(),
    )  # fmt: skip
    def trouble(self, what, data) -> None:
        if what == "log is slow":
            self.held_log = self.held_log or []
        elif what == "markers are slow":
            self.held_markers = self.held_markers or []
        elif what == "log refuses":
            self.log_error = data.draw(st.sampled_from([CoordinatorNotAvailable, NotEnoughReplicas]))
        elif what == "markers are refused":
            self.marker_error = NotLeaderOrFollower
        elif what == "level":
            self.level = data.draw(st.sampled_from([0, 1, 2, 2]))
        elif what == "time":
            self.clock.advance(data.draw(st.sampled_from([1, 5, 25])))
        elif what == "restart":
            self.restart()
        else:
            self.resign()

    @rule()
    def all_is_well(self) -> None:
        self.log_error = self.marker_error = None
        self.log_catches_up()
        self.markers_catch_up()

    def log_catches_up(self) -> None:
        held, self.held_log = self.held_log or [], None
        for written in held:
            written(None)

    def markers_catch_up(self) -> None:
        held, self.held_markers = self.held_markers or [], None
        for done in held:
            done()

    def restart(self) -> None:
        """Restarts. Records that are not safe yet may be in the log; waiting requests get no response."""
        self.runtime.kill()
        self.held_log = self.held_markers = None
        self.waiting = 0
        self.fenced_in_vain.clear()
        self.start()

    def resign(self) -> None:
        """Another node leads for a while: all requests get an error, and later callbacks are ignored."""
        self.runtime.resign()
        assert self.waiting == 0, "somebody waits for an answer that never comes"
        self.log_catches_up()
        self.markers_catch_up()
        assert not self.coordinator.list_transactions().transactions
        self.fenced_in_vain.clear()
        self.runtime.start(self.records)

    # --------------------------------------------------------- what must hold

    @invariant()
    def no_transaction_ends_both_ways(self) -> None:
        for (name, partition), raised in self.results.items():
            ways: dict[tuple[int, int, int], set[bool]] = {}
            decisions = [facts for other, facts in self.log if other == name and facts.state in DECIDED]
            for producer_id, epoch, is_commit in raised:
                number = sum((facts.producer_id, facts.producer_epoch) < (producer_id, epoch) for facts in decisions)
                if all(facts.client_version == 2 for facts in decisions):
                    ways.setdefault((producer_id, epoch, number), set()).add(is_commit)
            assert all(len(each) == 1 for each in ways.values()), f"{partition} was told both"

    @invariant()
    def memory_is_what_the_log_says(self) -> None:
        if (self.held_log, self.held_markers, self.log_error, self.marker_error) != (None, None, None, None):
            return
        assert self.waiting == 0, "somebody waits for an answer that never comes"
        if any(facts.state in DECIDED for facts in map(self.kept, IDS) if facts is not None):
            self.clock.advance(LONGEST_WAIT)  # all retries are done
        for name in IDS:
            if self.kept(name) is None:
                continue
            now, kept = self.coordinator.describe(name), self.kept(name)
            assert kept.state not in DECIDED, "a decision is not carried out"
            # An epoch that was raised for fencing is used, even if the abort could not be written.
            ahead = name in self.fenced_in_vain
            assert now.producer_id == kept.producer_id
            assert kept.producer_epoch <= now.producer_epoch <= kept.producer_epoch + ahead
            assert (now.state, set(now.partitions)) == (kept.state.title, set(kept.partitions))
            assert self.is_free(name), "a pending state that nothing clears"

    def is_free(self, name: str) -> bool:
        """Returns whether its producer can add a partition without ConcurrentTransactions."""
        now = self.coordinator.describe(name)
        results = []
        producer = ProducerIdentity(name, now.producer_id, now.producer_epoch)
        self.coordinator.add_partitions(producer, now.partitions, results.append)
        return list(map(kind, results)) != [ConcurrentTransactions]

    def teardown(self) -> None:
        """Checks that no request waits after the faults, and that replaying the log gives the same state."""
        self.all_is_well()
        self.memory_is_what_the_log_says()
        names = [name for name in IDS if self.kept(name) is not None and name not in self.fenced_in_vain]
        before = [self.coordinator.describe(name) for name in names]
        self.restart()
        for former in before:
            now = self.coordinator.describe(former.transactional_id)
            assert now._replace(partitions=set(now.partitions)) == former._replace(partitions=set(former.partitions))


def is_done(end: End, facts: Facts) -> bool:
    """Returns whether these facts are the result of that EndTxn."""
    if facts.previous_producer_id != facts.producer_id and facts.producer_epoch == 0:
        return (end.producer_id, end.epoch) == (facts.previous_producer_id, LAST_EPOCH - 1)
    return (end.producer_id, end.epoch + 1) == (facts.producer_id, facts.producer_epoch)


def facts_after(facts: Facts) -> tuple[int, int]:
    """Returns producer id and epoch of the client after that decision."""
    if facts.state in DECIDED and facts.next_producer_id >= 0:
        return facts.next_producer_id, 0
    return facts.producer_id, facts.producer_epoch


Walk.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestWalk = Walk.TestCase
