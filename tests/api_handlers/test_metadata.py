"""Metadata, with the responses of Apache Kafka 4.3.1."""

import pytest

from barnabas.api_handlers.metadata import metadata
from barnabas.cluster.image.records import broker_record
from barnabas.config.endpoints import Endpoint
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.metadata_records import FenceBrokerRecord, PartitionChangeRecord
from tests.asking import context_of
from tests.submitting import append

ZERO, NOBODYS = bytes(16), bytes([9]) * 16
NOT_REQUESTED = -(1 << 31)
ALL_VERSIONS = range(14)


def request(*names, ids=(), auto=False, **fields):
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    topics += [MetadataRequest.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=auto, **fields)


def everything():
    return MetadataRequest(topics=None)


@pytest.fixture
def ask(node):
    def ask(requested, version=13):
        return node.ask(metadata, requested, version)

    return ask


def topics_of(response):
    """Returns error and number of partitions of each topic, in the response's order."""
    return [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics]


# ---------------------------------------------------------------- the cluster


def test_brokers_cluster_and_controller(node, ask):
    response = ask(request())
    (broker,) = response.brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "127.0.0.1", 9092, None)
    assert (response.cluster_id, response.controller_id) == (node.broker.cluster_id, 1)
    assert (response.topics, response.error_code) == ([], 0)


def test_addresses_are_those_of_the_request_s_listener(quiet_node):
    node = quiet_node(
        **{
            "listeners": "PLAINTEXT://127.0.0.1:9092,OUTSIDE://127.0.0.1:9094",
            "advertised.listeners": "PLAINTEXT://inside:9092,OUTSIDE://outside:1234",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT",
        }
    )
    for listener, address in (("PLAINTEXT", ("inside", 9092)), ("OUTSIDE", ("outside", 1234))):
        context = context_of(node.broker, 13, listener=listener)
        assert [(broker.host, broker.port) for broker in metadata(request(), context).brokers] == [address]


def test_a_rack_is_returned(quiet_node):
    node = quiet_node(**{"broker.rack": "r1"})
    assert [broker.rack for broker in node.ask(metadata, request(), 1).brokers] == ["r1"]


# ---------------------------------------------------------------- topics by name


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_in_every_version(node, ask, version):
    node.create_topic("orders", 2)
    topic = ask(request("orders"), version).topics[0]
    assert (topic.name, topic.error_code, topic.is_internal) == ("orders", 0, False)
    assert topic.topic_id == (node.broker.image.topics_by_name["orders"].id if version >= 10 else ZERO)
    assert topic.topic_authorized_operations == NOT_REQUESTED
    for index, partition in enumerate(topic.partitions):
        assert (partition.partition_index, partition.error_code) == (index, 0)
        assert (partition.leader_id, partition.leader_epoch) == (1, 0 if version >= 7 else -1)
        assert (partition.replica_nodes, partition.isr_nodes, list(partition.offline_replicas)) == ([1], [1], [])


def test_topics_are_in_the_order_of_the_request_and_unknown_ones_last(node, ask):
    for name in ("a", "b"):
        node.create_topic(name)
    assert topics_of(ask(request("x", "b", "a b", "a", "b", "x"))) == [
        ("b", 0, 1),
        ("a", 0, 1),
        ("x", 3, 0),
        ("a b", 17, 0),
    ]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_null_is_everything_and_nothing_is_nothing_but_for_version_0(node, ask, version):
    node.create_topic("orders")
    assert topics_of(ask(request(), version)) == ([("orders", 0, 1)] if version == 0 else [])
    if version:
        assert topics_of(ask(everything(), version)) == [("orders", 0, 1)]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_internal_topics_are_marked_even_if_they_are_not_there(node, ask, name):
    (topic,) = ask(request(name)).topics
    assert (topic.error_code, topic.is_internal) == (3, True)
    node.create_topic(name)
    (topic,) = ask(request(name)).topics
    assert (topic.error_code, topic.is_internal) == (0, True)


def test_the_metadata_log_is_shown_to_nobody(ask):
    assert topics_of(ask(request("__cluster_metadata", auto=True))) == [("__cluster_metadata", 3, 0)]


# ---------------------------------------------------------------- creation


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_requested_topic_is_created_and_returned_in_the_next_response(node, ask, version):
    assert topics_of(ask(request("orders", auto=True), version)) == [("orders", 3, 0)]
    assert topics_of(ask(request("orders", auto=True), version)) == [("orders", 0, 1)]
    assert node.broker.partition("orders", 0).leads


def test_nothing_is_created_without_permission(node, ask):
    ask(request("orders", auto=False))
    assert node.broker.image.topics_by_name == {}


def test_nothing_is_made_where_the_broker_does_not_allow_it(quiet_node):
    node = quiet_node(**{"auto.create.topics.enable": "false"})
    node.ask(metadata, request("orders", auto=True), 13)
    assert node.broker.image.topics_by_name == {}


