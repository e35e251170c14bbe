"""Fetch: limits, sessions, epochs, and waiting, with a manual clock."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.fetch import fetch
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.records.batch import batches
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.types import ZERO_UUID
from tests.asking import context_of, handled
from tests.submitting import reset_to_start, submitted

Topic = FetchRequest.FetchTopic


def requested(offsets, *, topic="t", max_wait_ms=0, min_bytes=1, partition_max_bytes=1 << 20, **fields):
    """A fetch of one topic: an offset for each partition."""
    partitions = [
        Topic.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for index, offset in (offsets.items() if isinstance(offsets, dict) else enumerate(offsets))
    ]
    topics = [Topic(topic=topic, partitions=partitions)] if partitions else []
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=topics, **fields)


def send(node, request, version=11):
    requested = FetchRequest.decode(request.encode(version=version), version=version)
    return handled(fetch, requested, context_of(node.broker, version))


def answered(response, version=11):
    assert not isinstance(response, Later), "not answered yet"
    return FetchResponse.decode(response.encode(version=version), version=version)


def offsets_in(partition):
    return [batch.base_offset for batch in batches(bytes(partition.records))]


def only(response):
    """Of the only partition in the answer."""
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


@pytest.fixture
def log(node):
    """A topic of two partitions; the first has five batches of one record."""
    partition = node.create_topic("t", 2)
    for _ in range(5):
        node.append(partition, node.clock.time_ms())
    return partition


# ---------------------------------------------------------------- limits


def test_batches_come_as_they_are(node, log):
    partition = only(answered(send(node, requested([0]))))
    assert offsets_in(partition) == [0, 1, 2, 3, 4]
    assert (partition.error_code, partition.high_watermark, partition.log_start_offset) == (0, 5, 0)
    assert partition.last_stable_offset == 5 and partition.aborted_transactions is None
    assert partition.preferred_read_replica == -1


@pytest.mark.parametrize("limits", [{"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 0}])
def test_the_first_batch_comes_whatever_the_limits(node, log, limits):
    assert offsets_in(only(answered(send(node, requested([2], **limits))))) == [2]


@pytest.mark.parametrize(("offset", "error"), [(2, -1), (5, 0)])
def test_a_negative_limit_gives_none(node, log, offset, error):
    partition = only(answered(send(node, requested([offset], partition_max_bytes=-1))))
    assert (partition.error_code, offsets_in(partition)) == (error, [])


def test_a_negative_limit_of_all_stops_the_first_partition_only(node, log):
    node.append(node.broker.partition("t", 1), node.clock.time_ms())
    (topic,) = answered(send(node, requested([2, 0], max_bytes=-1))).responses
    assert [(each.error_code, offsets_in(each)) for each in topic.partitions] == [(-1, []), (0, [0])]


def test_what_is_not_there_is_told_last_and_in_a_shape_of_its_own(node, log):
    (topic,) = answered(send(node, requested({7: 0, 0: 9, 1: 0}))).responses
    found = [(each.partition_index, each.error_code, each.aborted_transactions) for each in topic.partitions]
    assert found == [(0, 1, None), (1, 0, None), (7, 3, [])]


def test_as_many_as_fit(node, log):
    size = log.log.size // 5
    assert offsets_in(only(answered(send(node, requested([1], partition_max_bytes=3 * size + 5))))) == [1, 2, 3]


def test_only_the_first_partition_may_go_beyond_the_limit(node, log):
    node.append(node.broker.partition("t", 1), 0)
    (topic,) = answered(send(node, requested([0, 0], max_bytes=1))).responses
    assert [offsets_in(partition) for partition in topic.partitions] == [[0], []]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("offset", [-1, 6, 1000])
def test_an_invalid_offset(node, log, offset):
    partition = only(answered(send(node, requested([offset], max_wait_ms=1000))))
    assert (partition.error_code, partition.high_watermark, offsets_in(partition)) == (1, -1, [])


@pytest.mark.parametrize("topic, index", [("t", 7), ("nobody", 0)])
def test_an_unknown_partition_does_not_fail_the_others(node, log, topic, index):
    request = requested([0], max_wait_ms=1000)
    request.topics.append(requested({index: 0}, topic=topic).topics[0])
    errors = [partition.error_code for each in answered(send(node, request)).responses for partition in each.partitions]
    assert errors == [0, 3]


def test_an_unknown_topic_id(node, log):
    request = requested([0])
    request.topics[0].topic_id = b"\7" * 16
    assert only(answered(send(node, request, 13), 13)).error_code == 100


def test_by_topic_id(node, log):
    request = requested([3])
    request.topics[0].topic_id = log.topic_id
    response = answered(send(node, request, 13), 13)
    assert response.responses[0].topic_id == log.topic_id
    assert offsets_in(only(response)) == [3, 4]


@pytest.mark.parametrize("epoch, error", [(0, 0), (-1, 0), (-2, 0), (9, 75)])
def test_the_leader_epoch_of_the_client(node, log, epoch, error):
    request = requested([0])
    request.topics[0].partitions[0].current_leader_epoch = epoch
    assert only(answered(send(node, request))).error_code == error


def test_a_reader_of_another_history_is_told_where_it_ends(node, log):
    request = requested([3])
    request.topics[0].partitions[0].last_fetched_epoch = 0
    assert only(answered(send(node, request, 12), 12)).diverging_epoch.epoch == -1
    request.topics[0].partitions[0].fetch_offset = 9
    partition = only(answered(send(node, request, 12), 12))
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (0, 5)


@pytest.mark.parametrize("session_id", [2**31 - 1, -(2**31)])
def test_a_session_id_that_none_can_have(node, log, session_id):
    response = answered(send(node, requested([0], session_id=session_id, session_epoch=1)))
    assert (response.error_code, response.session_id) == (-1, session_id)
    assert only(response).error_code == -1


@pytest.mark.parametrize("version", [11, 15])
def test_a_broker_without_a_replica_is_given_nothing(node, log, version):
    request = requested([0])
    request.topics[0].topic_id = log.topic_id
    request.replica_id = 1 if version < 15 else -1
    request.replica_state = FetchRequest.ReplicaState(replica_id=1 if version >= 15 else -1)  # the default is shared
    partition = only(answered(send(node, request, version), version))
    assert (partition.error_code, partition.high_watermark, bytes(partition.records)) == (6, -1, b"")


def test_an_unknown_isolation_level(node, log):
    response = answered(send(node, requested([0], isolation_level=2)))
    assert response.error_code == -1 and only(response).error_code == -1


# ---------------------------------------------------------------- waiting


def test_an_append_ends_the_waiting(node, log):
    later = send(node, requested([5], max_wait_ms=500))
    assert isinstance(later, Later) and later.response is None
    node.append(log, node.clock.time_ms())
    node.clock.advance(0)
    assert offsets_in(only(answered(later.response))) == [5]


def test_so_does_the_clock(node, log):
    later = send(node, requested([5], max_wait_ms=500))
    node.clock.advance(0.499)
    assert later.response is None
    node.clock.advance(0.001)
    assert offsets_in(only(answered(later.response))) == []


def test_it_waits_for_enough_bytes(node, log):
    size = log.log.size // 5
    later = send(node, requested([5], max_wait_ms=500, min_bytes=2 * size))
    node.append(log, node.clock.time_ms())
    node.clock.advance(0.1)
    assert later.response is None
    node.append(log, node.clock.time_ms())
    node.clock.advance(0)
    assert offsets_in(only(answered(later.response))) == [5, 6]


def test_what_is_there_already_counts(node, log):
    size = log.log.size // 5
    later = send(node, requested([4], max_wait_ms=500, min_bytes=size + 1))
    node.append(log, node.clock.time_ms())
    node.clock.advance(0)
    assert offsets_in(only(answered(later.response))) == [4, 5]


def test_appends_of_one_turn_go_out_together(node, log):
    later = send(node, requested([5], max_wait_ms=500))
    for _ in range(3):
        node.append(log, node.clock.time_ms())
    node.clock.advance(0)
    assert offsets_in(only(answered(later.response))) == [5, 6, 7]


def test_a_deleted_topic_ends_the_waiting(node, log):
    later = send(node, requested([5], max_wait_ms=500))
    reset_to_start(node.broker)
    node.clock.advance(0)
    partition = only(answered(later.response))
    assert (partition.error_code, partition.aborted_transactions) == (3, None)


def test_who_goes_away_leaves_nothing_behind(node, log):
    later = send(node, requested([5], max_wait_ms=500))
    later.cancel()
    assert not log._watchers
    node.append(log, node.clock.time_ms())
    node.clock.advance(1)
    assert later.response is None


# ---------------------------------------------------------------- sessions


def start_session(node, offsets):
    response = answered(send(node, requested(offsets, session_epoch=0)))
    assert response.session_id > 0
    return response


def go_on(node, session_id, epoch, offsets=(), **fields):
    return send(node, requested(offsets, session_id=session_id, session_epoch=epoch, **fields))


def test_a_session_tells_only_what_is_new(node, log):
    session_id = start_session(node, [5, 0]).session_id
    assert answered(go_on(node, session_id, 1)).responses == []
    node.append(node.broker.partition("t", 1), 0)
    partition = only(answered(go_on(node, session_id, 2)))
    assert (partition.partition_index, offsets_in(partition)) == (1, [0])
    response = answered(go_on(node, session_id, 3, {1: 1}))
    assert (response.session_id, response.responses) == (session_id, [])


def test_a_session_waits_for_all_of_its_partitions(node, log):
    session_id = start_session(node, [5, 0]).session_id
    later = go_on(node, session_id, 1, max_wait_ms=500)
    node.append(node.broker.partition("t", 1), 0)
    node.clock.advance(0)
    assert only(answered(later.response)).partition_index == 1


def test_the_one_that_gave_data_is_served_last(node, log):
    node.append(node.broker.partition("t", 1), 0)
    session_id = start_session(node, {0: 5, 1: 1}).session_id
    served = []
    for epoch in range(1, 5):
        response = answered(go_on(node, session_id, epoch, {0: 0, 1: 0} if epoch == 1 else (), max_bytes=1))
        served.append([p.partition_index for t in response.responses for p in t.partitions if p.records])
    assert served == [[0], [1], [0], [1]]


@pytest.mark.parametrize(("made_again", "error"), [(False, 3), (True, 103)])
def test_a_session_remembers_the_name_of_a_topic_that_is_gone(node, log, made_again, error):
    request = requested([5], session_epoch=0)
    request.topics[0].topic_id = log.topic_id
    session_id = answered(send(node, request, 13), 13).session_id
    submitted(node.broker.controller, DeleteTopics([("t", ZERO_UUID)]))
    if made_again:
        node.create_topic("t", 1)
    again = answered(send(node, requested([], session_id=session_id, session_epoch=1), 13), 13)
    assert only(again).error_code == error


def test_partitions_are_forgotten(node, log):
    session_id = start_session(node, [5, 0]).session_id
    node.append(log, 0)
    forgotten = [FetchRequest.ForgottenTopic(topic="t", partitions=[0])]
    assert answered(go_on(node, session_id, 1, forgotten_topics_data=forgotten)).responses == []


@pytest.mark.parametrize("change, error", [({"session_epoch": 7}, 71), ({"session_id": 123456}, 70)])
def test_an_unknown_session(node, log, change, error):
    session_id = start_session(node, [0]).session_id
    response = answered(send(node, requested([], **({"session_id": session_id, "session_epoch": 1} | change))))
    assert (response.error_code, response.session_id, response.responses) == (error, 0, [])


def test_the_last_request_of_a_session_ends_it(node, log):
    session_id = start_session(node, [0]).session_id
    assert answered(go_on(node, session_id, -1, [0])).session_id == 0
    assert answered(go_on(node, session_id, 1)).error_code == 70


def test_a_partition_with_an_error_is_told_again_and_when_it_is_well(node, log):
    session_id = start_session(node, [9]).session_id
    assert only(answered(go_on(node, session_id, 1))).error_code == 1
    assert only(answered(go_on(node, session_id, 2, [5]))).error_code == 0
    assert answered(go_on(node, session_id, 3)).responses == []
