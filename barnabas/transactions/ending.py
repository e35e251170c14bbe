"""The tables of what EndTxn does, for both versions of transactions.

Knows nothing of how it is done. The rules of Kafka's ``TransactionCoordinator.endTransaction``.
"""

from enum import Enum

from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
)
from barnabas.transactions.states import COMPLETED, State
from barnabas.transactions.transaction import EPOCH_RISES, LAST_EPOCH, Facts


class Verdict(Enum):
    """What to do if there is no error."""

    END = "end the transaction"
    DONE = "it was done before"


Outcome = Verdict | type[KafkaError]

COMMIT, ABORT = True, False

ENDED = frozenset(COMPLETED.values())

V1: dict[tuple[State, bool], Outcome] = {
    (State.EMPTY, COMMIT): InvalidTxnState,
    (State.EMPTY, ABORT): InvalidTxnState,
    (State.ONGOING, COMMIT): Verdict.END,
    (State.ONGOING, ABORT): Verdict.END,
    (State.PREPARE_COMMIT, COMMIT): ConcurrentTransactions,
    (State.PREPARE_COMMIT, ABORT): InvalidTxnState,
    (State.PREPARE_ABORT, COMMIT): InvalidTxnState,
    (State.PREPARE_ABORT, ABORT): ConcurrentTransactions,
    (State.COMPLETE_COMMIT, COMMIT): Verdict.DONE,
    (State.COMPLETE_COMMIT, ABORT): InvalidTxnState,
    (State.COMPLETE_ABORT, COMMIT): InvalidTxnState,
    (State.COMPLETE_ABORT, ABORT): Verdict.DONE,
}
"""The epoch stays the same, so a repeated request looks like a new one, and gets the same answer."""

V2: dict[tuple[State, bool], Outcome] = {
    (State.EMPTY, COMMIT): InvalidTxnState,
    (State.EMPTY, ABORT): Verdict.END,
    (State.ONGOING, COMMIT): Verdict.END,
    (State.ONGOING, ABORT): Verdict.END,
    (State.COMPLETE_COMMIT, COMMIT): InvalidTxnState,
    (State.COMPLETE_COMMIT, ABORT): Verdict.END,
    (State.COMPLETE_ABORT, COMMIT): InvalidTxnState,
    (State.COMPLETE_ABORT, ABORT): Verdict.END,
}
"""For the client's current epoch. An abort without a transaction raises the epoch, too: it fences late requests."""

V2_AGAIN: dict[tuple[State, bool], Outcome] = {
    (state, is_commit): verdict
    for (state, is_commit), verdict in V1.items()
    if state not in (State.EMPTY, State.ONGOING)
}
"""For the epoch before, which an end has raised: a repeated request, if the outcome is the same."""


def outcome(
    facts: Facts,
    is_pending: bool,
    producer_id: int,
    producer_epoch: int,
    is_commit: bool,
    client_version: int,
) -> Outcome:
    """Returns what to do with an EndTxn. What is in no table is fenced."""
    if client_version < EPOCH_RISES:
        if producer_id != facts.producer_id:
            return InvalidProducerIdMapping
        if producer_epoch != facts.producer_epoch:
            return ProducerFenced
        return ConcurrentTransactions if is_pending else V1[facts.state, is_commit]
    is_rotated = (
        producer_id == facts.previous_producer_id and producer_epoch == LAST_EPOCH - 1 and facts.producer_epoch == 0
    )
    if producer_id != facts.producer_id and not is_rotated:
        return InvalidProducerIdMapping
    if facts.producer_epoch == producer_epoch + 1 or (is_rotated and facts.state in ENDED):
        table = V2_AGAIN
    elif facts.producer_epoch == producer_epoch:
        table = V2
    else:
        return ProducerFenced
    verdict = table.get((facts.state, is_commit), ProducerFenced)
    return ConcurrentTransactions if is_pending and verdict is not ProducerFenced else verdict
