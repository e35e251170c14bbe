"""Answers as seen of Apache Kafka 4.3.1 (4.0 took version 0 away: there, those of 3.9)."""

import logging

import pytest

from barnabas.api_handlers.describe_configs import describe_configs
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest

Resource = DescribeConfigsRequest.DescribeConfigsResource


@pytest.fixture
def cluster(config_cluster):
    cluster = config_cluster(**{"num.partitions": "3"})
    cluster.create_topic("t", **{"retention.ms": " 5000 "})
    return cluster


def ask(cluster, *resources, version=4, synonyms=True, documentation=False):
    request = DescribeConfigsRequest(
        resources=[
            Resource(resource_type=kind, resource_name=name, configuration_keys=keys) for kind, name, keys in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )
    return cluster.ask(describe_configs, request, version).results


@pytest.mark.parametrize("version", range(5))
def test_each_version(cluster, version):
    (result,) = ask(
        cluster, (4, "1", ["num.partitions"]), version=version, synonyms=version >= 1, documentation=version >= 3
    )
    assert (result.error_code, result.error_message, result.resource_type, result.resource_name) == (0, "", 4, "1")
    (config,) = result.configs
    assert (config.name, config.value, config.read_only, config.is_sensitive) == ("num.partitions", "3", True, False)
    assert config.is_default is False
    assert config.config_source == (4 if version >= 1 else -1)
    assert [(s.name, s.value, s.source) for s in config.synonyms] == (
        [("num.partitions", "3", 4), ("num.partitions", "1", 5)] if version >= 1 else []
    )
    assert config.config_type == (3 if version >= 3 else 0)
    assert bool(config.documentation) is (version >= 3)


def test_version_0_says_what_is_a_default(cluster):
    (result,) = ask(cluster, (2, "t", ["retention.ms", "flush.ms"]), version=0, synonyms=False)
    assert {config.name: config.is_default for config in result.configs} == {"retention.ms": False, "flush.ms": True}


def test_synonyms_and_documentation_on_request(cluster):
    (result,) = ask(cluster, (4, "1", ["num.partitions"]), synonyms=False)
    assert (result.configs[0].synonyms, result.configs[0].documentation) == ([], None)


@pytest.mark.parametrize(
    ("kind", "name", "count"), [(2, "t", 33), (4, "1", 340), (4, "01", 340), (16, "s", 3), (32, "g", 17)]
)
@pytest.mark.parametrize("keys", [None, []])
def test_all_of_a_resource(cluster, kind, name, count, keys):
    (result,) = ask(cluster, (kind, name, keys))
    assert (result.error_code, len(result.configs)) == (0, count)


def test_of_all_brokers_there_is_what_was_set(cluster):
    (result,) = ask(cluster, (4, "", None))
    assert [(config.name, config.value, config.config_source) for config in result.configs] == [
        ("min.insync.replicas", "1", 3)
    ]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "nope", 3),
        (2, "__consumer_offsets", 3),
        (2, "bad name!", 17),
        (2, "", 17),
        (2, ".", 17),
        (2, "a" * 250, 17),
        (4, "7", 42),
        (4, "x", 42),
        (4, "-1", 42),
        (4, "1 ", 42),
        (8, "2", 42),
        (8, "x", 42),
        (8, "", 42),
        (16, "", 42),
        (32, "", 42),
    ],
)
def test_one_resource_in_error_leaves_the_others_alone(cluster, kind, name, code):
    wrong, right = ask(cluster, (kind, name, None), (2, "t", ["retention.ms"]))
    assert (wrong.error_code, wrong.resource_type, wrong.resource_name, wrong.configs) == (code, kind, name, [])
    assert bool(wrong.error_message) is (code != 3)
    assert (right.error_code, len(right.configs)) == (0, 1)


@pytest.mark.parametrize("kind", [0, 1, 3, 7, 99, -1])
def test_one_resource_of_a_strange_kind_spoils_them_all(cluster, kind):
    results = ask(cluster, (4, "1", None), (kind, "x", None))
    assert [(result.error_code, result.configs) for result in results] == [(42, []), (42, [])]


def test_a_resource_may_be_requested_twice(cluster):
    first, second = ask(cluster, (2, "t", ["retention.ms"]), (2, "t", ["flush.ms", "no.such"]))
    assert [[config.name for config in result.configs] for result in (first, second)] == [
        ["retention.ms"],
        ["flush.ms"],
    ]


def test_only_configs_that_exist_are_described(cluster):
    (some,) = ask(cluster, (2, "t", ["retention.ms", "no.such", "cleanup.policy"]))
    assert sorted(config.name for config in some.configs) == ["cleanup.policy", "retention.ms"]
    (everything,) = ask(cluster, (2, "t", None))
    assert {"compression.type", "remote.log.delete.on.disable"} < {config.name for config in everything.configs}


def test_an_empty_request(cluster):
    assert ask(cluster) == []


def test_loggers_have_levels(cluster, monkeypatch):
    logging.getLogger("barnabas.tests.of.describe")
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    (result,) = ask(cluster, (8, "1", ["root", "barnabas.tests.of.describe", "no.such.logger"]))
    assert [
        (c.name, c.value, c.read_only, c.config_source, c.config_type, c.documentation, c.synonyms)
        for c in sorted(result.configs, key=lambda config: config.name)
    ] == [
        ("barnabas.tests.of.describe", "WARN", False, 6, 0, "", []),
        ("root", "WARN", False, 6, 0, "", []),
    ]
