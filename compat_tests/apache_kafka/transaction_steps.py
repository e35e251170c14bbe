"""Makers of steps for transactions.

Data only: must not open a socket. By default the transactional id is ``~x``, its producer was saved as ``$p`` and has
epoch 0, and the partition is 0 of ``~t``.
"""

from collections.abc import Sequence
from typing import Any

from .batches import R, records
from .play import Step
from .steps import ask, fetch, produce_body

TRANSACTIONAL, CONTROL = 16, 32
"""Bits of a batch's attributes."""

OLD = {"AddPartitionsToTxn": 3, "AddOffsetsToTxn": 3, "EndTxn": 4, "Produce": 11, "TxnOffsetCommit": 4}
"""The newest versions of clients without the second generation of transactions (KIP-890)."""

Topics = Sequence[tuple[str, Sequence[int]]]


def init(
    txn: str | None = "~x", *, timeout: int = 60_000, pid: Any = -1, epoch: int = -1, save: str = "", **more: Any
) -> Step:
    saved = {"save": {f"${save}": "ProducerId"}} if save else {}
    body = {"TransactionalId": txn, "TransactionTimeoutMs": timeout, "ProducerId": pid, "ProducerEpoch": epoch}
    return ask("InitProducerId", **saved, **body, **more)


def begin(txn: str = "~x", *, save: str = "p", timeout: int = 60_000) -> Step:
    """Initialises a producer; on a new transactional id it has epoch 0."""
    return init(txn, timeout=timeout, save=save, v=4, quiet=True)


def placed(topics: Topics) -> list[dict[str, Any]]:
    return [{"Name": name, "Partitions": list(partitions)} for name, partitions in topics]


def add_body(txn: str = "~x", topics: Topics = (("~t", (0,)),), *, pid: Any = "$p", epoch: int = 0) -> dict[str, Any]:
    """Sends an AddPartitionsToTxn in the form of each version."""
    one = {"TransactionalId": txn, "ProducerId": pid, "ProducerEpoch": epoch, "Topics": placed(topics)}
    return {"Transactions": [one], **{f"V3AndBelow{name}": value for name, value in one.items()}}


def add(txn: str = "~x", topics: Topics = (("~t", (0,)),), *, pid: Any = "$p", epoch: int = 0, **more: Any) -> Step:
    return ask("AddPartitionsToTxn", **add_body(txn, topics, pid=pid, epoch=epoch), **more)


def batched(*transactions: tuple[str, Topics, int, bool], pid: Any = "$p", **more: Any) -> Step:
    """Sends an AddPartitionsToTxn of (transactional id, topics, epoch, whether it only verifies), from version 4 on."""
    entries = [
        {
            "TransactionalId": txn,
            "ProducerId": pid,
            "ProducerEpoch": epoch,
            "VerifyOnly": verify,
            "Topics": placed(topics),
        }
        for txn, topics, epoch, verify in transactions
    ]
    return ask("AddPartitionsToTxn", Transactions=entries, **more)


def add_offsets(txn: str = "~x", group: str = "~g", *, pid: Any = "$p", epoch: int = 0, **more: Any) -> Step:
    body = {"TransactionalId": txn, "ProducerId": pid, "ProducerEpoch": epoch, "GroupId": group}
    return ask("AddOffsetsToTxn", **body, **more)


def end(commit: bool = True, txn: str = "~x", *, pid: Any = "$p", epoch: int = 0, **more: Any) -> Step:
    body = {"TransactionalId": txn, "ProducerId": pid, "ProducerEpoch": epoch, "Committed": commit}
    return ask("EndTxn", **body, **more)


def described(*txns: str, **more: Any) -> Step:
    return ask("DescribeTransactions", TransactionalIds=list(txns or ("~x",)), **more)


def ended(commit: bool = True, txn: str = "~x") -> Step:
    """Waits until the markers are written, a moment after the response to EndTxn."""
    state = ("TransactionStates.0.TransactionState", "CompleteCommit" if commit else "CompleteAbort")
    return described(txn, until=state, quiet=True, v=0)


