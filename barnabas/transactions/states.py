"""The states of a transactional id, and which may follow which: the table that everything else goes by.

Knows nothing of records or clients. The diagram in docs/internals/transactions.md is drawn from this table.
"""

from enum import IntEnum


class State(IntEnum):
    """Kafka's ``TransactionState``: numbers as in the log, names as administrators are told."""

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
        """As DescribeTransactions and ListTransactions write it.

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
    # From states without a transaction since KIP-890: aborting nothing makes sure that nothing is open.
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
"""From which states each one may be reached.

DEAD and PREPARE_EPOCH_FENCE are only ever pending: an id that expires is gone when its tombstone is written, and a
fenced transaction is aborted in the same breath.
"""

COMPLETED = {State.PREPARE_COMMIT: State.COMPLETE_COMMIT, State.PREPARE_ABORT: State.COMPLETE_ABORT}
"""What a decided transaction becomes when its markers are written."""

DECIDED = frozenset(COMPLETED)
"""A transaction is being ended, and nothing can change how."""

IDLE = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
"""No transaction is open, and none is being ended."""
