"""Answers as seen of Apache Kafka 4.3.1."""

import pytest

from barnabas.api_handlers.list_config_resources import list_config_resources
from barnabas.cluster.controller.commands.configs import SET, ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from tests.submitting import submitted


@pytest.fixture(scope="module")
def cluster(config_cluster):
    cluster = config_cluster()
    cluster.create_topic("with", **{"retention.ms": "5"})
    cluster.create_topic("without")
    changes = [
        (ConfigResource(32, "g"), [ConfigChange("share.isolation.level", SET, "read_committed")]),
        (ConfigResource(16, "s"), [ConfigChange("interval.ms", SET, "5000")]),
        (ConfigResource(4, "1"), [ConfigChange("log.retention.ms", SET, "5000")]),
    ]
    assert [result.error for result in submitted(cluster, IncrementalAlterConfigs(changes))] == [None] * 3
    return cluster


ALL = {(2, "with"), (2, "without"), (4, "1"), (8, "1"), (16, "s"), (32, "g")}


def ask(cluster, kinds, version=1):
    request = ListConfigResourcesRequest(resource_types=kinds)
    response = cluster.ask(list_config_resources, request, version)
    return response.error_code, {(each.resource_type, each.resource_name) for each in response.config_resources}


@pytest.mark.parametrize("kinds", [[2], [4], [8], [16], [32], [2, 32], [16, 16]])
def test_requested_types(cluster, kinds):
    assert ask(cluster, kinds) == (0, {(kind, name) for kind, name in ALL if kind in kinds})


def test_all_of_them(cluster):
    assert ask(cluster, []) == (0, ALL)


def test_version_0_lists_subscriptions_to_metrics(cluster):
    assert ask(cluster, [], version=0) == (0, {(16, "s")})


@pytest.mark.parametrize("kinds", [[0], [1], [7], [99], [-1], [2, 99]])
def test_a_strange_kind_is_refused(cluster, kinds):
    assert ask(cluster, kinds) == (35, set())
