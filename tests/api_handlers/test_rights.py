"""Responses with an authorizer; compat_tests compares them with Apache Kafka's."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import handle
from barnabas.api_handlers.registry import APIS
from barnabas.api_handlers.rights.table import RIGHTS
from barnabas.api_handlers.session import Session
from barnabas.cluster.controller.commands.acls import CreateAcls, DeleteAcls
from barnabas.config import BrokerConfig
from barnabas.config.validators import ConfigError
from barnabas.errors import CloseConnection
from barnabas.records.builder import build_batch
from barnabas.security.acls import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from barnabas.security.principals import Principal
from barnabas.wire.messages.create_acls import CreateAclsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.submitting import submitted

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
MINIMUM = -(1 << 31)


def test_each_api_has_its_rights():
    assert set(RIGHTS) >= set(APIS)


class GuardedNode:
    """A node with an authorizer, for requests of alice, and of root, who is a super user."""

    def __init__(self, node):
        self.node, self.broker = node, node.broker

    def allow(self, operation, kind=TOPIC, name="t", permission=Permission.ALLOW, pattern=PatternType.LITERAL):
        name = "kafka-cluster" if kind == CLUSTER else name
        acl = Acl(kind, name, pattern, "User:alice", "*", operation, permission)
        assert submitted(self.broker.controller, CreateAcls([acl])) == [None]

    def ask(self, request, version, user="alice"):
        session = Session(listener="PLAINTEXT", client_host="127.0.0.1", principal=Principal("User", user))
        context = Context(self.broker, session, api_version=version, time_ms=self.node.clock.time_ms())
        requested = type(request).decode(bytearray(request.encode(version=version)), version=version)
        answer = handle(APIS[request.api_key], requested, context)
        self.node.clock.advance(0)
        response = answer.response if isinstance(answer, Later) else answer
        return None if response is None else type(response).decode(response.encode(version=version), version=version)


@pytest.fixture
def guarded(group_node):
    made = type(group_node)(**{"authorizer.class.name": STANDARD, "super.users": "User:root"})
    return GuardedNode(made)


# ---------------------------------------------------------------- configs


def test_another_authorizer_stops_the_start():
    with pytest.raises(ConfigError, match="StandardAuthorizer, or empty"):
        BrokerConfig.from_properties({"authorizer.class.name": "com.example.Authorizer"})


def test_without_an_authorizer_everything_is_allowed(group_node):
    assert group_node.broker.authorizer is None


def test_the_authorizer_follows_the_image(guarded):
    request = ListGroupsRequest()
    assert guarded.ask(request, 0).error_code == 0
    guarded.allow(Operation.READ)
    assert names(guarded.ask(MetadataRequest(topics=None), 1)) == ["t"]
    submitted(guarded.broker.controller, DeleteAcls([AclFilter()]))
    assert names(guarded.ask(MetadataRequest(topics=None), 1)) == []


# ---------------------------------------------------------------- the ACL APIs


def creation(**fields):
    defaults = {"resource_type": 2, "resource_name": "t", "principal": "User:bob", "host": "*", "operation": 3}
    return CreateAclsRequest.AclCreation(**(defaults | {"permission_type": 3} | fields))


def wanted(**fields):
    names = ("resource_name_filter", "principal_filter", "host_filter")
    codes = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    return dict.fromkeys(names) | codes | fields


def test_acls_are_created_described_and_deleted(guarded):
    created = guarded.ask(CreateAclsRequest(creations=[creation(), creation(), creation(principal="bob")]), 3, "root")
    assert [each.error_code for each in created.results] == [0, 0, 42]
    (found,) = guarded.ask(DescribeAclsRequest(**wanted()), 3, "root").resources
    assert (found.resource_name, [each.principal for each in found.acls]) == ("t", ["User:bob"])
    filters = [
        DeleteAclsRequest.DeleteAclsFilter(**wanted(**each)) for each in ({}, {"host_filter": "h"}, {"operation": 99})
    ]
    deleted = guarded.ask(DeleteAclsRequest(filters=filters), 3, "root").filter_results
    assert [(each.error_code, len(each.matching_acls)) for each in deleted] == [(0, 1), (0, 0), (42, 0)]
    assert not guarded.ask(DescribeAclsRequest(**wanted()), 3, "root").resources


def test_acls_need_rights_on_the_cluster(guarded):
    assert guarded.ask(DescribeAclsRequest(**wanted()), 3).error_code == 31
    created = guarded.ask(CreateAclsRequest(creations=[creation(), creation()]), 3)
    assert [each.error_code for each in created.results] == [31, 31]


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"resource_name": ""}, 42),
        ({"resource_type": 4, "resource_name": "*"}, 42),
        ({"resource_type": 4, "resource_name": "kafka-cluster"}, 0),
        ({"resource_type": 1}, -1),
        ({"resource_pattern_type": 2}, -1),
        ({"operation": 99}, 42),
        ({"principal": ":alice"}, 0),
    ],
)
def test_an_acl_that_cannot_be(guarded, fields, code):
    (result,) = guarded.ask(CreateAclsRequest(creations=[creation(**fields)]), 3, "root").results
    assert result.error_code == code


@pytest.mark.parametrize(
    "request_",
    [
        CreateAclsRequest(creations=[creation(operation=0)]),
        DescribeAclsRequest(**wanted(operation=0)),
        DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**wanted(permission_type=0))]),
    ],
)
def test_a_code_of_0_closes_the_connection(guarded, request_):
    with pytest.raises(CloseConnection):
        guarded.ask(request_, 3, "root")


def test_without_an_authorizer_security_is_disabled(group_node):
    requested = GuardedNode(group_node)
    assert requested.ask(DescribeAclsRequest(**wanted()), 3).error_code == 54
    (result,) = requested.ask(CreateAclsRequest(creations=[creation()]), 3).results
    assert (result.error_code, result.error_message) == (54, "No Authorizer is configured.")


# ---------------------------------------------------------------- other APIs


def names(response):
    return [topic.name for topic in response.topics]


def codes(response):
    return {topic.name: topic.error_code for topic in response.topics}


def metadata(*topics, **fields):
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics], **fields)


def test_metadata_hides_topics(guarded):
    guarded.allow(Operation.DESCRIBE, name="t")
    assert codes(guarded.ask(metadata("t", "u", "new"), 8)) == {"t": 0, "u": 29, "new": 29}
    assert names(guarded.ask(metadata("u"), 0)) == ["u"]
    guarded.allow(Operation.DESCRIBE, name="new")
    assert codes(guarded.ask(metadata("new"), 8)) == {"new": 29}, "it may not be created"
    guarded.allow(Operation.CREATE, name="new")
    assert codes(guarded.ask(metadata("new"), 8)) == {"new": 3}
    assert codes(guarded.ask(metadata("new"), 8)) == {"new": 0}


def test_metadata_tells_operations(guarded):
    guarded.allow(Operation.READ)
    found = guarded.ask(
        metadata("t", "u", include_topic_authorized_operations=True, include_cluster_authorized_operations=True), 8
    )
    assert [topic.topic_authorized_operations for topic in found.topics] == [1 << 3 | 1 << 8, MINIMUM]
    assert found.cluster_authorized_operations == 0
    guarded.allow(Operation.ALL, CLUSTER)
    requested = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert guarded.ask(requested, 1).cluster_authorized_operations == 8096


def produce(*topics, acks=1):
    Topic = ProduceRequest.TopicProduceData
    rows = [Topic.PartitionProduceData(index=0, records=build_batch([(None, b"v", 1)]))]
    return ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout_ms=1000,
        topic_data=[Topic(name=name, partition_data=rows) for name in topics],
    )


def test_produce_refuses_topic_by_topic(guarded):
    guarded.allow(Operation.WRITE)
    found = guarded.ask(produce("u", "t"), 9)
    assert {topic.name: topic.partition_responses[0].error_code for topic in found.responses} == {"t": 0, "u": 29}
    assert guarded.ask(produce("t", acks=0), 9) is None
    with pytest.raises(CloseConnection):
        guarded.ask(produce("t", "u", acks=0), 9)
    assert guarded.broker.partition("t", 0).log.log_end_offset == 3, "what is allowed is written"


def test_transactional_batches_need_a_right_on_the_transactional_id(guarded):
    guarded.allow(Operation.WRITE)
    batch = build_batch([(None, b"v", 1)], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)

    def in_transaction(transactional_id, acks=1):
        request = produce("t", acks=acks)
        request.transactional_id = transactional_id
        request.topic_data[0].partition_data[0].records = batch
        return request

    for transactional_id in ("tx", None):
        found = guarded.ask(in_transaction(transactional_id), 9)
        assert found.responses[0].partition_responses[0].error_code == 53
        with pytest.raises(CloseConnection):
            guarded.ask(in_transaction(transactional_id, acks=0), 9)
    guarded.allow(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
    found = guarded.ask(in_transaction("tx"), 9)
    assert found.responses[0].partition_responses[0].error_code != 53
    assert guarded.broker.partition("t", 0).log.log_end_offset == 0, "nothing of it is written"


def test_acls_in_version_0_are_literal(guarded):
    created = guarded.ask(CreateAclsRequest(creations=[creation()]), 0, "root")
    assert [each.error_code for each in created.results] == [0]
    codes = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
    everything = dict.fromkeys(("resource_name_filter", "principal_filter", "host_filter")) | codes
    (found,) = guarded.ask(DescribeAclsRequest(**everything), 0, "root").resources
    assert (found.resource_name, [each.principal for each in found.acls]) == ("t", ["User:bob"])
    (deleted,) = guarded.ask(
        DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**everything)]), 0, "root"
    ).filter_results
    assert len(deleted.matching_acls) == 1


def fetch(*topics, **fields):
    Topic = FetchRequest.FetchTopic
    rows = [Topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    wanted = {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "forgotten_topics_data": []}
    return FetchRequest(topics=[Topic(topic=name, partitions=rows) for name in topics], **(wanted | fields))


def test_a_right_counts_in_an_open_fetch_session(guarded):
    guarded.allow(Operation.READ)
    guarded.ask(produce("t"), 9, "root")
    first = guarded.ask(fetch("t", "u", session_id=0, session_epoch=0), 12)
    assert [(topic.topic, topic.partitions[0].error_code) for topic in first.responses] == [("t", 0), ("u", 29)]
    submitted(guarded.broker.controller, DeleteAcls([AclFilter()]))
    again = guarded.ask(fetch(session_id=first.session_id, session_epoch=1), 12)
    assert [topic.partitions[0].error_code for topic in again.responses] == [29, 29]
    guarded.allow(Operation.READ)
    granted = guarded.ask(fetch(session_id=first.session_id, session_epoch=2), 12)
    assert {topic.topic: topic.partitions[0].error_code for topic in granted.responses} == {"t": 0, "u": 29}
    assert len(granted.responses[0].partitions[0].records) > 0


def test_a_topic_that_the_node_learns_of_later_is_hidden_all_the_same(guarded, monkeypatch):
    broker = guarded.broker
    topic_id = broker.image.topics_by_name["t"].id
    Topic = FetchRequest.FetchTopic
    rows = [Topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    request = fetch(session_id=0, session_epoch=0)
    request.topics = [Topic(topic_id=topic_id, partitions=rows)]
    guarded.ask(produce("t"), 9, "root")
    with monkeypatch.context() as before:
        before.setattr(broker, "topic_name", lambda topic_id: None)
        first = guarded.ask(request, 13)
    (found,) = guarded.ask(fetch(session_id=first.session_id, session_epoch=1), 13).responses
    assert (found.partitions[0].error_code, bytes(found.partitions[0].records or b"")) == (29, b"")


def test_topics_are_created_by_a_right_on_the_cluster_or_on_the_topic(guarded):
    def create(*names):
        Topic = CreateTopicsRequest.CreatableTopic
        topics = [
            Topic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for name in names
        ]
        return guarded.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)

    assert codes(create("n", "t", "d", "d")) == {"n": 29, "t": 29, "d": 42}
    guarded.allow(Operation.CREATE, name="n")
    (made,) = create("n").topics
    assert (made.error_code, made.topic_config_error_code, made.num_partitions, made.configs) == (0, 29, -1, [])
    guarded.allow(Operation.CREATE, CLUSTER)
    guarded.allow(Operation.ALTER_CONFIGS, name="m")
    (made,) = create("m").topics
    assert (made.error_code, made.topic_config_error_code, made.num_partitions) == (0, 0, 1)


def test_an_idempotent_producer_needs_to_write_something(guarded):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    assert guarded.ask(request, 4).error_code == 31
    guarded.allow(Operation.WRITE)
    assert guarded.ask(request, 4).error_code == 0
    guarded.allow(Operation.WRITE, name="*", permission=Permission.DENY)
    assert guarded.ask(request, 4).error_code == 31
