"""kafka-python's admin client, API by API."""

import contextlib
from collections.abc import Iterator

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, MemberToRemove, OffsetSpec
from kafka.errors import (
    ElectionNotNeededError,
    InvalidPartitionsError,
    NoError,
    NoReassignmentInProgressError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from compat_tests.adapters.kafka_python import KafkaPythonClient
from compat_tests.waiting import poll_until, read

NOON = 1_700_000_000_000
TOPIC_CONFIG = 2
DYNAMIC_TOPIC_CONFIG = "DYNAMIC_TOPIC_CONFIG"


@pytest.fixture
def client(bootstrap: str) -> Iterator[KafkaPythonClient]:
    with contextlib.closing(KafkaPythonClient(bootstrap)) as made:
        yield made


@pytest.fixture
def admin(client: KafkaPythonClient) -> KafkaAdminClient:
    return client.admin


@pytest.fixture
def filled(client: KafkaPythonClient, topic: str) -> str:
    """Returns a topic of two partitions, five records each, a millisecond apart over both."""
    client.create_topic(topic, 2)
    producer = client.producer()
    for n in range(10):
        producer.send(topic, b"%d" % n, partition=n % 2, timestamp=NOON + n)
    producer.flush()
    return topic


def test_topics_are_created_described_and_deleted(admin: KafkaAdminClient, topic: str) -> None:
    wanted = {"num_partitions": 3, "configs": {"retention.ms": "1000000"}}
    created = admin.create_topics({topic: wanted}, wait_for_metadata=True)["topics"][0]
    assert (created["name"], created["num_partitions"], created["replication_factor"]) == (topic, 3, 1)
    assert created["configs"]["retention.ms"]["value"] == "1000000"
    assert created["configs"]["retention.ms"]["config_source"] == DYNAMIC_TOPIC_CONFIG
    assert created["configs"]["segment.bytes"]["config_source"] == "DEFAULT_CONFIG"
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert described["topic_id"] == created["topic_id"]
    assert not described["is_internal"]
    assert [partition["partition_index"] for partition in described["partitions"]] == [0, 1, 2]
    for partition in described["partitions"]:
        assert partition["leader_id"] in partition["replica_nodes"] == partition["isr_nodes"]
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics({topic: wanted})
    admin.delete_topics([topic])
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_validate_only_makes_nothing(admin: KafkaAdminClient, topic: str) -> None:
    answer = admin.create_topics({topic: {"num_partitions": 2}}, validate_only=True)
    assert answer["topics"][0]["num_partitions"] == 2
    assert topic not in admin.list_topics()


def test_topic_partitions_are_described_page_by_page(
    admin: KafkaAdminClient, client: KafkaPythonClient, topic: str
) -> None:
    client.create_topic(topic, 5)
    first = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [partition["partition_index"] for partition in first["topics"][0]["partitions"]] == [0, 1, 2]
    assert first["next_cursor"] == {"topic_name": topic, "partition_index": 3}
    second = admin.describe_topic_partitions([topic], cursor=first["next_cursor"])
    assert [partition["partition_index"] for partition in second["topics"][0]["partitions"]] == [3, 4]
    assert second["next_cursor"] is None


def test_partitions_are_added_and_never_taken(admin: KafkaAdminClient, filled: str, client: KafkaPythonClient) -> None:
    admin.create_partitions({filled: 4})
    admin.wait_for_topics([filled])
    assert len(admin.describe_topics([filled])[0]["partitions"]) == 4
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({filled: 3})
    assert client.producer().send(filled, b"new", partition=3).result() == (3, 0)


def changed_configs(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    described = admin.describe_configs([ConfigResource("TOPIC", topic)])["topic"][topic]
    assert all(config["config_source"] == DYNAMIC_TOPIC_CONFIG for config in described.values())
    return {name: config["value"] for name, config in described.items()}


def test_configs_are_changed_one_by_one(admin: KafkaAdminClient, filled: str) -> None:
    assert changed_configs(admin, filled) == {}

    def alter(**configs: object) -> str:
        resource = ConfigResource("TOPIC", filled, {name.replace("_", "."): value for name, value in configs.items()})
        return str(admin.alter_configs([resource])["topic"][filled])

    assert alter(cleanup_policy=("APPEND", "compact"), segment_bytes="2000000") == "OK"
    assert changed_configs(admin, filled) == {"cleanup.policy": "delete,compact", "segment.bytes": "2000000"}
    assert alter(cleanup_policy=("SUBTRACT", "delete"), segment_bytes=("DELETE", None)) == "OK"
    assert changed_configs(admin, filled) == {"cleanup.policy": "compact"}
    assert "InvalidConfigurationError" in alter(segment_bytes="many")
    assert changed_configs(admin, filled) == {"cleanup.policy": "compact"}


def test_configs_are_replaced_all_at_once(admin: KafkaAdminClient, filled: str) -> None:
    resource = ConfigResource("TOPIC", filled, {"segment.bytes": "3000000", "retention.ms": "5000"})
    assert admin.alter_configs([resource], incremental=False) == {"topic": {filled: "OK"}}
    assert changed_configs(admin, filled) == {"segment.bytes": "3000000", "retention.ms": "5000"}
    assert admin.reset_configs([ConfigResource("TOPIC", filled, ["segment.bytes"])]) == {"topic": {filled: "OK"}}
    assert changed_configs(admin, filled) == {"retention.ms": "5000"}
    assert admin.reset_configs([ConfigResource("TOPIC", filled)], incremental=False) == {"topic": {filled: "OK"}}
    assert changed_configs(admin, filled) == {}


def test_every_config_is_described_with_its_synonyms(admin: KafkaAdminClient, filled: str) -> None:
    (broker,) = (str(broker["broker_id"]) for broker in admin.describe_cluster()["brokers"])
    resources = [ConfigResource("TOPIC", filled), ConfigResource("BROKER", broker)]
    described = admin.describe_configs(resources, include_synonyms=True, config_filter="all")
    topic = described["topic"][filled]
    assert topic["segment.bytes"]["config_type"] == "INT"
    assert [synonym["name"] for synonym in topic["segment.bytes"]["synonyms"]] == ["log.segment.bytes"]
    of_broker = described["broker"][broker]
    assert of_broker["node.id"]["value"] == broker
    assert of_broker["node.id"]["read_only"]
    assert len(of_broker) > 200


def test_config_resources_are_listed(admin: KafkaAdminClient, filled: str) -> None:
    listed = admin.list_config_resources()
    assert filled in listed["topic"]
    assert len(listed["broker"]) == 1
    assert set(admin.list_config_resources(["TOPIC"])) == {"topic"}


def test_records_are_deleted_up_to_an_offset(admin: KafkaAdminClient, client: KafkaPythonClient, filled: str) -> None:
    place = TopicPartition(filled, 0)
    deleted = admin.delete_records({place: 3})[place]
    assert (deleted["error_code"], deleted["low_watermark"]) == (0, 3)
    consumer = client.consumer()
    consumer.assign([(filled, 0)])
    assert [record.offset for record in read(consumer, 2)] == [3, 4]
    assert consumer.bounds((filled, 0)) == (3, 5)
    assert admin.delete_records({place: -1})[place]["low_watermark"] == 5


def test_offsets_of_a_partition(admin: KafkaAdminClient, filled: str) -> None:
    place = TopicPartition(filled, 1)

    def offset(spec: object) -> tuple[int, int]:
        found = admin.list_partition_offsets({place: spec})[place]
        return found.offset, found.timestamp

    assert offset(OffsetSpec.EARLIEST) == (0, -1)
    assert offset(OffsetSpec.LATEST) == (5, -1)
    assert offset(OffsetSpec.MAX_TIMESTAMP) == (4, NOON + 9)
    assert offset(NOON + 4) == (2, NOON + 5)


def test_the_cluster_is_described(admin: KafkaAdminClient, bootstrap: str) -> None:
    cluster = admin.describe_cluster()
    (broker,) = cluster["brokers"]
    assert f"{broker['host']}:{broker['port']}" == bootstrap
    assert not broker["is_fenced"]
    assert cluster["controller_id"] == broker["broker_id"]
    assert len(cluster["cluster_id"]) == 22
    assert "ALTER" in cluster["authorized_operations"]


def test_log_directories_hold_what_was_written(admin: KafkaAdminClient, filled: str) -> None:
    ((broker),) = admin.describe_log_dirs([filled])
    (directory,) = broker["log_dirs"]
    assert directory["error_code"] == 0
    assert directory["usable_bytes"] > 0
    (held,) = directory["topics"]
    assert held["name"] == filled
    assert sorted(partition["partition_index"] for partition in held["partitions"]) == [0, 1]
    assert all(partition["partition_size"] > 70 for partition in held["partitions"])


def test_the_metadata_quorum_is_described(admin: KafkaAdminClient) -> None:
    quorum = admin.describe_metadata_quorum()
    (topic,) = quorum["topics"]
    (partition,) = topic["partitions"]
    assert topic["topic_name"] == "__cluster_metadata"
    assert [voter["replica_id"] for voter in partition["current_voters"]] == [partition["leader_id"]]
    assert partition["high_watermark"] > 0


def test_features_are_described(admin: KafkaAdminClient) -> None:
    features = admin.describe_features()
    metadata_version = features["metadata.version"]
    lowest, highest = metadata_version["supported"]
    assert lowest <= metadata_version["finalized"][0] <= highest


def test_leader_election_is_not_needed(admin: KafkaAdminClient, filled: str) -> None:
    answer = admin.elect_leaders(0, {filled: [0]})
    ((topic),) = answer.replica_election_results
    assert [partition.error_code for partition in topic.partition_result] == [ElectionNotNeededError.errno]


def test_there_is_nothing_to_reassign(admin: KafkaAdminClient, filled: str) -> None:
    place = TopicPartition(filled, 0)
    assert admin.list_partition_reassignments([place]) == {}
    assert admin.alter_partition_reassignments({place: None}) == {place: NoReassignmentInProgressError}


def test_producers_are_described(admin: KafkaAdminClient, client: KafkaPythonClient, topic: str) -> None:
    client.create_topic(topic)
    producer = client.producer(idempotent=True)
    for n in range(3):
        producer.send(topic, b"%d" % n, timestamp=NOON + n).result()
    place = TopicPartition(topic, 0)
    (state,) = admin.describe_producers([place])[place].active_producers
    assert (state.last_sequence, state.producer_epoch, state.last_timestamp) == (2, 0, NOON + 2)
    assert (state.coordinator_epoch, state.current_transaction_start_offset) == (-1, -1)


def test_groups_are_listed_and_described(
    admin: KafkaAdminClient, client: KafkaPythonClient, filled: str, group: str
) -> None:
    consumer = client.consumer(group=group)
    consumer.subscribe([filled])
    read(consumer, 10)
    mine = {"group_id": group, "group_state": "Stable", "group_type": "classic", "protocol_type": "consumer"}
    assert mine in admin.list_groups()
    assert mine in admin.list_groups(states_filter=["Stable"])
    assert mine not in admin.list_groups(states_filter=["Empty"])
    assert mine in admin.list_groups(types_filter=["classic"])
    assert mine not in admin.list_groups(types_filter=["share"])
    described = admin.describe_groups([group])[group]
    (member,) = described["members"]
    assert (described["group_state"], described["protocol_data"]) == ("Stable", "range")
    assert member["client_host"] == "/127.0.0.1"
    assert member["member_metadata"]["topics"] == [filled]
    assert member["member_assignment"]["assigned_partitions"] == [{"topic": filled, "partitions": [0, 1]}]
    consumer.close()
    assert admin.describe_groups([group])[group]["group_state"] == "Empty"


def test_an_unknown_group_is_dead(admin: KafkaAdminClient, group: str) -> None:
    described = admin.describe_groups([group])[group]
    assert described["group_state"] == "Dead"
    assert "GroupIdNotFound" in described["error"]
    assert admin.list_group_offsets({group: None}) == {group: {}}
    assert admin.delete_groups([group]) == {group: "GroupIdNotFoundError"}


def test_group_offsets_are_altered_reset_and_deleted(admin: KafkaAdminClient, filled: str, group: str) -> None:
    zero, one = TopicPartition(filled, 0), TopicPartition(filled, 1)
    altered = admin.alter_group_offsets(group, {zero: OffsetAndMetadata(4, "note"), one: OffsetAndMetadata(2, "")})
    assert altered == {zero: NoError, one: NoError}
    committed = admin.list_group_offsets({group: None})[group]
    assert {place: (at.offset, at.metadata) for place, at in committed.items()} == {zero: (4, "note"), one: (2, "")}
    admin.reset_group_offsets(group, {one: OffsetSpec.LATEST})
    assert admin.list_group_offsets({group: [one]})[group][one].offset == 5
    assert admin.delete_group_offsets(group, [zero]) == {zero: NoError}
    assert set(admin.list_group_offsets({group: None})[group]) == {one}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert admin.list_group_offsets({group: None}) == {group: {}}


def test_a_group_with_members_is_not_deleted_until_they_are_removed(
    admin: KafkaAdminClient, client: KafkaPythonClient, filled: str, group: str
) -> None:
    consumer = client.consumer(group=group, instance="one", session_ms=30_000)
    consumer.subscribe([filled])
    poll_until([consumer], lambda: len(consumer.assignment()) == 2, "both partitions are assigned")
    assert admin.delete_groups([group]) == {group: "NonEmptyGroupError"}
    admin.remove_group_members(group, [MemberToRemove(group_instance_id="one")])
    assert admin.describe_groups([group])[group]["members"] == []
    assert admin.delete_groups([group]) == {group: "OK"}
