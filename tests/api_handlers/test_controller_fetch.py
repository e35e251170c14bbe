import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.controller_fetch import controller_fetch
from barnabas.api_handlers.describe_quorum import describe_quorum
from barnabas.api_handlers.fetch_snapshot import fetch_snapshot
from barnabas.api_handlers.registry import CONTROLLER_APIS
from barnabas.cluster.quorum.fetching import Identity, fetch_request, snapshot_request
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaStorageError
from barnabas.log.follower import Position
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from tests.asking import context_of

DIRECTORY_ID = bytes([9]) * 16


@pytest.fixture
def broker(node):
    node.broker.quorum.voter_endpoints = [Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")]
    return node.broker


def request(broker, offset=0, last_epoch=0, **fields):
    identity = Identity(7, broker.cluster_id, DIRECTORY_ID)
    position = Position(offset, last_epoch)
    made = fetch_request(identity, 1, position, high_watermark=offset, max_bytes=1 << 20)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def at_the_end(broker, **fields):
    return request(broker, broker.metadata.log.log_end_offset, 1, **fields)


def records(response):
    return response.responses[0].partitions[0].records


def test_a_controllers_listener_has_its_own_fetch():
    assert CONTROLLER_APIS[1].handle is controller_fetch


@pytest.mark.parametrize("version", range(13, 19))
def test_the_metadata_log_is_fetched_by_its_id(node, broker, version):
    response = node.ask(controller_fetch, request(broker), version)
    log = broker.metadata.log
    assert records(response) == log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True)


@pytest.mark.parametrize("version", range(7, 13))
def test_it_is_not_fetched_by_its_name(node, broker, version):
    assert node.ask(controller_fetch, request(broker), version).error_code == 42


@pytest.fixture
def answers(broker):
    """Sends fetches, and collects the responses."""
    collected = []

    def ask(made):
        answer = controller_fetch(made, context_of(broker, 18))
        if isinstance(answer, Later):
            answer.then(collected.append)
        else:
            collected.append(answer)
        return answer

    ask.all = collected
    return ask


def test_it_waits_for_new_records(node, broker, answers):
    answers(at_the_end(broker))
    node.create_topic("orders")
    assert answers.all == []  # the appends of this turn of the loop are in one response
    node.clock.advance(0)
    (response,) = answers.all
    assert records(response)
    node.clock.advance(1)
    assert len(answers.all) == 1


def test_it_waits_no_longer_than_it_may(node, broker, answers):
    answers(at_the_end(broker))
    node.clock.advance(0.499)
    assert answers.all == []
    node.clock.advance(0.001)
    (response,) = answers.all
    assert not records(response)
    node.create_topic("orders")
    node.clock.advance(1)
    assert len(answers.all) == 1


def test_it_waits_while_the_disk_fails(node, broker, answers):
    answers(at_the_end(broker))
    node.create_topic("orders")
    broker.metadata.log.go_offline("No space left on device")
    node.clock.advance(0)
    (response,) = answers.all
    assert response.error_code == KafkaStorageError.code


def test_it_need_not_wait(broker, answers):
    answers(at_the_end(broker, max_wait_ms=0))
    assert len(answers.all) == 1


def test_who_has_gone_is_not_waited_for(node, broker, answers):
    answers(at_the_end(broker)).cancel()
    node.create_topic("orders")
    node.clock.advance(1)
    assert answers.all == []


def test_a_snapshot_is_fetched(node, broker):
    snapshot_id = broker.metadata.snapshots.write_snapshot()
    identity = Identity(7, broker.cluster_id, DIRECTORY_ID)
    for version in (0, 1):
        made = snapshot_request(identity, 1, snapshot_id, position=0, max_bytes=1 << 20)
        response = node.ask(fetch_snapshot, made, version)
        (partition,) = response.topics[0].partitions
        assert partition.size == len(partition.unaligned_records) > 0


def test_describe_quorum_tells_who_copies_the_log(node, broker, answers):
    answers(request(broker))
    wanted = DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)]
    )
    response = node.ask(describe_quorum, DescribeQuorumRequest(topics=[wanted]), 2)
    (found,) = response.topics[0].partitions[0].observers
    assert (found.replica_id, found.replica_directory_id, found.log_end_offset) == (7, DIRECTORY_ID, 0)
    assert (found.last_fetch_timestamp, found.last_caught_up_timestamp) == (node.clock.time_ms(), -1)


def test_who_does_not_lead_does_not_describe(node, broker):
    broker.quorum._resign()
    wanted = DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)]
    )
    response = node.ask(describe_quorum, DescribeQuorumRequest(topics=[wanted]), 2)
    assert response.topics[0].partitions[0].error_code == 6
    assert response.nodes == []
