import pytest

from barnabas.api_handlers.describe_quorum import describe_quorum, metadata_partition
from barnabas.config.endpoints import Endpoint
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest as Request
from tests.cluster.quorum.voting import Walk

LOG = "__cluster_metadata"


def request(*topics):
    return Request(
        topics=[
            Request.TopicData(
                topic_name=name, partitions=[Request.TopicData.PartitionData(partition_index=each) for each in indexes]
            )
            for name, indexes in topics
        ]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_metadata_log(node, version):
    node.broker.quorum.voter_endpoints = [Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")]
    response = node.ask(describe_quorum, request((LOG, [0])), version)
    end = node.broker.metadata.log.log_end_offset
    now_ms = node.clock.time_ms() if version >= 1 else -1
    said = "" if version >= 2 else None
    assert (response.error_code, response.error_message) == (0, said)
    (topic,) = response.topics
    (partition,) = topic.partitions
    assert (partition.partition_index, partition.error_code, partition.error_message) == (0, 0, said)
    assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (1, 1, end)
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset, voter.replica_directory_id) == (1, end, bytes(16))
    assert (voter.last_fetch_timestamp, voter.last_caught_up_timestamp) == (now_ms, now_ms)
    assert partition.observers == []
    if version >= 2:
        (found,) = response.nodes
        assert found.node_id == 1
        assert [(each.name, each.host, each.port) for each in found.listeners] == [("CONTROLLER", "127.0.0.1", 9093)]


def test_voters_that_configs_name_have_no_directory_ids():
    """Their fetches name their directories, but Apache Kafka describes the keys by which they vote."""
    walk = Walk(5)
    walk.heal()
    walk.run(15, faults=False)
    (leader,) = (member for member in walk.up if member.voter.is_leader)
    voters = metadata_partition(leader.context.broker).current_voters
    assert all(voter.log_end_offset > 0 for voter in voters)
    assert [(voter.replica_id, voter.replica_directory_id) for voter in voters] == [
        (each, bytes(16)) for each in walk.ids
    ]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "topics",
    [
        [(LOG, [1])],
        [("orders", [0])],
        [(LOG, [0, 1])],
        [(LOG, [0, 0])],
        [(LOG, [0]), (LOG, [0])],
        [(LOG, [0]), ("orders", [0])],
        [(LOG, [])],
        [],
    ],
)
def test_nothing_else_has_a_quorum(node, version, topics):
    response = node.ask(describe_quorum, request(*topics), version)
    assert (response.error_code, list(response.nodes)) == (0, [])
    assert [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in response.topics
    ] == topics
    for topic in response.topics:
        for each in topic.partitions:
            assert (each.error_code, each.leader_id, each.leader_epoch, each.high_watermark) == (3, 0, 0, 0)
            assert bool(each.error_message) == (version >= 2)
            assert (each.current_voters, each.observers) == ([], [])
