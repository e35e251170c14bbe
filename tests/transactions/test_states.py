"""The table of states, and the rules of an end, as a whole."""

import itertools

import pytest

from barnabas.transactions.ending import V1, V2, V2_AGAIN, Verdict, outcome
from barnabas.transactions.states import COMPLETED, DECIDED, FROM, IDLE, State
from barnabas.transactions.transaction import Facts


def test_every_state_may_be_reached_and_left():
    assert FROM.keys() == set(State)
    reached = set().union(*FROM.values())
    assert reached == set(State) - {State.DEAD}


def test_a_decision_is_never_changed():
    for decided, complete in COMPLETED.items():
        assert [state for state, former in FROM.items() if decided in former] == [complete]


def test_names_are_kafkas():
    assert [state.title for state in State] == [
        "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
        "PrepareEpochFence",
    ]  # fmt: skip


@pytest.mark.parametrize("table", [V1, V2, V2_AGAIN])
def test_what_is_to_be_ended_may_be_ended(table):
    for (state, is_commit), verdict in table.items():
        if verdict is Verdict.END:
            assert state in FROM[State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT]
        elif verdict is Verdict.DONE:
            assert state is (State.COMPLETE_COMMIT if is_commit else State.COMPLETE_ABORT)


def test_there_is_an_answer_to_everything():
    states = IDLE | {State.ONGOING} | DECIDED
    for state, epoch, is_commit, is_pending, version in itertools.product(
        states, (6, 7, 8), (True, False), (True, False), (0, 2)
    ):
        assert outcome(Facts(state, 1, 7, 1), is_pending, 1, epoch, is_commit, version)
