"""AlterConfigs, with the error codes of Apache Kafka 4.3.1."""

import pytest

from barnabas.api_handlers.alter_configs import alter_configs
from barnabas.wire.messages.alter_configs import AlterConfigsRequest

Resource = AlterConfigsRequest.AlterConfigsResource


@pytest.fixture
def cluster(config_cluster):
    cluster = config_cluster()
    cluster.create_topic("t", **{"retention.ms": "5000"})
    return cluster


def ask(cluster, *resources, version=2, validate_only=False):
    request = AlterConfigsRequest(
        resources=[
            Resource(
                resource_type=kind,
                resource_name=name,
                configs=[Resource.AlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )
    return [
        (result.error_code, result.error_message, result.resource_type, result.resource_name)
        for result in cluster.ask(alter_configs, request, version).responses
    ]


@pytest.mark.parametrize("version", range(3))
def test_what_was_set_before_is_gone(cluster, version):
    assert ask(cluster, (2, "t", {"flush.ms": "7"}), version=version) == [(0, None, 2, "t")]
    assert cluster.configs(2, "t") == {"flush.ms": "7"}
    assert ask(cluster, (2, "t", {}), version=version) == [(0, None, 2, "t")]
    assert cluster.configs(2, "t") == {}


def test_validation_changes_nothing(cluster):
    assert ask(cluster, (2, "t", {"flush.ms": "7"}), validate_only=True) == [(0, None, 2, "t")]
    assert cluster.configs(2, "t") == {"retention.ms": "5000"}


def test_kinds_of_resources(cluster):
    results = ask(
        cluster,
        (4, "1", {"log.retention.ms": "777", "no.such": "1"}),
        (32, "g", {"share.isolation.level": "read_committed"}),
        (16, "s", {"interval.ms": "5000"}),
    )
    assert [code for code, *_ in results] == [0, 0, 0]
    assert cluster.config["log.retention.ms"] == 777
    assert cluster.configs(32, "g") == {"share.isolation.level": "read_committed"}
    assert cluster.configs(16, "s") == {"interval.ms": "5000"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (2, "t", {"flush.ms": None}, 42),
        (2, "t", {"flush.ms": "x"}, 40),
        (2, "t", {"no.such": "x"}, 40),
        (2, "nope", {}, 3),
        (2, "bad name!", {}, 17),
        (2, "", {}, 42),
        (4, "1", {"num.partitions": "5"}, 42),
        (4, "1", {"log.retention.ms": "x"}, 42),
        (4, "1", {"min.insync.replicas": "1"}, 40),
        (4, "", {"log.retention.ms": "777"}, 40),  # would unset min.insync.replicas of the cluster
        (4, "", {"log.retention.ms": None}, 42),
        (4, "7", {}, 42),
        (4, "x", {}, 42),
        (8, "1", {"root": "INFO"}, 42),
        (16, "", {}, 42),
        (32, "", {}, 42),
        (0, "x", {}, 42),
        (3, "x", {}, 42),
        (99, "x", {}, 42),
    ],
)
def test_one_resource_in_error_leaves_the_others_alone(cluster, kind, name, configs, code):
    wrong, right = ask(cluster, (kind, name, configs), (32, "g", {}))
    assert (wrong[0], wrong[2:], bool(wrong[1])) == (code, (kind, name), True)
    assert right == (0, None, 32, "g")


def test_a_resource_is_named_once(cluster):
    results = ask(cluster, (2, "t", {"flush.ms": "1"}), (2, "t", {"flush.ms": "2"}), (32, "g", {}))
    assert [code for code, *_ in results] == [42, 42, 0]
    assert cluster.configs(2, "t") == {"retention.ms": "5000"}


def test_an_empty_request(cluster):
    assert ask(cluster) == []
