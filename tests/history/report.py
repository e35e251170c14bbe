"""What a run was and what was found, in a table. Judges nothing."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tests.history.checker import ANOMALIES
from tests.history.records import FAIL, INFO, OK, SEND, TRANSACTION, History
from tests.history.run import Outcome

SHOWN = 5


def report(outcome: Outcome) -> str:
    """The counts of a run, and the first anomalies of each kind."""
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    history = outcome.history
    plan = history.plan
    yield f"seed {plan['seed']}, {plan['seconds']:g} s, transaction.version {plan['level']}"
    yield ""
    yield "operations                 ok     fail  unknown"
    for kind, counts in _operations(history).items():
        yield f"  {kind:<18}{counts[OK]:>9}{counts[FAIL]:>9}{counts[INFO]:>9}"
    yield ""
    yield from _rows("clients' operations", Counter(each.client for each in history.operations))
    yield from _rows("records", _records(history))
    yield from _rows("faults", outcome.faults)
    yield from _rows("seen and allowed", outcome.verdict.allowed)
    found = outcome.verdict.counts()
    yield from _rows("anomalies", {kind: found[kind] for kind in ANOMALIES})
    for kind in found:
        named = [each for each in outcome.verdict.anomalies if each.kind == kind]
        yield ""
        yield from (str(each) for each in named[:SHOWN])
    if outcome.complaints:
        yield from ["", "The broker complained:", *outcome.complaints[:SHOWN]]
    yield ""
    yield f"{sum(found.values())} anomalies"


def _rows(title: str, counts: "dict[str, int] | Counter[str]") -> Iterable[str]:
    yield title
    for name, count in sorted(counts.items()) if isinstance(counts, Counter) else counts.items():
        yield f"  {name:<28}{count:>9}"
    yield ""


def _operations(history: History) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in (SEND, TRANSACTION, "poll", "transform")}
    for operation in history.operations:
        is_transform = operation.is_transaction and any(send.source is not None for send in operation.sends)
        counts["transform" if is_transform else operation.kind][operation.outcome] += 1
    return counts


def _records(history: History) -> dict[str, int]:
    sends = list(history.sends())
    polls = [poll for _, poll in history.polls()]
    return {
        "sent": len(sends),
        "acknowledged": sum(send.offset is not None for _, send in sends),
        "sent in transactions": sum(operation.is_transaction for operation, _ in sends),
        "of those committed": sum(operation.is_transaction and operation.outcome == OK for operation, _ in sends),
        "read, committed": sum(len(poll.records) for poll in polls if poll.committed),
        "read, uncommitted": sum(len(poll.records) for poll in polls if not poll.committed),
        "polls that moved": sum(bool(poll.moved) for poll in polls),
    }
