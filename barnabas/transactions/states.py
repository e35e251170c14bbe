"""The states of a transactional id, and the transitions between them.

Knows nothing of records or clients. The diagram in docs/internals/transactions.md is drawn from this table.
"""

from enum import IntEnum


class State(IntEnum):
    """Kafka's ``TransactionState``: numbers as in the log."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name in DescribeTransactions and ListTransactions.

        >>> State.PREPARE_EPOCH_FENCE.title
        'PrepareEpochFence'
        """
        return TITLES[self]


TITLES = {state: state.name.title().replace("_", "") for state in State}

BY_TITLE = {title: state for state, title in TITLES.items()}

FROM: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.ONGOING: frozenset({State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    # Since KIP-890 also from states without a transaction: the abort makes sure that none is open.
    State.PREPARE_ABORT: frozenset({
        State.ONGOING,
        State.PREPARE_EPOCH_FENCE,
        State.EMPTY,
        State.COMPLETE_COMMIT,
        State.COMPLETE_ABORT,
    }),
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT}),
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}  # fmt: skip
"""The states from which each one may be reached.

DEAD and PREPARE_EPOCH_FENCE are only ever pending: an id that expires is gone when its tombstone is written, and a
fenced transaction is aborted in the same breath.
"""

COMPLETED = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}
"""The state after the markers of a decided transaction are written."""

DECIDED = frozenset(COMPLETED)
"""The transaction is being ended, and its outcome cannot change."""

IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""No transaction is open or being ended."""
