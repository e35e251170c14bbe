"""The options of reads and writes, and the messages of refused ones."""

import dataclasses
import pickle

import pytest

from barnabas.pipelines.client import EARLIEST, LATEST, TopicPartition
from barnabas.pipelines.offsets import BadOption
from barnabas.pipelines.option_tables import READ, READS, WRITE, WRITES
from barnabas.pipelines.options import (
    ANY_READ,
    BATCH_READ,
    BATCH_WRITE,
    STREAM_READ,
    STREAM_WRITE,
    ReadOptions,
    read_options,
    write_options,
)
from barnabas.records.batch import Compression

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}


def read(scope: str = BATCH_READ, **options: str) -> ReadOptions:
    return read_options({**SERVERS, "subscribe": "orders", **options}, scope)


def test_little_has_to_be_said() -> None:
    batch, stream = read(), read(STREAM_READ)
    assert batch.topics == ("orders",)
    assert (batch.starting.everywhere, batch.ending.everywhere) == (EARLIEST, LATEST)
    assert stream.starting.everywhere == LATEST
    assert batch.fail_on_data_loss and not batch.include_headers and not batch.committed
    assert batch.max_trigger_delay == 900


def test_names_are_in_any_case_as_spark_hands_them_over_in_lower_case() -> None:
    said = {name.lower(): value for name, value in {**SERVERS, "subscribePattern": "a.*", "minPartitions": "3"}.items()}
    options = read_options(said, BATCH_READ)
    assert (options.pattern, options.min_partitions) == ("a.*", 3)


@pytest.mark.parametrize(
    ("given", "topics", "assigned"),
    [
        ({"subscribe": " a, b ,a,"}, ("a", "b"), None),
        ({"assign": '{"b": [1, 0], "a": [2]}'}, None, (("a", 2), ("b", 0), ("b", 1))),
    ],
)
def test_topics_and_partitions(given: dict[str, str], topics: object, assigned: object) -> None:
    options = read_options({**SERVERS, **given}, BATCH_READ)
    assert (options.topics, options.assigned) == (topics, assigned)


