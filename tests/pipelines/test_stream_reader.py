"""The calls of Spark's engine to a stream reader, against a broker in this process, without Spark."""

import contextlib
import itertools
import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from barnabas.errors import UnknownTopicOrPartition
from barnabas.pipelines.batch_reader import BatchReader
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.offsets import BadOption, DataLoss, Range
from barnabas.pipelines.options import BATCH_READ, STREAM_READ, read_options
from barnabas.pipelines.stream_reader import StreamReader
from barnabas.testing import Broker

EVERYTHING = ReadAllAvailable()
NAMES = (f"orders-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(broker: Broker) -> str:
    name = next(NAMES)
    broker.create_topic(name, partitions=2)
    return name


def produce(broker: Broker, topic: str, **counts: int) -> None:
    """``p0=5`` writes five records to partition 0."""
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for partition, count in counts.items():
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=int(partition[1:]), timestamp_ms=1_000 * number)
    producer.close()


def options_for(broker: Broker, **options: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "fetchOffset.retryIntervalMs": "10", **options}


def stream(broker: Broker, **options: str) -> StreamReader:
    """As Spark has it: the reader has been pickled, its offsets have been through JSON."""
    made = StreamReader(read_options(options_for(broker, **options), STREAM_READ))
    return pickle.loads(pickle.dumps(made))


def latest(reader: StreamReader, start: dict[str, Any], limit: object = EVERYTHING) -> dict[str, Any]:
    return json.loads(json.dumps(reader.latestOffset(json.loads(json.dumps(start)), limit)))


def ranges(reader: StreamReader | BatchReader, *offsets: dict[str, Any]) -> list[tuple[str, int, int, int]]:
    parts = [part.value for part in reader.partitions(*offsets)]
    assert all(isinstance(part, Range) and part.topic_id for part in parts)
    return [part[:4] for part in parts]


@contextlib.contextmanager
def admin(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    yield client
    client.close()


def test_micro_batches_follow_each_other_until_there_is_nothing_new(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribe=topic, startingOffsets="earliest")
    produce(broker, topic, p0=3)
    start = reader.initialOffset()
    assert start[topic] == {"0": 0, "1": 0}
    end = latest(reader, start)
    assert end[topic] == {"0": 3, "1": 0}
    assert ranges(reader, start, end) == [(topic, 0, 0, 3)]
    assert json.dumps(latest(reader, end)) == json.dumps(end)
    assert ranges(reader, end, end) == []
    assert reader.reportLatestOffset() == {name: at for name, at in end.items() if name != "#from"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "latest"}, {"0": 4, "1": 2}),
        ({"startingTimestamp": "1000"}, {"0": 1, "1": 1}),
        ({"startingTimestamp": "3000", "startingOffsetsByTimestampStrategy": "latest"}, {"0": 3, "1": 2}),
    ],
)
def test_where_now_decided_is_written_down_with_a_first_batch(
    broker: Broker, topic: str, options: dict[str, str], expected: dict[str, int]
) -> None:
    produce(broker, topic, p0=4, p1=2)
    reader = stream(broker, subscribe=topic, **options)
    start = reader.initialOffset()
    assert start[topic] == expected
    end = latest(reader, start)
    assert end != start
    produce(broker, topic, p0=1)
    again = stream(broker, subscribe=topic, **options)  # the query has failed in its first batch
    assert ranges(again, again.initialOffset(), end) == ranges(reader, start, end)
    earlier = stream(broker, subscribe=topic, startingOffsets="earliest")  # or was started again with other options
    assert ranges(earlier, earlier.initialOffset(), end) == ranges(reader, start, end)
    assert ranges(again, end, end) == []
    later = latest(again, end)
    assert later[topic] == {"0": 5, "1": 2} and "#from" not in later


