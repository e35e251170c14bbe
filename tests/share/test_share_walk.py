"""A share partition compared with a model of single records, under random members.

``BARNABAS_SOAK_ROUNDS`` sets a larger number of walks.
"""

import os
from collections.abc import Sequence

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import KafkaError, NotLeaderOrFollower
from barnabas.share.acquiring import Wanted, acquire
from barnabas.share.messages import SharePartitionState, StateBatch
from barnabas.share.partition import Acknowledgement, Done, Limits, SharePartition
from barnabas.share.states import ACCEPT, FINAL_STATES, GAP, REJECT, RELEASE, RENEW, RecordState
from tests.share.partition_world import LogBatch

WALKS = 150 * max(1, int(os.environ.get("BARNABAS_SOAK_ROUNDS", "20")) // 20)
MEMBERS = ("anna", "ben", "carl")
LOCK_SECONDS, DELIVERIES, LOCKS = 10.0, 3, 40


class Kept:
    """A model of the share coordinator that stores the state of each record."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.records: dict[int, tuple[int, int]] = {}
        self.fails = False
        self.waiting: list[tuple[int, Sequence[StateBatch], Done, bool]] = []
        self.is_slow = False

    def write(self, start_offset: int, complete: int, batches: Sequence[StateBatch], done: Done) -> None:
        if self.is_slow:
            self.waiting.append((start_offset, batches, done, self.fails))
        else:
            self._write(start_offset, batches, done, self.fails)

    def _write(self, start_offset: int, batches: Sequence[StateBatch], done: Done, fails: bool) -> None:
        if fails:
            done(NotLeaderOrFollower())
            return
        assert start_offset >= self.start_offset, "the start offset went back"
        self.start_offset = start_offset
        for batch in batches:
            assert batch.delivery_state != RecordState.ACQUIRED
            for offset in range(batch.first_offset, batch.last_offset + 1):
                before = self.records.get(offset)
                assert before is None or before[0] not in FINAL_STATES or before[0] == batch.delivery_state
                self.records[offset] = batch.delivery_state, batch.delivery_count
        self.records = {offset: kept for offset, kept in self.records.items() if offset >= self.start_offset}
        done(None)

    def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            self._write(*each)

    def state(self) -> SharePartitionState:
        batches: list[StateBatch] = []
        for offset, (state, count) in sorted(self.records.items()):
            last = batches[-1] if batches else None
            if last is not None and last[1] == offset - 1 and last[2:] == (state, count):
                batches[-1] = last._replace(last_offset=offset)
            else:
                batches.append(StateBatch(offset, offset, state, count))
        return SharePartitionState(start_offset=self.start_offset, batches=batches)


class Walk(RuleBasedStateMachine):
    """Members, a log, a clock and a coordinator."""

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.kept = Kept()
        self.log: list[LogBatch] = []
        self.end_offset = self.log_start = 0
        self.holders: dict[int, tuple[str, float]] = {}  # offset -> member and end of its lock
        self.finished: set[int] = set()  # accepted or rejected, with a successful response
        self.start_offset = 0
        self.open()

    def open(self) -> None:
        self.share = SharePartition(
            self.kept.state(),
            self.kept.start_offset,
            limits=lambda: Limits(LOCK_SECONDS, DELIVERIES, LOCKS),
            clock=self.clock,
            deadlines=Deadlines(self.clock, self.clock),
            write=self.kept.write,
        )
        self.holders.clear()
        self.start_offset = self.kept.start_offset

    def settle(self) -> None:
        now = self.clock.monotonic()
        self.holders = {at: (who, until) for at, (who, until) in self.holders.items() if until > now + 1e-6}

    # ------------------------------------------------------------ what happens

    @rule(sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4), hole=st.integers(0, 3))
    def produce(self, sizes: list[int], hole: int) -> None:
        self.end_offset += hole
        for size in sizes:
            self.log.append(LogBatch(self.end_offset, self.end_offset + size - 1))
            self.end_offset += size

    @rule(
        who=st.sampled_from(MEMBERS),
        max_records=st.integers(1, 30),
        batch_size=st.integers(1, 10),
        is_record_limit=st.booleans(),
        batches=st.integers(1, 5),
    )
    def fetch(self, who: str, max_records: int, batch_size: int, is_record_limit: bool, batches: int) -> None:
        if not self.share.can_acquire():
            return
        at = self.share.next_fetch_offset()
        if at < self.log_start:
            self.share.log_start_moved(self.log_start)
            return
        read = [each for each in self.log if each.last_offset >= at][:batches]
        counts = {
            offset: run.delivery_count
            for batch in self.share.batches
            for run in batch.runs
            for offset in range(run.first, run.last + 1)
        }
        acquired = acquire(self.share, Wanted(who, max_records, batch_size, is_record_limit), at, read)
        offsets = [offset for each in acquired for offset in range(each.first_offset, each.last_offset + 1)]
        assert offsets == sorted(set(offsets))
        if is_record_limit:
            assert len(offsets) <= max_records
        self.settle()
        for each in acquired:
            for offset in range(each.first_offset, each.last_offset + 1):
                assert offset not in self.holders, "acquired by two"
                assert offset not in self.finished, "acquired after it was done with"
                assert each.delivery_count == counts.get(offset, 0) + 1
                assert read[0].base_offset <= offset <= read[-1].last_offset
                self.holders[offset] = who, self.clock.monotonic() + LOCK_SECONDS

    @rule(
        who=st.sampled_from(MEMBERS),
        pick=st.tuples(st.integers(0, 100), st.integers(1, 12)),
        kinds=st.lists(st.sampled_from([GAP, ACCEPT, RELEASE, REJECT, RENEW]), min_size=1, max_size=12),
    )
    def acknowledge(self, who: str, pick: tuple[int, int], kinds: list[int]) -> None:
        self.settle()
        first = self.start_offset + pick[0] % max(self.end_offset - self.start_offset, 1)
        mine = [at for at, (holder, _) in sorted(self.holders.items()) if holder == who]
        if mine and pick[0] % 4:
            first = mine[pick[0] % len(mine)]
        last = first + pick[1] - 1
        said = kinds[:1] if len(kinds) < pick[1] else kinds[: pick[1]]
        spoken_of = range(max(first, self.share.start_offset), last + 1)
        are_mine = all(self.holders.get(at, ("", 0))[0] == who for at in spoken_of)
        answers: list[KafkaError | None] = []
        types = {at: said[at - first] if len(said) > 1 else said[0] for at in spoken_of}

        def answered(error: KafkaError | None) -> None:
            answers.append(error)
            if error is None:
                for at, kind in types.items():
                    if kind in (GAP, ACCEPT, REJECT):
                        self.finished.add(at)

        if are_mine:
            for at, kind in types.items():
                if kind == RENEW:
                    self.holders[at] = who, self.clock.monotonic() + LOCK_SECONDS
                elif not self.kept.fails:
                    del self.holders[at]
        self.share.acknowledge(who, [Acknowledgement(first, last, said)], answered)
        if are_mine and spoken_of and not self.kept.fails and not self.kept.is_slow:
            assert answers == [None]
        if answers and answers[0] is None and not are_mine:
            # No record is acquired before the start offset, or in a gap of the log.
            assert all(self.holders.get(at, (who, 0))[0] == who for at in spoken_of)

    @rule(who=st.sampled_from(MEMBERS))
    def leave(self, who: str) -> None:
        self.settle()
        self.share.release(who, lambda error: None)
        if not self.kept.fails:
            self.holders = {at: holder for at, holder in self.holders.items() if holder[0] != who}

    @rule(seconds=st.sampled_from([0.5, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.settle()

    @rule(fails=st.booleans())
    def coordinator_fails(self, fails: bool) -> None:
        if not self.kept.waiting:
            self.kept.fails = fails

    @precondition(lambda self: not self.kept.fails)
    @rule()
    def coordinator_is_slow(self) -> None:
        self.kept.is_slow = not self.kept.is_slow
        if not self.kept.is_slow:
            self.kept.finish()

    @rule(drop=st.integers(1, 3))
    def records_are_deleted(self, drop: int) -> None:
        gone, self.log = self.log[:drop], self.log[drop:]
        if gone:
            self.log_start = gone[-1].last_offset + 1

    @rule(pick=st.integers(0, 50))
    def compacted(self, pick: int) -> None:
        """Removes a batch from the log that is not the last, and that no member has acquired."""
        if len(self.log) > 1:
            del self.log[pick % (len(self.log) - 1)]

    @rule()
    def killed(self) -> None:
        """Loses unwritten state. The next leader loads the written state."""
        self.kept.waiting.clear()
        self.share.fence()
        self.open()

    # ------------------------------------------------------------ what is true

    @invariant()
    def it_holds_together(self) -> None:
        share = self.share
        assert share.start_offset >= self.start_offset, "the start offset went back"
        self.start_offset = share.start_offset
        assert share.start_offset <= share.next_offset
        at = -1
        for batch in share.batches:
            assert batch.runs and batch.first == batch.runs[0].first and batch.last == batch.runs[-1].last
            assert batch.first > at and batch.last < share.next_offset
            at = batch.first - 1
            for run in batch.runs:
                assert run.first == at + 1 and run.last >= run.first
                at = run.last
                assert (run.member_id is None) == (run.state is not RecordState.ACQUIRED)
                if run.is_available and run.last >= share.start_offset:
                    assert share.may_have_available
                    assert run.delivery_count < DELIVERIES

    @invariant()
    def whoever_holds_a_record_is_known(self) -> None:
        self.settle()
        now = self.clock.monotonic()
        if self.kept.fails or self.kept.is_slow or self.kept.waiting:
            return
        held = {
            offset: run.member_id
            for batch in self.share.batches
            for run in batch.runs
            if run.state is RecordState.ACQUIRED and run.locked_until > now
            for offset in range(max(run.first, self.share.start_offset), run.last + 1)
        }
        for offset, member in held.items():
            assert self.holders.get(offset, (member, 0))[0] == member

    def teardown(self) -> None:
        """Delivers every record of the log, and checks that it is done."""
        if not hasattr(self, "kept"):
            return
        self.kept.fails = self.kept.is_slow = False
        self.kept.finish()
        self.clock.advance(LOCK_SECONDS * 3)
        for _ in range(2000):
            at = self.share.next_fetch_offset()
            if at < self.log_start:
                self.share.log_start_moved(self.log_start)
                continue
            read = [each for each in self.log if each.last_offset >= at][:3]
            if not read:
                break
            acquired = acquire(self.share, Wanted("last", 10, 5), at, read)
            for each in acquired:
                offsets = range(each.first_offset, each.last_offset + 1)
                assert not self.finished.intersection(offsets)
                self.finished.update(offsets)
                self.share.acknowledge("last", [Acknowledgement(*each[:2], [ACCEPT])], refuse_errors)
        for batch in self.log:
            for offset in range(batch.base_offset, batch.last_offset + 1):
                assert offset in self.finished or offset < self.share.start_offset, f"{offset} was never given"
        assert not [run for batch in self.share.batches for run in batch.runs if run.is_available]


def refuse_errors(error: KafkaError | None) -> None:
    assert error is None


TestWalk = Walk.TestCase
TestWalk.settings = settings(
    max_examples=WALKS, stateful_step_count=40, derandomize=True, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)  # fmt: skip