@pytest.mark.parametrize("auto", [True, False])
def test_illegal_names_are_refused_at_once(node, ask, auto):
    assert topics_of(ask(request("a b", ".", "", auto=auto))) == [("a b", 17, 0), (".", 17, 0), ("", 17, 0)]
    assert node.broker.image.topics_by_name == {}


def test_a_name_that_collides_stays_unknown(node, ask):
    node.create_topic("a.b")
    assert topics_of(ask(request("a_b", auto=True))) == topics_of(ask(request("a_b", auto=True))) == [("a_b", 3, 0)]


def test_internal_topics_are_made_as_their_coordinators_want_them(quiet_node):
    node = quiet_node(**{"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "1"})
    node.ask(metadata, request("__consumer_offsets", auto=True), 13)
    assert topics_of(node.ask(metadata, request("__consumer_offsets"), 13)) == [("__consumer_offsets", 0, 7)]
    assert node.broker.image.configs_of(2, "__consumer_offsets")["cleanup.policy"] == "compact"


# ---------------------------------------------------------------- by id


@pytest.mark.parametrize("version", [12, 13])
def test_topics_by_id(node, ask, version):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    response = ask(request(ids=[topic_id, NOBODYS, topic_id], auto=True), version)
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        (None, NOBODYS, 100),
        ("orders", topic_id, 0),
    ]


def test_where_an_id_is_given_names_count_for_nothing(node, ask):
    node.create_topic("orders")
    node.create_topic("others")
    topic_id = node.broker.image.topics_by_name["orders"].id
    requested = request("others", "new", ids=[topic_id, ZERO], auto=True)
    assert topics_of(ask(requested)) == [("orders", 0, 1)]
    requested = request()
    requested.topics = [MetadataRequest.MetadataRequestTopic(topic_id=topic_id, name="others")]
    assert topics_of(ask(requested)) == [("orders", 0, 1)]
    assert "new" not in node.broker.image.topics_by_name


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("ids", [[ZERO], [NOBODYS]])
def test_ids_in_versions_that_do_not_serve_them(node, ask, version, ids):
    node.create_topic("orders")
    response = ask(request("orders", ids=ids), version)
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in response.topics] == [
        ("orders", ZERO, 42),
        ("", ids[0], 42),
    ]
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)


@pytest.mark.parametrize("version", [12, 13])
def test_neither_name_nor_id(node, ask, version):
    node.create_topic("orders")
    response = ask(request("orders", ids=[ZERO]), version)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", -1), ("", -1)]
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)
    assert response.error_code == (-1 if version >= 13 else 0)


# ---------------------------------------------------------------- operations


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_are_told_to_who_asks(node, ask, version):
    node.create_topic("orders")
    requested = request(
        "orders", "a b", include_topic_authorized_operations=True, include_cluster_authorized_operations=version <= 10
    )
    response = ask(requested, version)
    assert [topic.topic_authorized_operations for topic in response.topics] == [3576, 3576]
    assert response.cluster_authorized_operations == (8096 if version <= 10 else NOT_REQUESTED)


def test_an_unknown_id_has_no_operations(ask):
    (topic,) = ask(request(ids=[NOBODYS], include_topic_authorized_operations=True)).topics
    assert topic.topic_authorized_operations == NOT_REQUESTED


# ---------------------------------------------------------------- leaders that are not there


def test_a_partition_whose_leader_is_fenced(node, ask):
    node.create_topic("orders")
    image = node.broker.image
    fenced, _ = image.apply([FenceBrokerRecord(id=1, epoch=image.brokers[1].epoch)])
    node.broker.metadata.loader.image = fenced
    response = ask(request("orders"))
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id, list(partition.offline_replicas)) == (5, -1, [1])
    assert response.brokers == []


@pytest.mark.parametrize(
    ("version", "error_code", "replicas", "isr"), [(0, 9, [1], [1]), (1, 0, [1, 7], [1, 7]), (13, 0, [1, 7], [1, 7])]
)
def test_version_0_leaves_out_replicas_without_an_address(node, ask, version, error_code, replicas, isr):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    append(node.broker, PartitionChangeRecord(partition_id=0, topic_id=topic_id, replicas=[1, 7], isr=[1, 7]))
    (partition,) = ask(request("orders"), version).topics[0].partitions
    found = (partition.error_code, partition.leader_id, list(partition.replica_nodes), list(partition.isr_nodes))
    assert found == (error_code, 1, replicas, isr)


@pytest.mark.parametrize(("version", "error_code"), [(5, 5), (6, 72), (13, 72)])
def test_a_leader_without_the_request_s_listener(node, ask, version, error_code):
    node.create_topic("orders")
    known = node.broker.image.brokers[1]
    other = known._replace(endpoints={"OTHER": Endpoint("OTHER", "127.0.0.1", 1, "PLAINTEXT")})
    append(node.broker, broker_record(other))
    (partition,) = ask(request("orders"), version).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (error_code, -1)
