"""The checker: finds the observations of a history that no correct broker could have caused.

A pure function: it knows no clients, no broker and no clock. docs/internals/histories.md explains each anomaly.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.history import cycles, reading
from tests.history.anomaly import Anomaly
from tests.history.evidence import Evidence
from tests.history.records import FAIL, INFO, History, Operation, Send


@dataclass(slots=True)
class Verdict:
    """The result: anomalies, and how often unusual but allowed observations were made."""

    anomalies: list[Anomaly] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        return not self.anomalies

    def counts(self) -> Counter[str]:
        return Counter(dict.fromkeys(ANOMALIES, 0)) + Counter() | Counter(each.kind for each in self.anomalies)


def judge(history: History) -> Verdict:
    """Runs all checks on a history."""
    evidence = Evidence(history)
    verdict = Verdict()
    for check in CHECKS:
        verdict.anomalies += check(evidence)
    found, verdict.allowed = cycles.circular(evidence)
    verdict.anomalies += found
    return verdict


# ------------------------------------------------------------ values


def unknown_values(evidence: Evidence) -> Iterator[Anomaly]:
    for sight in evidence.sights:
        known = evidence.written.get(sight.value)
        if known is None or known[1].key != sight.key:
            sent = "nobody sent it" if known is None else f"it was sent to {known[1].key}"
            text = f"{sight.poll.reader} was given {sight.value} at {sight.key}:{sight.offset}, and {sent}"
            yield Anomaly("unwritten-read", text, [sight.operation])


def aborted_reads(evidence: Evidence) -> Iterator[Anomaly]:
    for sight in evidence.sights:
        writer = evidence.writer(sight.value)
        if writer is None or writer.outcome != FAIL:
            continue
        if sight.poll.committed or not writer.is_transaction:
            text = (
                f"{sight.poll.reader} was given {sight.value} at {sight.key}:{sight.offset}, which was never committed"
            )
            yield Anomaly("aborted-read", text, [writer, sight.operation])


def early_reads(evidence: Evidence) -> Iterator[Anomaly]:
    for sight in evidence.sights:
        writer = evidence.writer(sight.value)
        if not sight.poll.committed or writer is None or not writer.is_transaction:
            continue
        where = f"{sight.poll.reader} was given {sight.value} at {sight.key}:{sight.offset}"
        if writer is sight.operation:
            yield Anomaly("precommitted-read", f"{where} by the transaction that wrote it", [writer])
        elif writer.outcome != FAIL and writer.commit_at is not None and sight.poll.at < writer.commit_at:
            text = f"{where} {writer.commit_at - sight.poll.at:.6f} s before its commit was requested"
            yield Anomaly("early-read", text, [writer, sight.operation])


def inconsistent_offsets(evidence: Evidence) -> Iterator[Anomaly]:
    for key, places in evidence.places.items():
        for offset, values in sorted(places.items()):
            if len(values) > 1:
                writers = [writer for value in sorted(values) if (writer := evidence.writer(value))]
                yield Anomaly("inconsistent-offset", f"{key}:{offset} held {sorted(values)}", writers)


def duplicates(evidence: Evidence) -> Iterator[Anomaly]:
    for value, places in sorted(evidence.offsets.items()):
        if len(places) > 1:
            where = ", ".join(f"{key}:{offset}" for key, offset in sorted(places))
            writer = evidence.writer(value)
            yield Anomaly("duplicate", f"{value} stood at {where}", [writer] if writer else [])


def losses(evidence: Evidence) -> Iterator[Anomaly]:
    """Finds acknowledged records that readers have skipped, or that no reader has read."""
    for operation, send in evidence.history.sends():
        if not evidence.is_acknowledged(operation, send) or send.value in evidence.seen[True]:
            continue
        torn = operation.is_transaction and operation.outcome == INFO
        passed = [committed for committed in (True, False) if _passed(evidence, send, committed)]
        if passed:
            kind, beyond = "lost-write", max(evidence.furthest[committed][send.key] for committed in passed)
            text = f"{send.value} was acknowledged at {send.key}:{send.offset}; {beyond} was read, it never was"
        elif send.value in evidence.seen[False]:
            continue  # no read_committed reader has come that far
        else:
            kind, text = "unseen", f"{send.value} was acknowledged at {send.key}:{send.offset} and never read"
        if torn:
            kind, text = "torn-transaction", f"{text}, while others of its transaction were"
        yield Anomaly(kind, text, [operation])


def _passed(evidence: Evidence, send: Send, committed: bool) -> bool:
    """Returns whether such readers have read beyond a record without reading it."""
    if send.offset is None or send.value in evidence.seen[committed]:
        return False
    return evidence.furthest[committed].get(send.key, -1) > send.offset >= 0


def send_order(evidence: Evidence) -> Iterator[Anomaly]:
    """Finds records of a producer that are not in the order of its sends."""
    last: dict[tuple[str, str], tuple[int, Send, Operation]] = {}
    for operation, send in evidence.history.sends():
        if send.offset is None or send.offset < 0:
            continue
        place = operation.producer or operation.process, send.key
        before = last.get(place)
        if before and before[0] >= send.offset and before[1].value != send.value:
            inside = "internal-" * (before[2] is operation)
            text = f"{place[0]} sent {before[1].value} to {send.key}:{before[0]}, then {send.value} to {send.offset}"
            yield Anomaly(f"{inside}nonmonotonic-send", text, [before[2], operation])
        last[place] = send.offset, send, operation


def stuck_ends(evidence: Evidence) -> Iterator[Anomaly]:
    for key, reason in evidence.history.stuck.items():
        yield Anomaly("stuck", f"{key}: {reason}", [])


# ------------------------------------------------------------ exactly once


def transformations(evidence: Evidence) -> Iterator[Anomaly]:
    """Finds inputs below the committed offset without exactly one committed output, and other inputs with one."""
    for transform in evidence.history.transforms:
        outputs: dict[int, list[int]] = {}
        for key in transform.outputs:
            for _, value in evidence.orders.get(key, ()):
                known = evidence.written.get(value)
                if known and known[1].source is not None:
                    outputs.setdefault(known[1].source, []).append(value)
        for key in transform.inputs:
            for offset, value in evidence.orders.get(key, ()):
                made = outputs.pop(value, [])
                is_done = offset < transform.committed.get(key, 0)
                yield from _transformed(evidence, f"{value} at {key}:{offset}", made, is_done=is_done)
        for source, made in outputs.items():
            text = f"{made} were made from {source}, which is no committed input"
            yield Anomaly("output-from-nothing", text, _writers(evidence, made))


def _transformed(evidence: Evidence, what: str, made: list[int], *, is_done: bool) -> Iterator[Anomaly]:
    if len(made) > 1:
        yield Anomaly("input-doubled", f"from {what} {made} were made", _writers(evidence, made))
    elif made and not is_done:
        yield Anomaly("offset-behind", f"from {what} {made} was made; it is to be read again", _writers(evidence, made))
    elif is_done and not made:
        yield Anomaly("input-lost", f"from {what} nothing was made; it will not be read again", [])


def _writers(evidence: Evidence, values: list[int]) -> list[Operation]:
    return [writer for value in values if (writer := evidence.writer(value))]


CHECKS: tuple[Callable[[Evidence], Iterator[Anomaly]], ...] = (
    unknown_values,
    aborted_reads,
    early_reads,
    reading.past_open_transactions,
    inconsistent_offsets,
    duplicates,
    losses,
    reading.poll_order,
    send_order,
    stuck_ends,
    transformations,
)

ANOMALIES = (
    "unwritten-read",
    "aborted-read",
    "early-read",
    "precommitted-read",
    "past-open-transaction",
    "inconsistent-offset",
    "duplicate",
    "lost-write",
    "torn-transaction",
    "unseen",
    "nonmonotonic-poll",
    "internal-nonmonotonic-poll",
    "poll-skip",
    "internal-poll-skip",
    "nonmonotonic-send",
    "internal-nonmonotonic-send",
    "stuck",
    "input-lost",
    "input-doubled",
    "offset-behind",
    "output-from-nothing",
    "circular-reads",
)
"""All kinds of anomalies."""