def finished(commit: bool = True, txn: str = "~x", **more: Any) -> list[Step]:
    """Sends an EndTxn whose response is compared, and waits for the end of the transaction."""
    return [end(commit, txn, **more), ended(commit, txn)]


def send(
    *values: Any,
    sequence: int = 0,
    pid: Any = "$p",
    epoch: int = 0,
    txn: str | None = "~x",
    topic: str = "~t",
    partition: int = 0,
    attributes: int = TRANSACTIONAL,
    v: int | None = None,
    quiet: bool = False,
    **more: Any,
) -> Step:
    """Returns a batch in a transaction."""
    content = records(
        *(values or (R(b"value"),)),
        producer_id=pid,
        producer_epoch=epoch,
        sequence=sequence,
        attributes=attributes,
    )
    body = produce_body(topic, content, partition=partition)
    return ask("Produce", v=v, quiet=quiet, TransactionalId=txn, **body, **more)


def transaction(
    *values: Any,
    commit: bool = True,
    epoch: int = 0,
    sequence: int = 0,
    old: bool = False,
    txn: str = "~x",
    pid: Any = "$p",
) -> list[Step]:
    """Begins and ends a transaction on 0 of ``~t``; with a new client the epoch is one higher afterwards (KIP-890)."""
    versions = OLD if old else {}
    who: dict[str, Any] = {"txn": txn, "pid": pid, "epoch": epoch}
    adding = [add(**who, quiet=True, v=OLD["AddPartitionsToTxn"])] if old else []
    return [
        *adding,
        send(*values, **who, sequence=sequence, quiet=True, v=versions.get("Produce", 12)),
        end(commit, **who, quiet=True, v=versions.get("EndTxn", 5)),
        ended(commit, txn),
    ]


def read(*, committed: bool = True, topic: str = "~t", offset: int = 0, v: int | None = None, **more: Any) -> Step:
    return fetch(topic, offset, v=v, IsolationLevel=int(committed), **more)


def ends(
    topic: str = "~t", *, committed: bool = True, times: Sequence[int] = (-1,), v: int | None = None
) -> list[Step]:
    """Sends a ListOffsets for each of these times."""
    return [
        ask(
            "ListOffsets",
            v=v,
            ReplicaId=-1,
            IsolationLevel=int(committed),
            Topics=[{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Timestamp": each}]}],
        )
        for each in times
    ]


def pending(
    offset: int = 7,
    txn: str = "~x",
    group: str = "~g",
    *,
    topic: str = "~t",
    partition: int = 0,
    pid: Any = "$p",
    epoch: int = 0,
    metadata: str | None = "note",
    **more: Any,
) -> Step:
    """Sends a TxnOffsetCommit; other arguments belong to the committing member."""
    options = {name: more.pop(name) for name in ("v", "quiet", "within", "on") if name in more}
    inner = {"PartitionIndex": partition, "CommittedOffset": offset, "CommittedMetadata": metadata}
    topics = [{"Name": topic, "Partitions": [inner]}]
    body = {"TransactionalId": txn, "GroupId": group, "ProducerId": pid, "ProducerEpoch": epoch, "Topics": topics}
    return ask("TxnOffsetCommit", **options, **{**body, **more})


def marker(
    commit: bool = True,
    topics: Topics = (("~t", (0,)),),
    *,
    pid: Any = "$p",
    epoch: int = 0,
    coordinator: int = 0,
    version: int = 0,
) -> dict[str, Any]:
    return {
        "ProducerId": pid,
        "ProducerEpoch": epoch,
        "TransactionResult": commit,
        "Topics": [{"Name": name, "PartitionIndexes": list(partitions)} for name, partitions in topics],
        "CoordinatorEpoch": coordinator,
        "TransactionVersion": version,
    }


def mark(*markers: dict[str, Any], **more: Any) -> Step:
    return ask("WriteTxnMarkers", Markers=list(markers), **more)


def producers(topic: str = "~t", partition: int = 0, **more: Any) -> Step:
    return ask("DescribeProducers", Topics=[{"Name": topic, "PartitionIndexes": [partition]}], **more)
