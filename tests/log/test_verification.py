"""Verifications are valid until the transaction ends that they are of."""

import pytest

from barnabas.errors import InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequenceNumber
from barnabas.log.producer_state import ProducerState
from tests.log.conftest import NOW_MS, make_batch, make_marker

ID = 9


class Producers:
    """A producer state and a log end offset."""

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


def test_an_ongoing_transaction_needs_no_verification(producers):
    assert producers.verify() is not None
    producers.append()
    assert producers.verify(sequence=1) is None
    assert producers.holds(None)
    assert producers.verify(epoch=1) is not None  # of the next transaction


def test_a_verification_is_valid_until_the_first_batch(producers):
    verification = producers.verify()
    assert producers.holds(verification)
    producers.append()
    assert producers.state.verifications == {}
    assert producers.holds(verification)  # the transaction is ongoing
    producers.mark()
    assert not producers.holds(verification)


def test_concurrent_batches_share_a_verification(producers):
    assert producers.verify(sequence=3) is producers.verify(sequence=0)


def test_a_removed_verification_stays_invalid(producers):
    """Another verification with the same values does not make the first one valid again."""
    first = producers.verify(bumps_epoch=False)
    producers.mark()
    second = producers.verify(bumps_epoch=False)
    assert not producers.holds(first)
    assert producers.holds(second)


@pytest.mark.parametrize(
    ("bumps_epoch", "marker_epoch", "holds"), [(False, 4, False), (False, 3, False), (True, 4, True), (True, 3, False)]
)
def test_a_marker_removes_it_unless_it_is_of_the_next_transaction(producers, bumps_epoch, marker_epoch, holds):
    verification = producers.verify(4, bumps_epoch=bumps_epoch)
    producers.mark(marker_epoch)
    assert producers.holds(verification, 4) == holds


def test_a_fenced_producer_is_not_verified(producers):
    producers.append(epoch=4)
    with pytest.raises(InvalidProducerEpoch):
        producers.verify(3)


def test_a_producer_fenced_in_between_is_refused_by_the_append(producers):
    verification = producers.verify(3)
    producers.mark(4)
    assert producers.holds(verification, 3)
    with pytest.raises(InvalidProducerEpoch):
        producers.append(epoch=3)


def test_a_truncation_removes_it(producers):
    verification = producers.verify()
    producers.state.clear()
    assert not producers.holds(verification)


def test_records_outside_of_a_transaction_do_not_remove_it(producers):
    verification = producers.verify()
    producers.append(is_transactional=False)
    assert producers.holds(verification)


def test_it_expires_with_its_producer(producers):
    verification = producers.verify()
    producers.state.expire(NOW_MS + 999, 1000)
    assert producers.holds(verification)
    producers.state.expire(NOW_MS + 1000, 1000)
    assert not producers.holds(verification)


def test_a_batch_with_a_higher_sequence_is_refused_first(producers):
    producers.verify(sequence=7, bumps_epoch=False)
    producers.verify(sequence=4, bumps_epoch=False)
    producers.verify(sequence=9, bumps_epoch=False)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(7)
    producers.append(4)
    producers.append(5)


def test_a_newer_epoch_replaces_the_sequence(producers):
    producers.verify(0, sequence=4, bumps_epoch=False)
    producers.verify(1, sequence=6, bumps_epoch=False)
    producers.verify(0, sequence=2, bumps_epoch=False)
    producers.append(6, epoch=1)


def test_transaction_version_2_an_unknown_producer_starts_at_0(producers):
    producers.verify(sequence=4)
    with pytest.raises(OutOfOrderSequenceNumber):
        producers.append(4)
    producers.verify(sequence=0)
    producers.append(0)


def test_transaction_version_2_a_known_producer_continues(producers):
    producers.append(0, is_transactional=False)
    producers.verify(sequence=1)
    producers.append(1)
