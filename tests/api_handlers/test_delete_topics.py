import pytest

from barnabas.api_handlers.delete_topics import delete_topics
from barnabas.errors import UnknownTopicOrPartition
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest

ZERO = bytes(16)
ALL_VERSIONS = range(7)


def request(version, *names, ids=()):
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    state = DeleteTopicsRequest.DeleteTopicState
    topics = [state(name=name, topic_id=ZERO) for name in names]
    return DeleteTopicsRequest(topics=[*topics, *(state(name=None, topic_id=each) for each in ids)], timeout_ms=1000)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_goes_in_every_version(node, version):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    gone, unknown = node.ask(delete_topics, request(version, "orders", "nope"), version).responses
    assert (gone.name, gone.error_code, gone.error_message) == ("orders", 0, None)
    assert gone.topic_id == (topic_id if version >= 6 else ZERO)
    assert (unknown.name, unknown.error_code) == ("nope", 3)
    assert (unknown.error_message is not None) == (version >= 5)
    with pytest.raises(UnknownTopicOrPartition):
        node.broker.partition("orders", 0)


def test_a_topic_goes_by_its_id_and_is_named(node):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    gone, unknown = node.ask(delete_topics, request(6, ids=[topic_id, bytes([9]) * 16]), 6).responses
    assert (gone.name, gone.topic_id, gone.error_code) == ("orders", topic_id, 0)
    assert (unknown.name, unknown.error_code) == (None, 100)


def test_doublings_are_refused(node):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    (refused,) = node.ask(delete_topics, request(6, "orders", ids=[topic_id]), 6).responses
    assert (refused.name, refused.topic_id, refused.error_code) == ("orders", topic_id, 42)
    (refused,) = node.ask(delete_topics, request(1, "orders", "orders"), 1).responses
    assert refused.error_code == 42


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_broker_may_delete_nothing(quiet_node, version):
    node = quiet_node(**{"delete.topic.enable": "false"})
    node.create_topic("orders")
    responses = node.ask(delete_topics, request(version, "orders", "nope", "nope"), version).responses
    assert [each.error_code for each in responses] == [73 if version >= 3 else 42] * 3
    assert {each.error_message for each in responses} == {None}
    assert "orders" in node.broker.image.topics_by_name


def test_what_was_in_a_topic_is_gone_when_it_is_made_again(node):
    node.append(node.create_topic("orders", retention_ms="5"), 1, 2)
    node.ask(delete_topics, request(6, "orders"), 6)
    assert node.create_topic("orders").log.log_end_offset == 0
    assert node.broker.image.configs_of(2, "orders") == {}


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_any_time_nothing_goes(node, version, timeout_ms):
    node.create_topic("orders")
    requested = request(version, "orders")
    requested.timeout_ms = timeout_ms
    (answer,) = node.ask(delete_topics, requested, version).responses
    assert (answer.name, answer.error_code, answer.error_message, answer.topic_id) == ("orders", 7, None, ZERO)
    assert "orders" in node.broker.image.topics_by_name
