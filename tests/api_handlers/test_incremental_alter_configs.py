"""Codes and outcomes as seen of Apache Kafka 4.3.1."""

import logging

import pytest

from barnabas.api_handlers.incremental_alter_configs import incremental_alter_configs
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def cluster(config_cluster):
    cluster = config_cluster(**{"log.cleanup.policy": "delete, compact"})
    cluster.create_topic("t", **{"retention.ms": "5000"})
    return cluster


def ask(cluster, *resources, version=1, validate_only=False):
    request = IncrementalAlterConfigsRequest(
        resources=[
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    Resource.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    return [
        (result.error_code, result.error_message, result.resource_type, result.resource_name)
        for result in cluster.ask(incremental_alter_configs, request, version).responses
    ]


@pytest.mark.parametrize("version", range(2))
def test_what_was_set_before_stays(cluster, version):
    assert ask(cluster, (2, "t", [("flush.ms", SET, " 7 ")]), version=version) == [(0, None, 2, "t")]
    assert cluster.configs(2, "t") == {"retention.ms": "5000", "flush.ms": " 7 "}
    assert ask(cluster, (2, "t", [("flush.ms", DELETE, None), ("no.such", DELETE, "x")]), version=version)[0][0] == 0
    assert cluster.configs(2, "t") == {"retention.ms": "5000"}


@pytest.mark.parametrize(
    ("resource", "operations", "value"),
    [
        ((2, "t"), [("cleanup.policy", SUBTRACT, "delete")], ""),
        ((2, "t"), [("cleanup.policy", APPEND, "compact")], "delete,compact"),
        ((2, "t"), [("cleanup.policy", APPEND, "delete")], "delete"),
        ((4, "1"), [("log.cleanup.policy", SUBTRACT, "delete")], ""),
        ((2, "t"), [("leader.replication.throttled.replicas", APPEND, "0:1")], "0:1"),
        (
            (2, "t"),
            [
                ("leader.replication.throttled.replicas", APPEND, "0:1"),
                ("leader.replication.throttled.replicas", APPEND, "0:1,1:1"),
            ],
            "0:1,1:1",
        ),
        (
            (2, "t"),
            [
                ("leader.replication.throttled.replicas", SET, "0:1,1:1"),
                ("leader.replication.throttled.replicas", SUBTRACT, "0:1"),
            ],
            "1:1",
        ),
    ],
)
def test_lists_grow_and_shrink_from_what_is_set_or_else_kafkas_default(cluster, resource, operations, value):
    for operation in operations:
        assert ask(cluster, (*resource, [operation]))[0][0] == 0
    assert cluster.configs(*resource)[operations[0][0]] == value


def test_validation_changes_nothing(cluster):
    assert ask(cluster, (2, "t", [("flush.ms", SET, "7")]), validate_only=True) == [(0, None, 2, "t")]
    assert ask(cluster, (2, "t", [("flush.ms", SET, "x")]), validate_only=True)[0][0] == 40
    assert cluster.configs(2, "t") == {"retention.ms": "5000"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (2, "t", [("retention.ms", SET, None)], 42),
        (2, "t", [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], 42),
        (2, "t", [("retention.ms", SET, "x")], 40),
        (2, "t", [("no.such", SET, "x")], 40),
        (2, "t", [("log.retention.ms", SET, "5")], 40),
        (2, "t", [("retention.ms", APPEND, "5")], 40),
        (2, "t", [("no.such", APPEND, "5")], 40),
        (2, "t", [("cleanup.policy", APPEND, "foo")], 40),
        (2, "t", [("cleanup.policy", APPEND, None)], 42),
        (2, "t", [("retention.ms", 9, "5")], -1),
        (2, "t", [("retention.ms", -1, "5")], -1),
        (2, "nope", [("retention.ms", SET, "5")], 3),
        (2, "nope", [("retention.ms", SET, "x")], 40),
        (2, "bad name!", [("retention.ms", SET, "x")], 17),
        (2, "", [("retention.ms", SET, "5")], 42),
        (4, "1", [("num.partitions", SET, "5")], 42),
        (4, "1", [("log.retention.ms", SET, "x")], 42),
        (4, "1", [("log.retention.ms", APPEND, "5")], 40),
        (4, "1", [("no.such", APPEND, "5")], 40),
        (4, "1", [("log.retention.ms", 7, "5")], 42),
        (4, "1", [("min.insync.replicas", SET, "1")], 40),
        (4, "1", [("min.insync.replicas", SET, "0")], 42),
        (4, "1", [("min.insync.replicas", DELETE, None)], 40),
        (4, "", [("min.insync.replicas", DELETE, None)], 40),
        (4, "", [("sasl.jaas.config", SET, "x")], 42),
        (4, "7", [("log.retention.ms", SET, "5")], 42),
        (4, "x", [], 42),
        (8, "2", [("root", SET, "INFO")], 42),
        (8, "", [("root", SET, "INFO")], 42),
        (8, "1", [("root", DELETE, None)], 42),
        (8, "1", [("root", APPEND, "INFO")], 42),
        (8, "1", [("root", SET, "info")], 40),
        (8, "1", [("root", SET, "OFF")], 40),
        (8, "1", [("no.such.logger", SET, "INFO")], 40),
        (8, "1", [("no.such.logger", DELETE, None)], 40),
        (8, "1", [("root", 7, "INFO")], -1),
        (16, "s", [("metrics", APPEND, "x")], 40),
        (16, "s", [("no.such", SET, "x")], 42),
        (16, "", [("interval.ms", SET, "5000")], 42),
        (32, "g", [("no.such", SET, "x")], 40),
        (32, "g", [("consumer.session.timeout.ms", SET, "1")], 40),
        (32, "", [("consumer.session.timeout.ms", SET, "50000")], 42),
        (32, "", [("consumer.session.timeout.ms", APPEND, "5")], 40),
        (32, "", [("no.such", 9, "5")], -1),
        (0, "x", [("a", SET, "b")], 42),
        (3, "x", [("a", SET, "b")], 42),
        (99, "", [], 42),
    ],
)
def test_one_resource_in_error_leaves_the_others_alone(cluster, kind, name, configs, code):
    level = logging.root.level
    wrong, right = ask(
        cluster, (kind, name, configs), (32, "other", [("share.isolation.level", SET, "read_committed")])
    )
    assert (wrong[0], wrong[2:], bool(wrong[1])) == (code, (kind, name), code != -1)
    assert right == (0, None, 32, "other")
    assert cluster.configs(2, "t") == {"retention.ms": "5000"}
    assert logging.root.level == level


def test_a_resource_is_named_once(cluster):
    results = ask(cluster, (2, "t", [("flush.ms", SET, "1")]), (2, "t", []), (32, "g", []))
    assert [code for code, *_ in results] == [42, 42, 0]


def test_a_change_of_a_broker_acts_at_once(cluster):
    assert ask(cluster, (4, "", [("log.retention.ms", SET, "8")]), (4, "1", [("log.retention.ms", SET, "9")])) == [
        (0, None, 4, ""),
        (0, None, 4, "1"),
    ]
    assert cluster.config.topic().retention_ms == 9
    ask(cluster, (4, "1", [("log.retention.ms", DELETE, None)]))
    assert cluster.config.topic().retention_ms == 8


class TestLoggers:
    @pytest.fixture
    def logger(self):
        logger = logging.getLogger("barnabas.tests.of.incremental")
        yield logger
        logger.setLevel(logging.NOTSET)

    def test_a_level_is_set_and_unset(self, cluster, logger):
        assert ask(cluster, (8, "1", [(logger.name, SET, "TRACE")])) == [(0, None, 8, "1")]
        assert logger.level == 5
        assert ask(cluster, (8, "1", [(logger.name, DELETE, None)])) == [(0, None, 8, "1")]
        assert logger.level == logging.NOTSET

    def test_all_or_nothing(self, cluster, logger):
        results = ask(cluster, (8, "1", [(logger.name, SET, "FATAL"), ("no.such.logger", SET, "INFO")]))
        assert (results[0][0], logger.level) == (40, logging.NOTSET)

    def test_validation_changes_nothing(self, cluster, logger):
        assert ask(cluster, (8, "1", [(logger.name, SET, "FATAL")]), validate_only=True)[0][0] == 0
        assert logger.level == logging.NOTSET


def test_an_empty_request(cluster):
    assert ask(cluster) == []
