"""Comparison of responses with the recorded ones."""

import pytest

from barnabas.records.builder import build_batch
from barnabas.replay.comparing import Comparison
from barnabas.replay.fetched import Fetched
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.frames import ResponseFrame
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse


class Answers:
    """Compares responses one after the other."""

    def __init__(self, ignored=()):
        self.translation = Translation()
        self.fetched = Fetched(self.translation)
        self._comparison = Comparison(self.translation, self.fetched, frozenset(ignored))

    def differ(self, recorded, replayed, version):
        pair = (ResponseFrame(each, version, 1) for each in (recorded, replayed))
        return [(each.path, each.recorded, each.replayed) for each in self._comparison.compare(Scope(), *pair)]


def metadata(*topics, node_id=1, leader_id=None):
    kind = MetadataResponse.MetadataResponseTopic
    partition = kind.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=node_id if leader_id is None else leader_id, leader_epoch=0,
        replica_nodes=[node_id], isr_nodes=[node_id], offline_replicas=[],
    )  # fmt: skip
    found = [kind(error_code=0, name=name, topic_id=topic_id, partitions=[partition]) for name, topic_id in topics]
    broker = MetadataResponse.MetadataResponseBroker(node_id=node_id, host=f"host-{node_id}", port=9000 + node_id)
    return MetadataResponse(brokers=[broker], cluster_id=f"cluster-{node_id}", controller_id=node_id, topics=found)


A, B, C = (letter * 16 for letter in (b"a", b"b", b"c"))


def test_nodes_ids_and_order_are_those_of_the_run():
    answers = Answers()
    assert answers.differ(metadata(("x", A), ("y", B)), metadata(("y", C), ("x", B), node_id=7), 12) == []
    assert answers.differ(metadata(("x", A)), metadata(("x", B), node_id=7), 12) == []


def test_an_id_that_is_another_one_now():
    answers = Answers()
    assert answers.differ(metadata(("x", A)), metadata(("x", B)), 12) == []
    assert answers.differ(metadata(("x", A)), metadata(("x", C)), 12) == [("topics[x].topic_id", B, C)]


@pytest.mark.parametrize(
    ("recorded", "replayed", "path"),
    [
        (metadata(("x", A)), metadata(), "topics[x]"),
        (metadata(), metadata(("x", A)), "topics[x]"),
        (metadata(("x", A)), metadata(("x", A), leader_id=-1), "topics[x].partitions[0].leader_id"),
    ],
)
def test_what_is_missing_or_too_much(recorded, replayed, path):
    assert [each[0] for each in Answers().differ(recorded, replayed, 12)] == [path]


def test_log_directories_are_those_of_the_run():
    answers = Answers()

    def configs(value):
        result = DescribeConfigsResponse.DescribeConfigsResult
        config = result.DescribeConfigsResourceResult(
            name="log.dirs", value=value, read_only=True, is_sensitive=False, synonyms=[]
        )
        return DescribeConfigsResponse(
            results=[result(error_code=0, error_message=None, resource_type=4, resource_name="1", configs=[config])]
        )

    assert answers.differ(configs("/then/a,/then/b"), configs("/now/a,/now/b"), 4) == []
    ((path, *values),) = answers.differ(configs("/then/b"), configs("/now/a"), 4)
    assert (path, values) == ("results[1].configs[log.dirs].value", ["/now/b", "/now/a"])
    move = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path="/then/b", topics=[])
    request = AlterReplicaLogDirsRequest(dirs=[move])
    assert answers.translation.translate(request, 2, Scope())
    assert request.dirs[0].path == "/now/b"


def test_ignored_fields():
    answers = Answers(["leader_id"])
    assert answers.differ(metadata(("x", A)), metadata(("x", A), leader_id=-1), 12) == []


def produced(base_offset, error_code=0):
    kind = ProduceResponse.TopicProduceResponse
    partition = kind.PartitionProduceResponse(
        index=0, error_code=error_code, base_offset=base_offset, log_start_offset=0, log_append_time_ms=-1
    )
    return ProduceResponse(responses=[kind(name="orders", partition_responses=[partition])])


def test_offsets_keep_their_distance():
    answers = Answers()
    assert answers.differ(produced(1000), produced(0), 9) == []
    assert answers.differ(produced(1005), produced(5), 9) == []
    path = "responses[orders].partition_responses[0].base_offset"
    assert answers.differ(produced(1010), produced(11), 9) == [(path, 10, 11)]


def fetched(*values, base_offset=0, high_watermark=0):
    kind = FetchResponse.FetchableTopicResponse
    records = build_batch([(None, value, 5) for value in values], base_offset=base_offset) if values else b""
    partition = kind.PartitionData(
        partition_index=0, error_code=0, high_watermark=high_watermark, last_stable_offset=0, log_start_offset=0,
        records=bytes(records),
    )  # fmt: skip
    return FetchResponse(responses=[kind(topic="orders", partitions=[partition])])


def test_records_are_compared_by_their_offsets():
    answers = Answers()
    assert answers.differ(fetched(b"1", b"2"), fetched(b"1", high_watermark=9), 12) == []
    assert list(answers.fetched.missing()) == [(("orders", 0), "1")]
    found = answers.differ(fetched(b"3", base_offset=2), fetched(b"2", b"x", base_offset=1), 12)
    assert [each[0] for each in found] == ["responses[orders].partitions[0].records[2]"]
    assert list(answers.fetched.missing()) == []


def test_records_of_a_log_that_begins_elsewhere():
    answers = Answers()
    answers.differ(produced(1000), produced(3), 9)
    assert answers.differ(fetched(b"1", base_offset=1000), fetched(b"1", base_offset=3), 12) == []
    assert answers.differ(fetched(b"0", base_offset=990), fetched(), 12) == []
    assert list(answers.fetched.missing()) == [(("orders", 0), "-7")]
