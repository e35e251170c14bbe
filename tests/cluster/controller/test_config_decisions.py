"""Configs in the metadata log. Outcomes are those of Apache Kafka 4.3.1."""

import pytest

from barnabas.cluster.controller.commands.configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    AlterConfigs,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
)
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import (
    InvalidConfig,
    InvalidRequest,
    InvalidTopicException,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import ClearElrRecord, ConfigRecord

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
ORDERS = ConfigResource(TOPIC, "orders")


@pytest.fixture
def orders(cluster):
    cluster.create(NewTopic("orders", 1, 1))
    return cluster


def change(cluster, resource, *changes, validate_only=False):
    command = IncrementalAlterConfigs([(resource, [ConfigChange(*each) for each in changes])], validate_only)
    (result,) = cluster.submit(command)
    return type(result.error) if result.error else cluster.image.configs_of(*resource)


def replace(cluster, resource, validate_only=False, **configs):
    listed = [(name.replace("_", "."), value) for name, value in configs.items()]
    (result,) = cluster.submit(AlterConfigs([(resource, listed)], validate_only))
    return type(result.error) if result.error else cluster.image.configs_of(*resource)


def test_single_configs_are_set_and_unset(orders):
    assert change(orders, ORDERS, ("retention.ms", SET, "1")) == {"retention.ms": "1"}
    assert change(orders, ORDERS, ("segment.ms", SET, "2")) == {"retention.ms": "1", "segment.ms": "2"}
    assert change(orders, ORDERS, ("retention.ms", DELETE, None)) == {"segment.ms": "2"}
    assert change(orders, ORDERS, ("segment.ms", DELETE, "the value does not count")) == {}


def test_what_was_not_set_can_be_unset(orders):
    assert change(orders, ORDERS, ("retention.ms", DELETE, None), ("nope", DELETE, None)) == {}
    assert orders.records == []


def test_what_is_set_already_makes_no_record(orders):
    change(orders, ORDERS, ("retention.ms", SET, "1"))
    change(orders, ORDERS, ("retention.ms", SET, "1"))
    assert orders.records == []


def test_values_are_kept_as_they_were_given(orders):
    assert change(orders, ORDERS, ("retention.ms", SET, " 5 ")) == {"retention.ms": " 5 "}


def test_lists_grow_and_shrink(orders):
    def policy(operation, value):
        return change(orders, ORDERS, ("cleanup.policy", operation, value))

    assert policy(APPEND, "compact") == {"cleanup.policy": "delete,compact"}
    assert policy(APPEND, "compact") == {"cleanup.policy": "delete,compact"}
    assert policy(SUBTRACT, "delete") == {"cleanup.policy": "compact"}
    assert policy(SUBTRACT, "delete") == {"cleanup.policy": "compact"}
    assert policy(APPEND, "compact,delete") == {"cleanup.policy": "compact,delete"}
    assert policy(SUBTRACT, "compact,delete") == {"cleanup.policy": ""}
    assert policy(DELETE, None) == {}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", SET, None)], InvalidRequest),
        ([("cleanup.policy", APPEND, None)], InvalidRequest),
        ([("retention.ms", SET, "1"), ("retention.ms", SET, "1")], InvalidRequest),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], InvalidRequest),
        ([("retention.ms", 4, "1")], UnknownServerError),
        ([("retention.ms", -1, "1")], UnknownServerError),
        ([("retention.ms", APPEND, "1")], InvalidConfig),
        ([("nope", SUBTRACT, "1")], InvalidConfig),
        ([("retention.ms", SET, "x")], InvalidConfig),
        ([("log.retention.ms", SET, "1")], InvalidConfig),
        ([("cleanup.policy", APPEND, "")], InvalidConfig),
        ([("cleanup.policy", APPEND, "bogus")], InvalidConfig),
    ],
)
def test_changes_that_cannot_be(orders, changes, error):
    assert change(orders, ORDERS, *changes) is error
    assert change(orders, ORDERS, *changes, validate_only=True) is error
    assert orders.image.configs == {(BROKER, ""): {"min.insync.replicas": "1"}}


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (ConfigResource(TOPIC, "nope"), UnknownTopicOrPartition),
        (ConfigResource(TOPIC, "a b"), InvalidTopicException),
        (ConfigResource(TOPIC, ""), InvalidRequest),
        (ConfigResource(GROUP, ""), InvalidRequest),
        (ConfigResource(METRICS, ""), InvalidRequest),
        (ConfigResource(LOGGER, "1"), InvalidRequest),
        (ConfigResource(0, "x"), InvalidRequest),
        (ConfigResource(7, "x"), InvalidRequest),
    ],
)
def test_resources_without_configs(orders, resource, error):
    assert change(orders, resource) is error
    assert replace(orders, resource) is error