@pytest.mark.parametrize("first", ["earliest", '{"0": 1, "1": -2}'])
def test_a_first_batch_begins_where_it_was_planned_though_other_offsets_are_named_later(
    broker: Broker, topic: str, first: str
) -> None:
    produce(broker, topic, p0=4, p1=2)
    named = first if first == "earliest" else f'{{"{topic}": {first}}}'
    reader = stream(broker, subscribe=topic, startingOffsets=named)
    start = reader.initialOffset()
    end = latest(reader, start)
    planned = ranges(reader, start, end)
    later = stream(broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 4, "1": 2}}))
    assert ranges(later, later.initialOffset(), end) == planned
    assert json.dumps(latest(reader, end)) == json.dumps(end)


def test_limits(broker: Broker, topic: str) -> None:
    produce(broker, topic, p0=90, p1=10)
    reader = stream(broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(20)
    start = reader.initialOffset()
    assert latest(reader, start, limit)[topic] == {"0": 18, "1": 2}
    assert latest(reader, start)[topic] == {"0": 90, "1": 10}  # Trigger.Once
    assert (reader.reportLatestOffset() or {})[topic] == {"0": 90, "1": 10}
    tasks = stream(broker, subscribe=topic, minPartitions="10", startingOffsets="earliest")
    assert len(ranges(tasks, start, latest(tasks, start))) == 10


def test_too_few_records_are_waited_for_but_not_for_ever(broker: Broker, topic: str) -> None:
    options = {"subscribe": topic, "startingOffsets": "earliest", "minOffsetsPerTrigger": "10", "maxTriggerDelay": "1h"}
    reader = stream(broker, **options)
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    produce(broker, topic, p0=4)
    first = latest(reader, reader.initialOffset(), limit)
    assert first[topic] == {"0": 4, "1": 0}  # as nothing has run for an hour
    produce(broker, topic, p1=9)
    assert latest(reader, first, limit) == first
    produce(broker, topic, p1=1)
    assert latest(reader, first, limit)[topic] == {"0": 4, "1": 10}
    impatient = stream(broker, **{**options, "maxTriggerDelay": "0"})
    assert latest(impatient, first, limit)[topic] == {"0": 4, "1": 10}
    both = stream(broker, **options, maxOffsetsPerTrigger="10")
    assert both.getDefaultReadLimit() == ReadMaxRows(10)
    assert latest(both, both.initialOffset(), ReadMaxRows(10))[topic] == {"0": 2, "1": 7}
    assert latest(both, first | {topic: {"0": 4, "1": 8}}, ReadMaxRows(10))[topic] == {"0": 4, "1": 8}


def test_available_now_is_what_is_there_when_the_query_begins(broker: Broker, topic: str) -> None:
    produce(broker, topic, p0=10)
    reader = stream(
        broker, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="6", minOffsetsPerTrigger="5"
    )
    reader.prepareForTriggerAvailableNow()
    first = latest(reader, reader.initialOffset(), reader.getDefaultReadLimit())
    produce(broker, topic, p0=10, p1=10)
    second = latest(reader, first, reader.getDefaultReadLimit())
    assert (first[topic], second[topic]) == ({"0": 6, "1": 0}, {"0": 10, "1": 0})
    assert latest(reader, second, reader.getDefaultReadLimit()) == second


def test_what_is_new_is_read_from_its_beginning(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribePattern=f"^{topic}(-more)?$")
    produce(broker, topic, p0=1)
    start = latest(reader, reader.initialOffset())
    with admin(broker) as client:
        client.create_partitions({topic: 3})
    broker.create_topic(f"{topic}-more")
    broker.create_topic(f"{topic}-other")
    produce(broker, topic, p2=2)
    produce(broker, f"{topic}-more", p0=4)
    end = latest(reader, start)
    assert ranges(reader, start, end) == [(topic, 2, 0, 2), (f"{topic}-more", 0, 0, 4)]
    limited = latest(reader, start, ReadMaxRows(3))
    assert (limited[topic], limited[f"{topic}-more"]) == ({"0": 1, "1": 0, "2": 1}, {"0": 2})


def test_a_topic_made_again_is_another(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribe=topic, startingOffsets="earliest")
    careless = stream(broker, subscribe=topic, failOnDataLoss="false")
    produce(broker, topic, p0=5)
    start = latest(reader, reader.initialOffset())
    with admin(broker) as client:
        client.delete_topics([topic])
        missing = latest(reader, start)
        assert topic not in missing
        with pytest.raises(DataLoss, match=f"{topic}-0, {topic}-1: lost"):
            reader.partitions(start, missing)
        assert ranges(careless, start, missing) == []
    broker.create_topic(topic)
    produce(broker, topic, p0=7)
    end = latest(reader, start)
    with pytest.raises(DataLoss, match=f"topic {topic} was deleted and created again.*{topic}-1: lost"):
        reader.partitions(start, end)
    assert ranges(careless, start, end) == [(topic, 0, 0, 7)]
    assert latest(careless, start, ReadMaxRows(3))[topic] == {"0": 3}
    assert ranges(careless, missing, latest(careless, missing)) == [(topic, 0, 0, 7)]


def test_an_end_that_decreased_is_requested_again_before_it_is_data_loss(broker: Broker, topic: str) -> None:
    reader = stream(broker, subscribe=topic, startingOffsets="earliest")
    produce(broker, topic, p0=5)
    start = latest(reader, reader.initialOffset())
    ahead = start | {topic: {"0": 8, "1": 0}}
    with pytest.raises(DataLoss, match=f"{topic}-0: it ends at offset 5, but was read up to offset 8"):
        reader.partitions(ahead, latest(reader, ahead))


def test_how_far_the_query_has_come_is_committed_to_a_group(broker: Broker, topic: str) -> None:
    options = read_options(
        options_for(broker, subscribe=topic, startingOffsets="earliest", commitGroup=f"{topic}-group"), STREAM_READ
    )
    reader, cluster = StreamReader(options), Cluster.of(options.client)
    produce(broker, topic, p0=5)
    start = reader.initialOffset()
    end = latest(reader, start)

    def committed() -> dict[TopicPartition, int]:
        return {part: kept.offset for part, kept in cluster.committed(f"{topic}-group").items()}

    assert committed() == {(topic, 0): 0, (topic, 1): 0}
    latest(reader, end)
    assert committed() == {(topic, 0): 5, (topic, 1): 0}


def test_a_topic_deleted_behind_the_back_of_a_cluster_that_knew_it(broker: Broker, topic: str) -> None:
    options = read_options(options_for(broker, subscribe=topic), STREAM_READ)
    cluster = Cluster.of(options.client)
    first = TopicPartition(topic, 0)
    assert cluster.partitions(topic) == [0, 1]
    with admin(broker) as client:
        client.delete_topics([topic])
    with pytest.raises(UnknownTopicOrPartition, match=f"topic {topic} does not exist"):
        cluster.list_offsets({first: -1})


def test_a_batch(broker: Broker, topic: str) -> None:
    def batch(**options: str) -> BatchReader:
        return BatchReader(read_options(options_for(broker, **options), BATCH_READ))

    produce(broker, topic, p0=5, p1=3)
    assert ranges(batch(subscribe=topic)) == [(topic, 0, 0, 5), (topic, 1, 0, 3)]
    assert ranges(batch(assign=json.dumps({topic: [1]}))) == [(topic, 1, 0, 3)]
    offsets = json.dumps({topic: {"0": 2, "1": -2}})
    assert ranges(batch(subscribe=topic, startingOffsets=offsets, endingTimestamp="2000")) == [(topic, 1, 0, 2)]
    assert len(ranges(batch(subscribe=topic, maxRecordsPerPartition="2"))) == 5
    with pytest.raises(BadOption, match=f"assign: {topic}-7 does not exist, topic {topic} has 2 partitions"):
        batch(assign=json.dumps({topic: [7]})).partitions()
    with pytest.raises(UnknownTopicOrPartition, match=f"topic {topic}-x does not exist at .*check its name"):
        batch(subscribe=f"{topic},{topic}-x").partitions()
    assert batch(subscribePattern=f"{topic}-x.*").partitions() == []
    assert list(batch(subscribe=topic).read(type("Nothing", (), {"value": None})())) == []
