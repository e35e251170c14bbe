"""The broker that users' tests start: its functions, and its reset."""

import threading

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from barnabas.cluster.controller.commands.configs import SET, ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.config import ConfigError
from barnabas.config.dynamic import BROKER_RESOURCE, GROUP_RESOURCE
from barnabas.errors import InvalidConfig, TopicAlreadyExists
from barnabas.testing import Broker


def produced(broker, topic, values):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for value in values:
        producer.send(topic, key=b"k", value=value, headers=[("h", b"1")], partition=0)
    producer.close()


def consumed(broker, topic, group):
    """Returns the first record of the group."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        consumer_timeout_ms=60_000,
    )
    values = [next(consumer).value]
    consumer.commit()
    consumer.close()
    return values


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_are_what_was_produced(on_disk):
    with Broker(on_disk=on_disk) as broker:
        broker.create_topic("orders", partitions=2)
        produced(broker, "orders", [b"one", b"two"])
        records = broker.records("orders")
        assert [(r.topic, r.partition, r.offset, r.key, r.value, r.headers) for r in records] == [
            ("orders", 0, 0, b"k", b"one", (("h", b"1"),)),
            ("orders", 0, 1, b"k", b"two", (("h", b"1"),)),
        ]


def test_groups_have_configs_until_the_broker_is_reset():
    with Broker() as broker:

        def configs():
            return broker._call(lambda: dict(broker._server.broker.image.configs_of(GROUP_RESOURCE, "cooks")))

        wanted = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": 3}
        broker.configure_group("cooks", wanted)
        assert configs() == {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "3"}
        with pytest.raises(InvalidConfig):
            broker.configure_group("cooks", {"share.auto.offset.reset": "sometime"})
        broker.reset()
        assert configs() == {}


def test_committed_records_are_those_of_readers_of_committed_records():
    with Broker() as broker:
        broker.create_topic("t", partitions=2)
        plain = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        one, other = (
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
            for name in ("one", "other")
        )
        one.init_transactions()
        other.init_transactions()

        def write(producer, value):
            for partition in range(2):
                producer.send("t", value, partition=partition).get(30)

        for producer in (one, other):
            producer.begin_transaction()
        write(one, b"aborted")
        write(other, b"committed")
        write(plain, b"plain")
        write(one, b"aborted, too")
        one.abort_transaction()
        assert broker.records("t", committed=True) == []
        other.commit_transaction()
        one.begin_transaction()
        one.send("t", b"open", partition=1).get(30)
        write(plain, b"behind")

        def values(**options):
            found = broker.records("t", **options)
            return [[record.value for record in found if record.partition == partition] for partition in range(2)]

        assert values(committed=True) == [[b"committed", b"plain", b"behind"], [b"committed", b"plain"]]
        everything = [b"aborted", b"committed", b"plain", b"aborted, too"]
        assert values() == [[*everything, b"behind"], [*everything, b"open", b"behind"]]
        for producer in (plain, one, other):
            producer.close()


def test_a_topic_that_nobody_made_has_no_records():
    with Broker() as broker:
        assert broker.records("nothing") == []


def levels(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    found = admin.describe_features()
    admin.close()
    return {name: each["finalized"][1] for name, each in found.items() if "finalized" in each}


def test_features_have_the_given_levels_again_after_a_reset():
    features = {"metadata.version": 25, "transaction.version": 1, "kraft.version": 1}
    with Broker(features=features) as broker:
        first = levels(broker)
        assert first == {**features, "group.version": 1}
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.update_features({"transaction.version": 2, "group.version": ("SAFE_DOWNGRADE", 0)})
        admin.close()
        assert levels(broker) == {**features, "transaction.version": 2}
        broker.reset()
        assert levels(broker) == first


def test_a_feature_that_there_is_not():
    with pytest.raises(ConfigError, match="--feature is 'nope', but must be a feature"):
        Broker(features={"nope": 1}).start()


def test_configs_by_keyword_and_by_name():
    with Broker({"num.partitions": 3}, auto_create_topics_enable=True, message_max_bytes=2000) as broker:
        produced(broker, "made", [b"v"])
        config = broker._server.broker.config
        assert len(broker._server.broker.image.topics_by_name["made"].partitions) == 3
        assert config["message.max.bytes"] == 2000


def test_a_topic_that_cannot_be_says_why():
    with Broker() as broker:
        broker.create_topic("once")
        with pytest.raises(TopicAlreadyExists):
            broker.create_topic("once")
        with pytest.raises(InvalidConfig, match=r"retention\.ms"):
            broker.create_topic("odd", configs={"retention.ms": "for ever"})


def test_reset_leaves_nothing():
    with Broker() as broker:
        broker.create_topic("orders", configs={"retention.ms": 5})
        produced(broker, "orders", [b"before"])
        assert consumed(broker, "orders", "group") == [b"before"]
        broker.reset()
        assert broker.topics() == [] and broker.records("orders") == []
        assert not broker._server.broker.groups.list_groups()
        broker.create_topic("orders")
        produced(broker, "orders", [b"after"])
        assert [record.offset for record in broker.records("orders")] == [0]
        assert consumed(broker, "orders", "group") == [b"after"]
        assert broker._server.broker.partitions["orders", 0].log.config.retention_ms == 604_800_000


@pytest.mark.parametrize("features", [{}, {"eligible.leader.replicas.version": 0}])
def test_reset_leaves_no_configs_of_the_cluster(features):
    with Broker(min_insync_replicas=2, features=features) as broker:
        node = broker._server.broker

        def alter():
            for name, wanted in (
                ("", {"log.retention.ms": "5", "min.insync.replicas": "3"}),
                ("1", {"log.roll.ms": "5"}),
            ):
                changes = [ConfigChange(key, SET, value) for key, value in wanted.items()]
                resource = ConfigResource(BROKER_RESOURCE, name)
                (altered,) = broker._submit(IncrementalAlterConfigs([(resource, changes)]))
                assert altered.error is None

        def configs():
            names = ("log.retention.ms", "min.insync.replicas", "log.roll.ms")
            return node.image.configs, [node.config[name] for name in names]

        first = broker._call(configs)
        alter()
        assert broker._call(configs)[1] == [5, 3, 5]
        broker.reset()
        assert broker._call(configs) == first


def test_a_large_topic_is_served_when_it_is_created():
    with Broker() as broker:
        broker.create_topic("large", partitions=5000)
        assert broker._call(lambda: len(broker._server.broker.partitions)) == 5000


def test_reset_of_what_is_new_already():
    with Broker() as broker:
        broker.reset()
        broker.reset()


def test_a_start_that_fails_leaves_no_thread(tmp_path):
    def threads():
        """Those of brokers: threads of clients of earlier tests may still start and end."""
        return [each for each in threading.enumerate() if each.name.startswith("barnabas")]

    before = threads()
    with Broker({"log.dirs": tmp_path}, on_disk=True) as running:
        with pytest.raises(Exception, match=r"in use|using"):
            Broker({"log.dirs": tmp_path}, on_disk=True).start()
        running.create_topic("still-there")
    assert not set(threads()) - set(before)