def test_a_wrong_value_goes_before_a_topic_that_is_not_there(orders):
    assert change(orders, ConfigResource(TOPIC, "nope"), ("retention.ms", SET, "x")) is InvalidConfig


def test_the_old_way_replaces_everything(orders):
    assert replace(orders, ORDERS, retention_ms="1", segment_ms="2") == {"retention.ms": "1", "segment.ms": "2"}
    assert replace(orders, ORDERS, segment_ms="3") == {"segment.ms": "3"}
    assert {(record.name, record.value) for record in orders.records} == {("retention.ms", None), ("segment.ms", "3")}
    assert replace(orders, ORDERS) == {}


def test_the_old_way_refuses_what_the_new_one_does(orders):
    assert replace(orders, ORDERS, retention_ms=None) is InvalidRequest
    assert replace(orders, ORDERS, retention_ms="x") is InvalidConfig


def test_other_resources_have_configs_too(orders):
    group, metrics = ConfigResource(GROUP, "g"), ConfigResource(METRICS, "m")
    assert change(orders, group, ("consumer.session.timeout.ms", SET, "46000")) == {
        "consumer.session.timeout.ms": "46000"
    }
    assert change(orders, metrics, ("interval.ms", SET, "500")) == {"interval.ms": "500"}
    assert change(orders, ConfigResource(BROKER, "1"), ("log.retention.ms", SET, "5")) == {"log.retention.ms": "5"}


def test_a_resource_named_twice_is_refused_both_times(orders):
    changes = [ConfigChange("retention.ms", SET, "1")]
    results = orders.submit(IncrementalAlterConfigs([(ORDERS, changes), (ORDERS, changes)]))
    assert [type(result.error) for result in results] == [InvalidRequest] * 2
    results = orders.submit(AlterConfigs([(ORDERS, []), (ORDERS, [])]))
    assert [type(result.error) for result in results] == [InvalidRequest] * 2


def test_one_resource_does_not_spoil_the_others(orders):
    changes = [ConfigChange("retention.ms", SET, "1")]
    results = orders.submit(IncrementalAlterConfigs([(ConfigResource(TOPIC, "nope"), changes), (ORDERS, changes)]))
    assert [result.error is None for result in results] == [False, True]
    assert orders.image.configs_of(*ORDERS) == {"retention.ms": "1"}


def test_nothing_changes_by_asking_whether_it_could(orders):
    assert change(orders, ORDERS, ("retention.ms", SET, "1"), validate_only=True) == {}
    assert replace(orders, ORDERS, validate_only=True, retention_ms="1") == {}


def test_brokers_must_agree_on_min_insync_replicas(orders):
    all_brokers, one = ConfigResource(BROKER, ""), ConfigResource(BROKER, "1")
    assert change(orders, one, ("min.insync.replicas", SET, "1")) is InvalidConfig
    assert change(orders, all_brokers, ("min.insync.replicas", DELETE, None)) is InvalidConfig
    assert replace(orders, all_brokers) is InvalidConfig
    assert change(orders, all_brokers, ("min.insync.replicas", SET, "2")) == {"min.insync.replicas": "2"}


def test_another_min_insync_replicas_clears_the_eligible_leaders(orders):
    change(orders, ORDERS, ("min.insync.replicas", SET, "2"))
    assert list(map(type, orders.records)) == [ConfigRecord, ClearElrRecord]
    assert orders.records[1].topic_name == "orders"
    change(orders, ConfigResource(BROKER, ""), ("min.insync.replicas", SET, "2"))
    assert orders.records[1].topic_name == ""
