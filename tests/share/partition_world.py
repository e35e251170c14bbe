"""A share partition with a log, a clock and a store of its state, as the world of scenario files."""

from collections.abc import Callable, Sequence
from typing import Any

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorNotAvailable, KafkaError
from barnabas.share.acquiring import Wanted, acquire, without_aborted
from barnabas.share.messages import SharePartitionState, StateBatch
from barnabas.share.partition import Acknowledgement, Done, Limits, SharePartition
from barnabas.share.states import ACCEPT, GAP, REJECT, RELEASE, RENEW, RecordState

KINDS = {"accepts": ACCEPT, "releases": RELEASE, "rejects": REJECT, "misses": GAP, "renews": RENEW}


class LogBatch:
    """A batch of the log with its offsets."""

    def __init__(self, base_offset: int, last_offset: int) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset


class World:
    """Runs the lines of a scenario."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.limits = Limits(lock_seconds=30.0, delivery_count=5, record_locks=2000)
        self.log: list[LogBatch] = []
        self.log_start = 0
        self.printed: list[str] = []
        self.is_failing = self.is_waiting = False
        self.waiting: list[Done] = []
        self.share: SharePartition
        self.begin(SharePartitionState(start_offset=0))

    def begin(self, state: SharePartitionState) -> None:
        self.share = SharePartition(
            state,
            state.start_offset,
            limits=lambda: self.limits,
            clock=self.clock,
            deadlines=Deadlines(self.clock, self.clock),
            write=self.write,
        )

    def write(self, start_offset: int, complete: int, batches: Sequence[StateBatch], done: Done) -> None:
        printed = ", ".join(
            f"{each.first_offset}-{each.last_offset} {RecordState(each.delivery_state).name.lower()} "
            f"{each.delivery_count}"
            for each in batches
        )
        self.printed.append(f"  written: from {start_offset}, {complete} done with: {printed}")
        if self.is_waiting:
            self.waiting.append(done)
        else:
            done(CoordinatorNotAvailable() if self.is_failing else None)

    def __call__(self, line: str) -> str:
        """Runs one line, and returns what it prints."""
        self.printed = []
        words = line.split()
        command: Callable[..., Any] | None = getattr(self, f"do_{words[0]}", None)
        if command is not None:
            command(*words[1:])
        else:
            self.member(*words)
        return "\n".join(self.printed)

    # ------------------------------------------------------------ the world

    def do_log(self, *ranges: str) -> None:
        """``log 0-4 5-9``: the log has these batches, and no others."""
        self.log = [LogBatch(*offsets(each)) for each in ranges]

    def do_starts(self, at: str) -> None:
        """``starts 5``: the log start offset."""
        self.log_start = int(at)
        self.log = [each for each in self.log if each.last_offset >= self.log_start]

    def do_limits(self, *settings: str) -> None:
        """``limits locks=100 deliveries=3 seconds=10 renewal=no``"""
        names = {"locks": "record_locks", "deliveries": "delivery_count", "seconds": "lock_seconds"}
        for name, _, value in (each.partition("=") for each in settings):
            if name == "renewal":
                self.limits = self.limits._replace(may_renew=value == "yes")
            else:
                self.limits = self.limits._replace(**{names[name]: int(value)})

    def do_time(self, seconds: str) -> None:
        self.clock.advance(float(seconds))

    def do_writes(self, how: str) -> None:
        """``writes fail``, ``writes succeed``, ``writes wait``; ``writes end`` completes those that wait."""
        if how == "end":
            waiting, self.waiting, self.is_waiting = self.waiting, [], False
            for done in waiting:
                done(CoordinatorNotAvailable() if self.is_failing else None)
        else:
            self.is_failing, self.is_waiting = how == "fail", how == "wait"

    def do_kept(self, start: str, *batches: str) -> None:
        """``kept 3 5-6:acknowledged:1``: another leader loads this state."""
        kept = []
        for each in batches:
            span, state, count = each.split(":")
            kept.append(StateBatch(*offsets(span), RecordState[state.upper()], int(count)))
        self.share.fence()
        self.begin(SharePartitionState(start_offset=int(start), batches=kept))

    def do_state(self) -> None:
        share = self.share
        self.printed.append(f"from {share.start_offset} to {share.next_offset}, next {share.next_fetch_offset()}")
        for batch in share.batches:
            runs = ", ".join(
                f"{run.first}-{run.last} {run.state.name.lower()} {run.delivery_count}"
                + (f" {run.member_id}" if run.member_id else "")
                + (" (being written)" if run.change is not None else "")
                for run in batch.runs
            )
            self.printed.append(f"  {runs}{' (unread)' if batch.is_unread else ''}")

    # ------------------------------------------------------------ members

    def member(self, name: str, verb: str, *rest: str) -> None:
        """``anna fetches max=5 batch=2 limit aborted=3-4``, ``anna accepts 0-4 7``, ``anna says 0-1 accepts,renews``"""
        if verb == "fetches":
            self.fetch(name, *rest)
        elif verb == "leaves":
            self.share.release(name, self.answered)
        elif verb == "says":
            span, kinds = rest
            said = [Acknowledgement(*offsets(span), [KINDS[each] for each in kinds.split(",")])]
            self.share.acknowledge(name, said, self.answered)
        else:
            said = [Acknowledgement(*offsets(each), [KINDS[verb]]) for each in rest]
            self.share.acknowledge(name, said, self.answered)

    def answered(self, error: KafkaError | None) -> None:
        self.printed.append("done" if error is None else f"{type(error).__name__}: {error}")

    def fetch(self, name: str, *options: str) -> None:
        given = dict(each.partition("=")[::2] for each in options)
        share = self.share
        if not share.can_acquire():
            self.printed.append("no room")
            return
        at = share.next_fetch_offset()
        if at < self.log_start:
            share.log_start_moved(self.log_start)
            self.printed.append("gone, again")
            return
        read = [each for each in self.log if each.last_offset >= at][: int(given.get("read", 100))]
        wanted = Wanted(name, int(given.get("max", 100)), int(given.get("batch", 100)), "limit" in given)
        acquired = acquire(share, wanted, at, read)
        if "aborted" in given:
            acquired = without_aborted(share, name, acquired, [LogBatch(*offsets(given["aborted"]))])
        printed = ", ".join(f"{first}-{last} ({count})" for first, last, count in acquired)
        self.printed.append(printed or "nothing")


def offsets(text: str) -> tuple[int, int]:
    """Parses ``3-5``, or ``3`` alone."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)
