"""Histories of a correct broker have no anomalies; with one planted mistake, they have."""

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.history.checker import judge
from tests.history.records import FAIL, OK, TRANSACTION
from tests.history.simulated import Simulation

SIMULATIONS = st.builds(Simulation, st.randoms(use_true_random=False), st.integers(10, 60))


@given(SIMULATIONS)
def test_a_broker_without_mistakes_is_clean(simulation):
    assert [str(anomaly) for anomaly in judge(simulation.history).anomalies] == []


def seen(history):
    """Returns all polled records: (poll, at, record)."""
    return [(poll, at, record) for _, poll in history.polls() for at, record in enumerate(poll.records)]


def drop(history, random):
    """Removes an acknowledged record from all read_committed reads."""
    promised = [
        send.value
        for operation, send in history.sends()
        if (operation.outcome == OK or (operation.kind != TRANSACTION and send.offset is not None))
    ]
    assume(promised)
    value = random.choice(promised)
    for _, poll in history.polls():
        poll.records[:] = [record for record in poll.records if record[2] != value]
    return {"lost-write", "unseen"}


def double(history, random):
    """Adds a second offset for a record."""
    polled = seen(history)
    assume(polled)
    poll, _, (key, _, value) = random.choice(polled)
    poll.records.append((key, 1_000_000, value))
    return {"duplicate"}


def swap(history, random):
    """Exchanges two records of one reader."""
    pairs = [
        (poll, at)
        for poll, at, (key, _, _) in seen(history)
        if at + 1 < len(poll.records) and poll.records[at + 1][0] == key
    ]
    assume(pairs)
    poll, at = random.choice(pairs)
    (key, first, one), (_, second, other) = poll.records[at : at + 2]
    poll.records[at : at + 2] = [(key, first, other), (key, second, one)]
    return {"inconsistent-offset", "duplicate", "early-read"}


def reorder(history, random):
    """Changes the order of two records of one reader."""
    pairs = [
        (poll, at)
        for poll, at, (key, _, _) in seen(history)
        if at + 1 < len(poll.records) and poll.records[at + 1][0] == key
    ]
    assume(pairs)
    poll, at = random.choice(pairs)
    poll.records[at : at + 2] = poll.records[at : at + 2][::-1]
    return {"internal-nonmonotonic-poll"}


def reveal(history, random):
    """Adds an aborted record to a read_committed reader."""
    aborted = [send for operation, send in history.sends() if operation.outcome == FAIL]
    polls = [poll for _, poll in history.polls() if poll.committed]
    assume(aborted and polls)
    send = random.choice(aborted)
    random.choice(polls).records.append((send.key, send.offset, send.value))
    return {"aborted-read"}


@pytest.mark.parametrize("mistake", [drop, double, swap, reorder, reveal])
@given(SIMULATIONS, st.integers(0, 1 << 32))
def test_a_mistake_is_found(mistake, simulation, seed):
    kinds = mistake(simulation.history, Random(seed))
    found = judge(simulation.history).counts()
    assert found.keys() & kinds, found