@pytest.mark.parametrize(
    ("given", "option", "by_time", "at"),
    [
        ({"startingOffsets": "EARLIEST"}, "startingOffsets", False, EARLIEST),
        ({"startingOffsets": '{"orders": {"0": 5, "1": -2}}'}, "startingOffsets", False, {0: 5, 1: EARLIEST}),
        (
            {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders": {"0": 1000}}'},
            "startingOffsetsByTimestamp",
            True,
            {0: 1000},
        ),
        (
            {
                "startingOffsets": "earliest",
                "startingOffsetsByTimestamp": '{"orders": {"0": 1000}}',
                "startingTimestamp": "2000",
            },
            "startingTimestamp",
            True,
            2000,
        ),
    ],
)
def test_of_several_ways_to_say_where_to_begin_spark_s_order_holds(
    given: dict[str, str], option: str, by_time: bool, at: object
) -> None:
    starting = read(**given).starting
    each = starting.each and {partition.partition: offset for partition, offset in starting.each.items()}
    assert (starting.option, starting.by_time, starting.everywhere if each is None else each) == (option, by_time, at)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("2min", 120), ("500ms", 0.5), ("20", 0.02), ("1 h", 3600), ("3s", 3)]
)
def test_durations(text: str, seconds: float) -> None:
    assert read(STREAM_READ, maxTriggerDelay=text).max_trigger_delay == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("scope", "given", "words"),
    [
        (BATCH_READ, {"subscribePattern": "a"}, "subscribe and subscribePattern exclude each other"),
        (BATCH_READ, {"subscribe": " , "}, "must name at least one topic"),
        (BATCH_READ, {"subscribe": "an order"}, "'an order' is not a valid topic"),
        (BATCH_READ, {"startingOffsets": "latest"}, "cannot begin at latest"),
        (BATCH_READ, {"startingOffsets": '{"orders": {"0": -1}}'}, "orders-0 has -1"),
        (BATCH_READ, {"endingOffsets": "earliest"}, "cannot end at earliest"),
        (BATCH_READ, {"endingOffsets": '{"orders": {"0": -2}}'}, "orders-0 has -2"),
        (BATCH_READ, {"startingOffsets": "first"}, "must be earliest, latest, or JSON like"),
        (BATCH_READ, {"startingOffsets": '{"orders": {"0": "5"}}'}, '\'orders\' has "0": "5"'),
        (BATCH_READ, {"startingOffsets": '{"orders": {"zero": 5}}'}, "'orders' has \"zero\": 5"),
        (BATCH_READ, {"startingOffsets": '{"orders": {"0": -3}}'}, "'orders' has \"0\": -3"),
        (BATCH_READ, {"startingOffsets": '{"orders": 5}'}, "topic 'orders' has no partitions"),
        (BATCH_READ, {"startingOffsets": "{orders"}, "startingOffsets must be JSON like"),
        (BATCH_READ, {"startingOffsetsByTimestamp": '{"orders": {"0": -1}}'}, "startingOffsetsByTimestamp must be"),
        (BATCH_READ, {"startingTimestamp": "yesterday"}, "startingTimestamp 'yesterday': must be a whole number"),
        (BATCH_READ, {"startingOffsetsByTimestampStrategy": "skip"}, "must be one of error, latest"),
        (BATCH_READ, {"minPartitions": "0"}, "minPartitions '0': must be a whole number, 1 or more"),
        (BATCH_READ, {"failOnDataLoss": "no"}, "failOnDataLoss 'no': must be true or false"),
        (BATCH_READ, {"maxOffsetsPerTrigger": "5"}, "cannot be used in a batch read: it is for a stream read"),
        (STREAM_READ, {"endingOffsets": "latest"}, "cannot be used in a stream read: it is for a batch read"),
        (STREAM_READ, {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "9 is greater than maxOffsetsPer"),
        (STREAM_READ, {"maxTriggerDelay": "soon"}, "maxTriggerDelay 'soon': must be a number and one of"),
        (BATCH_READ, {"topic": "orders"}, "topic cannot be used in a batch read: it is for a batch write"),
        (BATCH_READ, {"startingOffset": "earliest"}, "did you mean startingOffsets?"),
        (BATCH_READ, {"kafka.isolation.levle": "x"}, "did you mean kafka.isolation.level?"),
        (BATCH_READ, {"kafka.request.timeout": "5"}, "did you mean kafka.request.timeout.ms?"),
        (BATCH_READ, {"kafka.isolation.level": "dirty"}, "must be one of read_uncommitted, read_committed"),
        (BATCH_READ, {"kafka.acks": "all"}, "kafka.acks cannot be used in a batch read"),
        (BATCH_READ, {"path": "orders"}, "set subscribe to read a topic"),
        (BATCH_READ, {"groupIdPrefix": "x"}, "joins no consumer group"),
        (BATCH_READ, {"kafka.group.id": "x"}, "commitGroup shows a query's lag"),
        (BATCH_READ, {"kafka.auto.offset.reset": "latest"}, "set startingOffsets instead"),
        (BATCH_READ, {"kafka.enable.auto.commit": "true"}, "Spark keeps the offsets of a query in its checkpoint"),
        (BATCH_READ, {"kafka.enable.partition.eof": "true"}, "the end of a range is known"),
        (BATCH_READ, {"kafka.key.deserializer": "x"}, "key and value are columns of bytes"),
        (BATCH_READ, {"kafka.value.deserializer": "x"}, "key and value are columns of bytes"),
        (BATCH_READ, {"kafka.interceptor.classes": "x"}, "there is no Java consumer"),
    ],
)
def test_what_cannot_be_meant_is_told_with_what_would_be_right(scope: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption) as refused:
        read(scope, **given)
    assert words in str(refused.value)


