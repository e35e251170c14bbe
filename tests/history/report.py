"""Formats a run and its anomalies as a table. Checks nothing."""

from collections import Counter
from collections.abc import Iterator

from tests.history.checker import ANOMALIES
from tests.history.records import FAIL, INFO, OK, SEND, TRANSACTION, History
from tests.history.run import Outcome

SHOWN = 5


Counts = dict[str, dict[str, int]]
"""The counts of each part of the table."""


def counted(outcome: Outcome) -> Counts:
    """Returns the counts of a run, in the order of the table."""
    history, found = outcome.history, outcome.verdict.counts()
    return {
        "operations": _operations(history),
        "clients' operations": _sorted(Counter(each.client for each in history.operations)),
        "records": _records(history),
        "faults": _sorted(outcome.faults),
        "seen and allowed": _sorted(outcome.verdict.allowed),
        "anomalies": {kind: found[kind] for kind in ANOMALIES},
    }


def table(counts: Counts) -> str:
    """Returns the counts, one per line."""
    lines = []
    for title, rows in counts.items():
        lines += [title, *(f"  {name:<28}{count:>9}" for name, count in rows.items()), ""]
    return "\n".join(lines)


def report(outcome: Outcome) -> str:
    """Returns the counts of a run, and the first anomalies of each kind."""
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    plan, found = outcome.history.plan, outcome.verdict.counts()
    yield f"seed {plan['seed']}, {plan['seconds']:g} s, transaction.version {plan['level']}"
    yield ""
    yield table(counted(outcome))
    for kind in found:
        named = [each for each in outcome.verdict.anomalies if each.kind == kind]
        yield from (str(each) for each in named[:SHOWN])
        yield ""
    if outcome.complaints:
        yield from ["The broker complained:", *outcome.complaints[:SHOWN], ""]
    yield f"{sum(found.values())} anomalies"


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _operations(history: History) -> dict[str, int]:
    kinds, outcomes = (SEND, TRANSACTION, "poll", "transform"), {OK: "ok", FAIL: "failed", INFO: "unknown"}
    counts = {f"{kind}, {outcome}": 0 for kind in kinds for outcome in outcomes.values()}
    for operation in history.operations:
        is_transform = operation.is_transaction and any(send.source is not None for send in operation.sends)
        kind = "transform" if is_transform else operation.kind
        counts[f"{kind}, {outcomes[operation.outcome]}"] += 1
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
