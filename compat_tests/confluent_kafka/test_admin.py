"""confluent-kafka's admin client, API by API."""

import contextlib
from collections.abc import Iterator

import pytest
from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from compat_tests.adapters.base import WAIT_S
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.waiting import read

NOON = 1_700_000_000_000


@pytest.fixture
def client(bootstrap: str) -> Iterator[ConfluentClient]:
    with contextlib.closing(ConfluentClient(bootstrap)) as made:
        yield made


@pytest.fixture
def admin(client: ConfluentClient) -> AdminClient:
    return client.admin


@pytest.fixture
def filled(client: ConfluentClient, topic: str) -> str:
    """Returns a topic of two partitions, five records each, a millisecond apart over both."""
    client.create_topic(topic, 2)
    producer = client.producer()
    for n in range(10):
        producer.send(topic, b"%d" % n, partition=n % 2, timestamp=NOON + n)
    producer.flush()
    return topic


@contextlib.contextmanager
def refused(code: int) -> Iterator[None]:
    with pytest.raises(KafkaException) as raised:
        yield
    assert raised.value.args[0].code() == code


def test_topics_are_created_listed_and_deleted(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(WAIT_S)
    listed = admin.list_topics(topic, timeout=WAIT_S).topics[topic]
    assert sorted(listed.partitions) == [0, 1]
    assert all(partition.isrs == partition.replicas == [partition.leader] for partition in listed.partitions.values())
    with refused(KafkaError.TOPIC_ALREADY_EXISTS):
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(WAIT_S)
    admin.delete_topics([topic])[topic].result(WAIT_S)
    with refused(KafkaError.UNKNOWN_TOPIC_OR_PART):
        admin.delete_topics([topic])[topic].result(WAIT_S)


def test_validate_only_makes_nothing(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)[topic].result(WAIT_S)
    assert topic not in admin.list_topics(timeout=WAIT_S).topics


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (NewTopic("a name with spaces", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("none", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("too-many-replicas", 1, 3), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("bad-value", 1, 1, config={"retention.ms": "long"}), KafkaError.INVALID_CONFIG),
        (NewTopic("bad-name", 1, 1, config={"no.such.config": "1"}), KafkaError.INVALID_CONFIG),
    ],
)
def test_invalid_topics(admin: AdminClient, wanted: NewTopic, code: int) -> None:
    with refused(code):
        admin.create_topics([wanted])[wanted.topic].result(WAIT_S)


def test_topics_are_described(admin: AdminClient, filled: str) -> None:
    described = admin.describe_topics(TopicCollection([filled]), include_authorized_operations=True)[filled].result(
        WAIT_S
    )
    assert (described.name, described.is_internal, len(described.partitions)) == (filled, False, 2)
    assert described.authorized_operations
    unknown = f"{filled}-not"
    with refused(KafkaError.UNKNOWN_TOPIC_OR_PART):
        admin.describe_topics(TopicCollection([unknown]))[unknown].result(WAIT_S)


def test_partitions_are_added(admin: AdminClient, filled: str) -> None:
    admin.create_partitions([NewPartitions(filled, 4)])[filled].result(WAIT_S)
    assert len(admin.list_topics(filled, timeout=WAIT_S).topics[filled].partitions) == 4
    with refused(KafkaError.INVALID_PARTITIONS):
        admin.create_partitions([NewPartitions(filled, 3)])[filled].result(WAIT_S)


def configs(admin: AdminClient, kind: ConfigResource.Type, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    return admin.describe_configs([resource])[resource].result(WAIT_S)


def test_configs_are_described(admin: AdminClient, client: ConfluentClient, topic: str) -> None:
    client.create_topic(topic, configs={"retention.ms": "1000000"})
    of_topic = configs(admin, ConfigResource.Type.TOPIC, topic)
    retention, segment = of_topic["retention.ms"], of_topic["segment.bytes"]
    assert (retention.value, retention.source, retention.is_default) == (
        "1000000",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        False,
    )
    assert (segment.value, segment.source, segment.is_default) == (
        "1073741824",
        ConfigSource.DEFAULT_CONFIG.value,
        True,
    )
    assert list(segment.synonyms) == ["log.segment.bytes"]
    (broker,) = admin.list_topics(timeout=WAIT_S).brokers
    of_broker = configs(admin, ConfigResource.Type.BROKER, str(broker))
    assert (of_broker["node.id"].value, of_broker["node.id"].is_read_only) == (str(broker), True)
    assert of_broker["ssl.keystore.password"].is_sensitive


def test_configs_are_altered(admin: AdminClient, filled: str) -> None:
    changes = [
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ConfigEntry("segment.bytes", "2000000", incremental_operation=AlterConfigOpType.SET),
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, filled, incremental_configs=changes)
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    now = configs(admin, ConfigResource.Type.TOPIC, filled)
    assert (now["cleanup.policy"].value, now["segment.bytes"].value) == ("delete,compact", "2000000")
    resource = ConfigResource(ConfigResource.Type.TOPIC, filled, set_config={"retention.ms": "77777"})
    admin.alter_configs([resource])[resource].result(WAIT_S)
    now = configs(admin, ConfigResource.Type.TOPIC, filled)
    assert (now["cleanup.policy"].value, now["segment.bytes"].value) == ("delete", "1073741824")
    assert now["retention.ms"].value == "77777"
    wrong = ConfigResource(ConfigResource.Type.TOPIC, filled, set_config={"retention.ms": "many"})
    with refused(KafkaError.INVALID_CONFIG):
        admin.alter_configs([wrong])[wrong].result(WAIT_S)


def test_offsets_are_listed(admin: AdminClient, filled: str) -> None:
    place = TopicPartition(filled, 1)

    def offset(spec: OffsetSpec) -> tuple[int, int]:
        (found,) = admin.list_offsets({place: spec}).values()
        result = found.result(WAIT_S)
        return result.offset, result.timestamp

    assert offset(OffsetSpec.earliest()) == (0, -1)
    assert offset(OffsetSpec.latest()) == (5, -1)
    assert offset(OffsetSpec.max_timestamp()) == (4, NOON + 9)
    assert offset(OffsetSpec.for_timestamp(NOON + 4)) == (2, NOON + 5)


def test_records_are_deleted(admin: AdminClient, client: ConfluentClient, filled: str) -> None:
    (deleted,) = admin.delete_records([TopicPartition(filled, 0, 3)]).values()
    assert deleted.result(WAIT_S).low_watermark == 3
    consumer = client.consumer()
    assert consumer.bounds((filled, 0)) == (3, 5)
    consumer.assign([(filled, 0)])
    assert [record.offset for record in read(consumer, 2)] == [3, 4]


def test_the_cluster_is_described(admin: AdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(WAIT_S)
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [bootstrap]
    assert cluster.controller.id == cluster.nodes[0].id
    assert len(cluster.cluster_id) == 22
    assert cluster.authorized_operations


def test_leader_election_is_not_needed(admin: AdminClient, filled: str) -> None:
    ours, unknown = TopicPartition(filled, 0), TopicPartition(f"{filled}-not", 0)
    answers = admin.elect_leaders(ElectionType.PREFERRED, [ours, unknown]).result(WAIT_S)
    codes = {place.topic: error.code() for place, error in answers.items()}
    assert codes == {ours.topic: KafkaError.ELECTION_NOT_NEEDED, unknown.topic: KafkaError.UNKNOWN_TOPIC_OR_PART}


def test_groups_are_listed_and_described(admin: AdminClient, client: ConfluentClient, filled: str, group: str) -> None:
    consumer = client.consumer(group=group, instance="one")
    consumer.subscribe([filled])
    read(consumer, 10)

    def listed(**filters: object) -> bool:
        found = admin.list_consumer_groups(**filters).result(WAIT_S)
        assert not found.errors
        return group in {each.group_id for each in found.valid}

    assert listed()
    assert listed(states={ConsumerGroupState.STABLE})
    assert not listed(states={ConsumerGroupState.EMPTY})
    assert listed(types={ConsumerGroupType.CLASSIC})
    assert not listed(types={ConsumerGroupType.CONSUMER})
    described = admin.describe_consumer_groups([group], include_authorized_operations=True)[group].result(WAIT_S)
    (member,) = described.members
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    assert (member.group_instance_id, member.host) == ("one", "/127.0.0.1")
    assigned = {(place.topic, place.partition) for place in member.assignment.topic_partitions}
    assert assigned == {(filled, 0), (filled, 1)}


def test_an_unknown_group_is_dead(admin: AdminClient, group: str) -> None:
    described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert (described.state, described.members) == (ConsumerGroupState.DEAD, [])
    with refused(KafkaError.GROUP_ID_NOT_FOUND):
        admin.delete_consumer_groups([group])[group].result(WAIT_S)


def committed(admin: AdminClient, group: str) -> dict[int, int]:
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(WAIT_S)
    return {place.partition: place.offset for place in answer.topic_partitions}


def alter(admin: AdminClient, group: str, place: TopicPartition) -> KafkaError | None:
    wanted = ConsumerGroupTopicPartitions(group, [place])
    (altered,) = admin.alter_consumer_group_offsets([wanted])[group].result(WAIT_S).topic_partitions
    return altered.error


def test_group_offsets_are_altered_once_the_group_is_empty(
    admin: AdminClient, client: ConfluentClient, filled: str, group: str
) -> None:
    consumer = client.consumer(group=group)
    consumer.subscribe([filled])
    read(consumer, 10)
    consumer.commit()
    assert committed(admin, group) == {0: 5, 1: 5}
    error = alter(admin, group, TopicPartition(filled, 0, 3))
    assert error is not None
    assert error.code() == KafkaError.UNKNOWN_MEMBER_ID
    with refused(KafkaError.NON_EMPTY_GROUP):
        admin.delete_consumer_groups([group])[group].result(WAIT_S)
    consumer.close()
    assert alter(admin, group, TopicPartition(filled, 0, 3)) is None
    assert committed(admin, group) == {0: 3, 1: 5}
    admin.delete_consumer_groups([group])[group].result(WAIT_S)
    assert committed(admin, group) == {}