def test_something_must_be_read_from_somewhere() -> None:
    with pytest.raises(BadOption, match="give one of subscribe, subscribePattern and assign"):
        read_options(SERVERS, BATCH_READ)
    with pytest.raises(BadOption, match=r"kafka\.bootstrap\.servers is missing"):
        read_options({"subscribe": "orders"}, BATCH_READ)
    with pytest.raises(BadOption, match="is not a regular expression"):
        read_options({**SERVERS, "subscribePattern": "a(b"}, BATCH_READ)
    with pytest.raises(BadOption, match=r'assign must be JSON like {"orders": \[0, 1\]}'):
        read_options({**SERVERS, "assign": '{"orders": ["0"]}'}, BATCH_READ)


def test_load_does_not_know_yet_whether_it_will_be_a_stream() -> None:
    assert read(ANY_READ, maxOffsetsPerTrigger="5", endingOffsets="latest").max_offsets_per_trigger == 5
    with pytest.raises(BadOption, match="not an option of a read"):
        read(ANY_READ, nonsense="5")


def test_options_go_to_workers() -> None:
    options = read(startingOffsets='{"orders": {"0": 5}}', **{"kafka.isolation.level": "read_committed"})
    assert options.committed
    assert pickle.loads(pickle.dumps(options)) == options


def test_writing() -> None:
    options = write_options(
        {**SERVERS, "topic": "orders", "kafka.compression.type": "LZ4", "checkpointLocation": "/x", "sinkId": "a"},
        STREAM_WRITE,
    )
    assert (options.topic, options.delivery, options.sink_id) == ("orders", "at-least-once", "a")
    assert options.settings.compression is Compression.LZ4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"delivery": "at-most-once"}, "must be one of at-least-once, exactly-once"),
        ({"delivery": "exactly-once", "kafka.acks": "1"}, "exactly-once needs kafka.acks=all"),
        ({"topic": "."}, "is not a valid topic"),
        ({"subscribe": "orders"}, "it is for a batch read or a stream read"),
        ({"kafka.transactional.id": "x"}, "exactly-once creates one for each task"),
        ({"kafka.key.serializer": "x"}, "key and value are columns of bytes"),
        ({"kafka.acks": "2"}, "kafka.acks '2'"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "kafka.acks must be all"),
        ({"tpic": "orders"}, "did you mean topic?"),
    ],
)
def test_what_cannot_be_meant_by_a_write(given: dict[str, str], words: str) -> None:
    with pytest.raises(BadOption) as refused:
        write_options({**SERVERS, **given}, BATCH_WRITE)
    assert words in str(refused.value)


def test_each_option_stands_in_one_table_and_has_words_for_the_reference() -> None:
    assert not READ.keys() & WRITE.keys()
    for table, scopes in ((READ, READS), (WRITE, WRITES)):
        for name, option in table.items():
            assert name == option.name.lower()
            assert option.doc and option.scopes and option.scopes <= scopes
            if option.default is not None:
                option.parse(option.default)


def test_every_field_of_a_read_comes_from_somewhere() -> None:
    options = read(
        STREAM_READ,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="7",
        minOffsetsPerTrigger="3",
        minPartitions="2",
        maxRecordsPerPartition="4",
        commitGroup="watchers",
        includeHeaders="TRUE",
        failOnDataLoss="false",
    )
    said = dataclasses.asdict(options)
    assert (said["max_offsets_per_trigger"], said["min_offsets_per_trigger"]) == (7, 3)
    assert (said["min_partitions"], said["max_records_per_partition"]) == (2, 4)
    assert (said["commit_group"], said["include_headers"], said["fail_on_data_loss"]) == ("watchers", True, False)
    assert options.subscription == "subscribe orders"


def test_partitions_are_told_as_kafka_s_tools_tell_them() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
