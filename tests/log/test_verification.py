"""Verifications: a coordinator's word is good until something ends the transaction that it was about."""

import pytest

from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequenceNumber
from barnabas.log.producer_state import ProducerState
from tests.log.conftest import NOW_MS, make_batch, make_marker

ID = 9


class Producers:
    """A producer state, and the log's end that goes with it."""

    def __init__(self, state):
        self.state, self.end = state, 0

    def verify(self, epoch=0, sequence=0, *, bumps_epoch=True, now_ms=NOW_MS):
        return self.state.begin_verification(ID, epoch, sequence, now_ms, bumps_epoch=bumps_epoch)

    def holds(self, verification, epoch=0):
        try:
            self.state.check_verified(ID, epoch, verification)
        except InvalidTxnState:
            return False
        return True

    def append(self, sequence=0, epoch=0, *, is_transactional=True):
        identity = {"producer_id": ID, "producer_epoch": epoch, "base_sequence": sequence}
        batch = make_batch(1, is_transactional=is_transactional, **identity)
        assert self.state.check(batch) is None
        self.state.update(batch, self.end)
        self.end += 1

    def mark(self, epoch=0):
        marker = make_marker(ID, abort=True)
        marker.producer_epoch = epoch
        self.state.check(marker)
        self.state.update(marker, self.end)
        self.end += 1


@pytest.fixture
def producers(memory):
    return Producers(ProducerState(memory.files, memory.path))


def test_what_goes_on_needs_no_verification(producers):
    assert producers.verify() is not None
    producers.append()
    assert producers.verify(sequence=1) is None
    assert producers.holds(None)
    assert producers.verify(epoch=1) is not None  # that is the next transaction


def test_it_holds_until_the_first_batch(producers):
    verification = producers.verify()
    assert producers.holds(verification)
    producers.append()
    assert producers.state.verifications == {}
    assert producers.holds(verification)  # by what is in the log
    producers.mark()
    assert not producers.holds(verification)


def test_batches_that_ask_at_the_same_time_share_it(producers):
    assert producers.verify(sequence=3) is producers.verify(sequence=0)


def test_one_that_is_void_does_not_come_back(producers):
    """Ended, and the next transaction verified again: the first one's answer is of the past, though both look alike."""
    first = producers.verify(bumps_epoch=False)
    producers.mark()
    second = producers.verify(bumps_epoch=False)
    assert not producers.holds(first)
    assert producers.holds(second)


@pytest.mark.parametrize(
    ("bumps_epoch", "marker_epoch", "holds"), [(False, 4, False), (False, 3, False), (True, 4, True), (True, 3, False)]
)
def test_a_marker_voids_it_but_for_the_next_transactions(producers, bumps_epoch, marker_epoch, holds):
    verification = producers.verify(4, bumps_epoch=bumps_epoch)
    producers.mark(marker_epoch)
    assert producers.holds(verification, 4) == holds


def test_a_fenced_producer_is_not_verified(producers):
    producers.append(epoch=4)
    with pytest.raises(InvalidProducerEpoch):
        producers.verify(3)


def test_fenced_meanwhile_is_said_with_the_append(producers):
    verification = producers.verify(3)
    producers.mark(4)
    assert producers.holds(verification, 3)
    with pytest.raises(InvalidProducerEpoch):
        producers.append(epoch=3)


def test_truncation_voids_it(producers):
    verification = producers.verify()
    producers.state.clear()
    assert not producers.holds(verification)


def test_records_outside_of_a_transaction_do_not(producers):
    verification = producers.verify()
    producers.append(is_transactional=False)
    assert producers.holds(verification)


def test_it_is_forgotten_with_its_producer(producers):
    verification = producers.verify()
    producers.state.expire(NOW_MS + 999, 1000)
    assert producers.holds(verification)
    producers.state.expire(NOW_MS + 1000, 1000)
    assert not producers.holds(verification)


def test_a_batch_does_not_overtake_an_earlier_one(producers):
    producers.verify(sequence=7, bumps_epoch=False)
    producers.verify(sequence=4, bumps_epoch=False)
    producers.verify(sequence=9, bumps_epoch=False)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(7)
    producers.append(4)
    producers.append(5)


def test_a_newer_epoch_asks_anew(producers):
    producers.verify(0, sequence=4, bumps_epoch=False)
    producers.verify(1, sequence=6, bumps_epoch=False)
    producers.verify(0, sequence=2, bumps_epoch=False)
    producers.append(6, epoch=1)


def test_in_the_second_generation_an_unknown_producer_begins_at_0(producers):
    producers.verify(sequence=4)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(4)
    producers.verify(sequence=0)
    producers.append(0)


def test_in_the_second_generation_a_known_one_goes_on(producers):
    producers.append(0, is_transactional=False)
    producers.verify(sequence=1)
    producers.append(1)
