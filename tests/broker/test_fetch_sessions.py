"""Fetch sessions by KIP-227's rules: epochs, eviction, and the order in which partitions are served."""

from random import Random

import pytest

from barnabas.broker.fetch_sessions import MAX_EPOCH, FetchSessions, SessionPartition
from barnabas.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch

EVICTION_MS = 120_000


def sessions(slots=2):
    return FetchSessions(lambda: slots, lambda: EVICTION_MS, Random(1))


def partitions(count, topic="t"):
    return {(topic, index): SessionPartition(topic, bytes(16), index) for index in range(count)}


def test_each_request_raises_the_epoch():
    cache = sessions()
    session = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    for epoch in (1, 2, 3):
        assert cache.continue_(session.id, epoch, uses_topic_ids=False, now_ms=epoch) is session
    assert session.epoch == 4


def test_the_epoch_goes_on_at_one():
    cache = sessions()
    session = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    session.epoch = MAX_EPOCH
    cache.continue_(session.id, MAX_EPOCH, uses_topic_ids=False, now_ms=0)
    assert session.epoch == 1


@pytest.mark.parametrize("epoch", [0, 2, 7, -5])
def test_a_request_that_was_lost_or_came_twice(epoch):
    cache = sessions()
    session = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    with pytest.raises(InvalidFetchSessionEpoch):
        cache.continue_(session.id, epoch, uses_topic_ids=False, now_ms=0)
    assert cache.continue_(session.id, 1, uses_topic_ids=False, now_ms=0) is session


def test_a_session_that_is_not_there():
    with pytest.raises(FetchSessionIdNotFound):
        sessions().continue_(5, 1, uses_topic_ids=False, now_ms=0)


def test_names_do_not_turn_into_ids():
    cache = sessions()
    session = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    with pytest.raises(FetchSessionTopicIdError):
        cache.continue_(session.id, 1, uses_topic_ids=True, now_ms=0)


def test_what_gave_data_is_served_last_next_time():
    cache = sessions()
    session = cache.create(partitions(3), uses_topic_ids=False, now_ms=0)
    session.served(("t", 0))
    assert list(session.partitions) == [("t", 1), ("t", 2), ("t", 0)]


def test_a_full_cache_turns_out_the_longest_idle():
    cache = sessions(slots=2)
    first = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    second = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    cache.continue_(first.id, 1, uses_topic_ids=False, now_ms=EVICTION_MS)
    third = cache.create(partitions(1), uses_topic_ids=False, now_ms=EVICTION_MS + 1)
    assert third is not None
    with pytest.raises(FetchSessionIdNotFound):
        cache.continue_(second.id, 1, uses_topic_ids=False, now_ms=EVICTION_MS + 1)
    assert cache.continue_(first.id, 2, uses_topic_ids=False, now_ms=EVICTION_MS + 1) is first


def test_a_full_cache_of_busy_sessions_has_no_place():
    cache = sessions(slots=1)
    cache.create(partitions(3), uses_topic_ids=False, now_ms=0)
    assert cache.create(partitions(9), uses_topic_ids=False, now_ms=10) is None
    assert len(cache) == 1


def test_a_larger_session_takes_the_place_of_an_old_smaller_one():
    cache = sessions(slots=1)
    small = cache.create(partitions(1), uses_topic_ids=False, now_ms=0)
    cache.continue_(small.id, 1, uses_topic_ids=False, now_ms=EVICTION_MS)
    assert cache.create(partitions(1), uses_topic_ids=False, now_ms=EVICTION_MS + 1) is None
    assert cache.create(partitions(2), uses_topic_ids=False, now_ms=EVICTION_MS + 1) is not None
    assert len(cache) == 1


def test_without_slots_there_are_no_sessions():
    assert sessions(slots=0).create(partitions(1), uses_topic_ids=False, now_ms=0) is None
