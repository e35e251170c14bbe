"""Share sessions: epochs, places, connections."""

import pytest

from barnabas.broker.share_sessions import SessionKey, ShareSessions
from barnabas.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

ANNA, BEN = SessionKey("g", "anna"), SessionKey("g", "ben")
AT, OTHER = (b"t" * 16, 0), (b"t" * 16, 1)


@pytest.fixture
def sessions():
    return ShareSessions(lambda: 2)


def test_epochs_go_up_by_one(sessions):
    sessions.open(ANNA, [AT], 1)
    assert sessions.continue_(ANNA, 1).epoch == 2
    with pytest.raises(InvalidShareSessionEpoch):
        sessions.continue_(ANNA, 1)
    assert sessions.continue_(ANNA, 2).epoch == 3


def test_a_session_that_there_is_not(sessions):
    with pytest.raises(ShareSessionNotFound):
        sessions.continue_(ANNA, 1)
    with pytest.raises(ShareSessionNotFound):
        sessions.get(ANNA)
    assert sessions.remove(ANNA) is None


def test_places_are_not_taken_from_others(sessions):
    sessions.open(ANNA, [], 1)
    sessions.open(BEN, [], 2)
    with pytest.raises(ShareSessionLimitReached):
        sessions.open(SessionKey("h", "anna"), [], 3)
    sessions.open(ANNA, [], 4)
    assert len(sessions) == 2


def test_a_connection_takes_its_sessions_along(sessions):
    anna, ben = sessions.open(ANNA, [], 1), sessions.open(BEN, [], 1)
    assert sessions.disconnected(7) == []
    assert sessions.disconnected(1) == [(anna, True), (ben, True)]
    assert sessions.disconnected(1) == []
    assert not sessions.has_members("g")


def test_a_connection_leaves_alone_what_was_closed_or_opened_on_another(sessions):
    first, ben = sessions.open(ANNA, [], 1), sessions.open(BEN, [], 1)
    sessions.open(ANNA, [], 2)
    sessions.remove(BEN)
    assert sessions.disconnected(1) == [(first, False), (ben, False)]
    assert sessions.get(ANNA).connection == 2
    assert sessions.has_members("g")


def test_what_is_closed_and_opened_again_stays_open(sessions):
    before, after = sessions.open(ANNA, [], 1), sessions.open(ANNA, [], 2)
    sessions.close(before)
    assert sessions.get(ANNA) is after
    sessions.close(after)
    assert len(sessions) == 0


def test_whether_a_group_has_members(sessions):
    sessions.open(ANNA, [], 1)
    sessions.open(ANNA, [], 2)
    sessions.open(BEN, [], 2)
    sessions.remove(ANNA)
    assert sessions.has_members("g")
    sessions.remove(BEN)
    assert not sessions.has_members("g")
    sessions.open(ANNA, [], 1)
    sessions.clear()
    assert not sessions.has_members("g")
    assert sessions.disconnected(1) == []


def test_a_connection_forgets_what_is_detached_from_it(sessions):
    anna, ben = sessions.open(ANNA, [], 1), sessions.open(BEN, [], 1)
    sessions.detach(anna)
    sessions.detach(anna)
    assert sessions.disconnected(1) == [(ben, True)]


def test_a_partition_that_failed_is_due_in_the_next_response(sessions):
    session = sessions.open(ANNA, [AT], 1)
    session.partitions[OTHER] = True  # added later
    assert [at for at, is_due in session.partitions.items() if is_due] == [OTHER]
    session.answered(OTHER, has_records=False, has_failed=False)
    session.answered(AT, has_records=False, has_failed=True)
    assert [at for at, is_due in session.partitions.items() if is_due] == [AT]
    session.answered(AT, has_records=False, has_failed=False)
    assert not any(session.partitions.values())


def test_what_gave_records_comes_last(sessions):
    session = sessions.open(ANNA, [AT, OTHER], 1)
    session.answered(AT, has_records=True, has_failed=False)
    assert list(session.partitions) == [OTHER, AT]
    session.answered((b"x" * 16, 0), has_records=True, has_failed=False)
    assert list(session.partitions) == [OTHER, AT]
