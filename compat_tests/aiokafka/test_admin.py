"""aiokafka's admin client, API by API.

describe_consumer_groups is left out: aiokafka 0.14 cannot read the response of any broker that has DescribeGroups 3.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError

from compat_tests.adapters.aiokafka import AiokafkaClient
from compat_tests.adapters.base import WAIT_S
from compat_tests.waiting import read

TOPIC_ALREADY_EXISTS, UNKNOWN_TOPIC_OR_PARTITION = 36, 3
DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5


@pytest.fixture
def client(bootstrap: str) -> Iterator[AiokafkaClient]:
    with contextlib.closing(AiokafkaClient(bootstrap)) as made:
        yield made


@pytest.fixture
def ask(client: AiokafkaClient) -> Callable[..., Any]:
    """``ask("create_topics", [...])`` calls the admin client's coroutine and waits for its result."""

    def call(method: str, *arguments: Any, **keywords: Any) -> Any:
        return client.loop.run(getattr(client.admin, method)(*arguments, **keywords))

    return call


@pytest.fixture
def filled(client: AiokafkaClient, topic: str) -> str:
    client.create_topic(topic, 2)
    producer = client.producer()
    for n in range(10):
        producer.send(topic, b"%d" % n, partition=n % 2)
    producer.flush()
    return topic


def test_topics(ask: Callable[..., Any], topic: str) -> None:
    def create(**options: Any) -> int:
        ((_, code, _),) = ask("create_topics", [NewTopic(topic, 2, 1)], **options).topic_errors
        return int(code)

    assert create(validate_only=True) == 0
    assert topic not in ask("list_topics")
    assert create() == 0
    assert create() == TOPIC_ALREADY_EXISTS
    assert topic in ask("list_topics")
    (described,) = ask("describe_topics", [topic])
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1]
    assert ask("delete_topics", [topic]).topic_error_codes == [(topic, 0)]
    assert ask("delete_topics", [topic]).topic_error_codes == [(topic, UNKNOWN_TOPIC_OR_PARTITION)]


def test_partitions(ask: Callable[..., Any], filled: str) -> None:
    ask("create_partitions", {filled: NewPartitions(4)})
    deadline = time.monotonic() + WAIT_S
    while len(ask("describe_topics", [filled])[0]["partitions"]) < 4:  # Apache Kafka's brokers apply it a moment later
        assert time.monotonic() < deadline
    with pytest.raises(InvalidPartitionsError):
        ask("create_partitions", {filled: NewPartitions(3)})


def test_configs(ask: Callable[..., Any], filled: str) -> None:
    def config(name: str) -> tuple[str, int]:
        (answer,) = ask("describe_configs", [ConfigResource(ConfigResourceType.TOPIC, filled)])
        entries = {entry[0]: entry for entry in answer.resources[0][4]}
        return entries[name][1], entries[name][3]

    assert config("retention.ms") == ("604800000", DEFAULT_CONFIG)
    changed = ConfigResource(ConfigResourceType.TOPIC, filled, configs={"retention.ms": "7777777"})
    (answer,) = ask("alter_configs", [changed])
    assert answer.resources[0][0] == 0
    assert config("retention.ms") == ("7777777", DYNAMIC_TOPIC_CONFIG)


def test_cluster(ask: Callable[..., Any], bootstrap: str) -> None:
    cluster = ask("describe_cluster")
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert cluster["controller_id"] == broker["node_id"]
    assert len(cluster["cluster_id"]) == 22


def test_groups(ask: Callable[..., Any], client: AiokafkaClient, filled: str, group: str) -> None:
    consumer = client.consumer(group=group)
    consumer.subscribe([filled])
    read(consumer, 10)
    consumer.commit()
    assert (group, "consumer") in ask("list_consumer_groups")
    (broker,) = ask("describe_cluster")["brokers"]
    assert ask("find_coordinator", group) == broker["node_id"]
    committed = ask("list_consumer_group_offsets", group)
    assert {place.partition: at.offset for place, at in committed.items()} == {0: 5, 1: 5}
    elsewhere = [TopicPartition(filled, 1), TopicPartition(filled, 7)]
    committed = ask("list_consumer_group_offsets", group, partitions=elsewhere)
    assert [committed[place].offset for place in elsewhere] == [5, -1]


def test_delete_records(ask: Callable[..., Any], client: AiokafkaClient, filled: str) -> None:
    place = TopicPartition(filled, 0)
    assert ask("delete_records", {place: RecordsToDelete(3)}) == {place: 3}
    consumer = client.consumer()
    consumer.assign([(filled, 0)])
    assert [record.offset for record in read(consumer, 2)] == [3, 4]
