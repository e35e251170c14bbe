"""FindCoordinator: each case as Apache Kafka 4.3.1 answered it."""

import pytest

from barnabas.api_handlers.find_coordinator import find_coordinator
from barnabas.broker.nodes import Nodes
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from barnabas.errors import NONE, CoordinatorNotAvailable, InvalidRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = range(3)
SHARE_KEY = "g:AAAAAAAAAAAAAAAAAAAAAA:0"


def one(node, version, key="g", key_type=GROUP):
    return node.call(FindCoordinatorRequest(key=key, key_type=key_type), version)


def several(node, version, *keys, key_type=GROUP):
    return node.call(FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type), version).coordinators


@pytest.mark.parametrize("version", range(4))
def test_a_group_is_here(group_node, version):
    answer = one(group_node, version)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (NONE, 1, "127.0.0.1", 9092)
    assert answer.error_message == ("NONE" if version else None)


@pytest.mark.parametrize("version", [4, 5, 6])
def test_several_groups_are_here(group_node, version):
    answers = several(group_node, version, "g", "", "g")
    assert [each.key for each in answers] == ["g", "", "g"]
    for each in answers:
        found = (each.error_code, each.error_message, each.node_id, each.host, each.port)
        assert found == (NONE, "", 1, "127.0.0.1", 9092)


def test_no_keys_no_coordinators(group_node):
    assert several(group_node, 6) == []


def test_asking_for_a_group_makes_the_topic(quiet_node):
    node = quiet_node(**{"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "3"})
    assert CONSUMER_OFFSETS not in node.broker.image.topics_by_name
    assert node.ask(find_coordinator, FindCoordinatorRequest(key="g"), 0).error_code == NONE
    assert len(node.broker.image.topics_by_name[CONSUMER_OFFSETS].partitions) == 3
    configs = node.broker.image.configs_of(2, CONSUMER_OFFSETS)
    assert dict(configs) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_the_topic_cannot_be_made(quiet_node):
    node = quiet_node(**{"offsets.topic.replication.factor": "3"})
    answer = node.ask(find_coordinator, FindCoordinatorRequest(key="g"), 3)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (CoordinatorNotAvailable.code, -1, "", -1)
    assert answer.error_message == str(CoordinatorNotAvailable())


def test_a_listener_that_nobody_advertises(group_node):
    group_node.broker.nodes = Nodes(dict)
    assert one(group_node, 1).error_code == CoordinatorNotAvailable.code


@pytest.mark.parametrize("version", range(1, 7))
def test_a_transactional_id_is_here_and_asking_makes_the_topic(group_node, version):
    assert TRANSACTION_STATE not in group_node.broker.image.topics_by_name
    if version < 4:
        answer = one(group_node, version, key_type=TRANSACTION)
    else:
        (answer,) = several(group_node, version, "id", key_type=TRANSACTION)
    assert (answer.error_code, answer.node_id, answer.host, answer.port) == (NONE, 1, "127.0.0.1", 9092)
    configs = dict(group_node.broker.image.configs_of(2, TRANSACTION_STATE))
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize("key_type", [3, -1, 127])
@pytest.mark.parametrize("version", range(1, 7))
def test_a_kind_of_key_that_there_is_not(group_node, version, key_type):
    if version < 4:
        answer = one(group_node, version, key_type=key_type)
    else:
        answer = several(group_node, version, "a", "b", key_type=key_type)[1]
    assert (answer.error_code, answer.error_message) == (InvalidRequest.code, str(InvalidRequest()))


@pytest.mark.parametrize("version", [4, 5])
def test_share_partitions_are_unknown_before_version_6(group_node, version):
    (answer,) = several(group_node, version, SHARE_KEY, key_type=SHARE)
    assert (answer.error_code, answer.error_message) == (InvalidRequest.code, "")


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (SHARE_KEY, NONE),
        ("a:b:AAAAAAAAAAAAAAAAAAAAAA:0", NONE),
        ("g:AAAAAAAAAAAAAAAAAAAAAA:-1", NONE),
        ("g:AAAAAAAAAAAAAAAAAAAAAA:x", InvalidRequest.code),
        ("g:AAAA:0", InvalidRequest.code),
        ("AAAAAAAAAAAAAAAAAAAAAA:0", InvalidRequest.code),
        ("g", InvalidRequest.code),
        ("", InvalidRequest.code),
    ],
)
def test_a_share_partition_has_a_key_of_three_parts(group_node, key, code):
    (answer,) = several(group_node, 6, key, key_type=SHARE)
    assert (answer.error_code, answer.error_message) == (code, "")
