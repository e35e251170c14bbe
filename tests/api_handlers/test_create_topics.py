import pytest

from barnabas.api_handlers.create_topics import create_topics
from barnabas.wire.messages.create_topics import CreateTopicsRequest

Topic = CreateTopicsRequest.CreatableTopic
ALL_VERSIONS = range(8)


def topic(name, partitions=1, factor=1, assignments=(), configs=()):
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            Topic.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in assignments
        ],
        configs=[Topic.CreatableTopicConfig(name=name, value=value) for name, value in configs],
    )


@pytest.fixture
def create(node):
    def create(*topics, version=7, validate_only=False):
        return node.ask(create_topics, CreateTopicsRequest(topics=topics, validate_only=validate_only), version).topics

    return create


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_in_every_version(node, create, version):
    (made,) = create(topic("orders", 2, configs=[("retention.ms", "1000")]), version=version)
    image = node.broker.image.topics_by_name["orders"]
    assert (made.name, made.error_code, made.error_message) == ("orders", 0, None)
    assert made.topic_id == (image.id if version >= 7 else bytes(16))
    assert (made.num_partitions, made.replication_factor) == ((2, 1) if version >= 5 else (-1, -1))
    assert made.topic_config_error_code == 0
    assert bool(made.configs) == (version >= 5)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_refusal_in_every_version(create, version):
    (refused,) = create(topic("a b"), version=version)
    assert (refused.name, refused.error_code, refused.topic_id) == ("a b", 17, bytes(16))
    assert (refused.error_message is not None) == (version >= 1)
    assert (refused.num_partitions, refused.replication_factor, list(refused.configs)) == (-1, -1, [])


def test_a_topic_can_be_written_to_the_moment_it_is_made(node, create):
    create(topic("orders", 3))
    for index in range(3):
        assert node.append(node.broker.partition("orders", index), 1).base_offset == 0


def test_the_answer_has_all_configs_with_where_they_come_from(quiet_node):
    node = quiet_node(**{"log.segment.bytes": "2000000"})
    requested = CreateTopicsRequest(topics=[topic("orders", configs=[("retention.ms", "1000")])])
    (made,) = node.ask(create_topics, requested, 7).topics
    configs = {config.name: (config.value, config.config_source) for config in made.configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["min.insync.replicas"] == ("1", 3)
    assert configs["segment.bytes"] == ("2000000", 4)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert list(configs) == sorted(configs)
    assert not any(config.read_only or config.is_sensitive for config in made.configs)


def test_brokers_are_assigned_by_hand(node, create):
    (made,) = create(topic("orders", -1, -1, assignments=[(0, [1]), (1, [1])]))
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 1)
    (refused,) = create(topic("others", 1, -1, assignments=[(0, [1])]))
    assert refused.error_code == 42


def test_asking_whether_makes_nothing(node, create):
    (possible, impossible) = create(topic("orders"), topic("others", 0), validate_only=True)
    assert (possible.error_code, impossible.error_code) == (0, 37)
    assert possible.num_partitions == 1
    assert node.broker.image.topics_by_name == {}


def test_one_topic_does_not_spoil_the_others(create):
    made = create(topic("a", 1, 9), topic("b"), topic("c", configs=[("nope", "1")]), topic("d"), topic("d"))
    assert [(each.name, each.error_code) for each in made] == [("a", 38), ("b", 0), ("c", 40), ("d", 42)]


def test_an_empty_request(create):
    assert create() == []


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_any_time_nothing_is_made(node, timeout_ms):
    requested = CreateTopicsRequest(topics=[topic("orders"), topic("a b"), topic("orders")], timeout_ms=timeout_ms)
    answers = node.ask(create_topics, requested, 7).topics
    assert [(each.name, each.error_code, each.error_message) for each in answers] == [
        ("orders", 7, None),
        ("a b", 7, None),
        ("orders", 7, None),
    ]
    assert "orders" not in node.broker.image.topics_by_name
