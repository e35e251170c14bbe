"""WriteTxnMarkers: a result for each partition of each marker, with Apache Kafka 4.3.1's errors."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.write_txn_markers import write_txn_markers
from barnabas.records.batch import batches
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

RequestMarker = WriteTxnMarkersRequest.WritableTxnMarker


def marker(producer_id=77, epoch=0, *topics, commit=True, coordinator_epoch=0, version=0):
    return RequestMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=commit,
        coordinator_epoch=coordinator_epoch,
        transaction_version=version,
        topics=[
            RequestMarker.WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, *indexes in topics
        ],
    )


class Writing:
    """A node with a topic t of three partitions and u of one."""

    def __init__(self, node):
        self.node = node
        node.create_topic("t", 3)
        node.create_topic("u")

    def ask(self, *markers, version=1):
        """Returns the producer ids, each with the error codes of partitions by topic."""

        def handle(request, context):
            answer = write_txn_markers(request, context)
            return answer.response if isinstance(answer, Later) else answer

        response = self.node.ask(handle, WriteTxnMarkersRequest(markers=list(markers)), version)
        assert isinstance(response, WriteTxnMarkersResponse)
        return [
            (
                each.producer_id,
                {
                    (topic.name, partition.partition_index): partition.error_code
                    for topic in each.topics
                    for partition in topic.partitions
                },
            )
            for each in response.markers
        ]

    def ends(self, topic="t", index=0):
        log = self.node.broker.partition(topic, index).log
        found = list(batches(log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True)))
        return [batch.producer_id for batch in found if batch.is_control]


@pytest.fixture
def writing(node):
    return Writing(node)


def test_no_marker(writing):
    assert writing.ask() == []


def test_a_marker_without_a_transaction_is_not_reported(writing):
    assert writing.ask(marker(77, 0), marker(78, 0, ("t", 0))) == [(78, {("t", 0): 0})]
    assert writing.ask(marker(77, 0)) == []


def test_each_partition_has_its_own_error(writing):
    requested = marker(77, 0, ("t", 0, 9), ("nobody", 0), ("u", 0))
    assert writing.ask(requested) == [(77, {("t", 0): 0, ("t", 9): 3, ("nobody", 0): 3, ("u", 0): 0})]
    assert writing.ends() == writing.ends("u") == [77]


def test_several_markers_are_answered_by_producer(writing):
    requested = [marker(77, 0, ("t", 0)), marker(78, 3, ("t", 0), ("u", 0)), marker(77, 1, ("t", 1))]
    assert writing.ask(*requested) == [(77, {("t", 1): 0, ("t", 0): 0}), (78, {("t", 0): 0, ("u", 0): 0})]


def test_a_partition_that_is_named_twice_has_one_marker(writing):
    assert writing.ask(marker(77, 0, ("t", 0, 0))) == [(77, {("t", 0): 0})]
    assert writing.ends() == [77]


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "error"),
    [(3, 1, 0), (4, 1, 0), (3, 2, 0), (2, 1, 47), (3, 0, 52), (2, 0, 47), (-2, 1, 47), (3, -1, 52)],
)
def test_what_is_older_is_fenced(writing, epoch, coordinator_epoch, error):
    writing.ask(marker(78, 3, ("t", 0), coordinator_epoch=1))
    requested = marker(78, epoch, ("t", 0), coordinator_epoch=coordinator_epoch)
    assert writing.ask(requested) == [(78, {("t", 0): error})]


@pytest.mark.parametrize(("epoch", "coordinator_epoch", "error"), [(0, -1, 0), (-2, 0, 47), (0, -7, 52)])
def test_an_unknown_producer(writing, epoch, coordinator_epoch, error):
    requested = marker(79, epoch, ("t", 0), coordinator_epoch=coordinator_epoch)
    assert writing.ask(requested) == [(79, {("t", 0): error})]


@pytest.mark.parametrize("impossible", [(79, -1), (-1, 0)])
def test_a_marker_that_cannot_be_written_fails_them_all(writing, impossible):
    requested = [marker(1, 0, ("t", 0)), marker(*impossible, ("t", 1)), marker(2, 0, ("t", 2), ("nobody", 1))]
    assert [code for _, codes in writing.ask(*requested) for code in codes.values()] == [-1] * 4
    assert [writing.ends("t", index) for index in range(3)] == [[1], [], []]


def test_a_marker_that_cannot_be_written_and_has_no_place(writing):
    assert writing.ask(marker(-1, -1, ("nobody", 1))) == [(-1, {("nobody", 1): 3})]


def test_the_generation_comes_with_version_2(writing):
    batch = {"producer_id": 7, "producer_epoch": 4, "base_sequence": 0, "is_transactional": True}
    writing.node.append(writing.node.broker.partition("t", 0), 5, **batch)
    requested = marker(7, 4, ("t", 0), version=2)
    assert writing.ask(requested, version=2) == [(7, {("t", 0): 47})]
    assert writing.ask(marker(7, 4, ("t", 0), version=-1), version=2) == [(7, {("t", 0): -1})]
    assert writing.ask(marker(7, 5, ("t", 0), version=2), version=2) == [(7, {("t", 0): 0})]
    assert writing.ask(marker(7, 4, ("u", 0)), version=1) == [(7, {("u", 0): 0})]
