"""Admin requests to a broker that is not the controller, forwarded between Barnabas and Apache Kafka, both ways.

A broker of one kind under a controller of the other answers as two nodes of Apache Kafka do.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.api_handlers.registry import FORWARDABLE
from tests.raw import Client

from .clusters import broker, controller
from .plain import comparable, request_of

pytestmark = pytest.mark.xdist_group("forwarding")  # it starts its own brokers

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "a secret of the cluster",
    "num.partitions": "2",
}
WITHIN_S = 20.0


TOPIC, BROKER, LOGGER = 2, 4, 8
INCREMENTAL, ALL = "IncrementalAlterConfigs", "AlterConfigs"


def resource(kind: int, name: str, *configs: tuple[str, str | None], operation: int | None = 0) -> dict[str, Any]:
    extra = {} if operation is None else {"config_operation": operation}
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": key, "value": value, **extra} for key, value in configs],
    }


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> dict[str, Any]:
    named = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": partitions, "replication_factor": replicas, "configs": named}


ACL = {"resource_type": 2, "principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
ANY_ACL = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
ANY_ACL |= {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
METADATA_LOG = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
SECRET = {"salt": b"salt", "salted_password": b"p" * 32}

#: API, version, values; in this order.
REQUESTS: list[tuple[str, int, dict[str, Any]]] = [
    ("CreateTopics", 7, {"topics": [
        topic("t", 3), topic("a/b"), topic("r", 1, 3), topic("c", 1, 1, retention_ms="x"),
    ]}),
    ("CreateTopics", 7, {"topics": [topic("t"), topic("d"), topic("d"), topic("__cluster_metadata")]}),
    ("CreateTopics", 4, {"topics": [topic("v", -1, -1)], "validate_only": True}),
    ("CreateTopics", 2, {"topics": [topic("late")], "timeout_ms": 0}),
    ("CreatePartitions", 3, {"topics": [{"name": "t", "count": 4}, {"name": "nope", "count": 2}]}),
    (INCREMENTAL, 1, {"resources": [
        resource(TOPIC, "t", ("retention.ms", "86400000")), resource(TOPIC, "nope", ("retention.ms", "1")),
        resource(TOPIC, "d", ("retention.ms", None)), resource(BROKER, "2", ("log.retention.ms", "86400001")),
        resource(BROKER, "1", ("log.retention.ms", "1")), resource(BROKER, "x", ("log.retention.ms", "1")),
        resource(BROKER, "", ("log.retention.ms", "soon")), resource(77, "t"),
    ]}),
    (INCREMENTAL, 1, {"resources": [
        resource(LOGGER, "1", ("kafka", "DEBUG")), resource(LOGGER, "2", ("no.such.logger", "DEBUG")),
        resource(TOPIC, "t", ("a", "1"), ("a", "2")),
    ]}),
    (INCREMENTAL, 0, {"resources": [resource(TOPIC, "t", ("retention.ms", "5")), resource(TOPIC, "t")]}),
    (ALL, 2, {"resources": [
        resource(TOPIC, "t", ("flush.ms", "7"), operation=None), resource(TOPIC, "nope", operation=None),
        resource(BROKER, "3", ("log.retention.ms", "1"), operation=None),
        resource(BROKER, "2", ("log.retention.ms", "soon"), operation=None),
    ], "validate_only": True}),
    ("CreateAcls", 3, {"creations": [
        {**ACL, "resource_name": "t", "resource_pattern_type": 3},
        {**ACL, "resource_name": "", "resource_pattern_type": 3},
    ]}),
    ("DeleteAcls", 3, {"filters": [ANY_ACL]}),
    ("AlterClientQuotas", 1, {"entries": [
        {"entity": [{"entity_type": "user", "entity_name": "a"}], "ops": [{"key": "producer_byte_rate", "value": 1e6}]},
        {"entity": [{"entity_type": "user", "entity_name": "b"}], "ops": [{"key": "nonsense", "value": 1.0}]},
    ]}),
    ("AlterUserScramCredentials", 0, {"upsertions": [
        {"name": "a", "mechanism": 1, "iterations": 8192, **SECRET},
        {"name": "b", "mechanism": 1, "iterations": 1, **SECRET},
    ], "deletions": [{"name": "c", "mechanism": 2}]}),
    ("ElectLeaders", 2, {"topic_partitions": [
        {"topic": "t", "partitions": [0]}, {"topic": "nope", "partitions": [0]},
    ]}),
    ("AlterPartitionReassignments", 1, {"topics": [
        {"name": "t", "partitions": [
            {"partition_index": 0, "replicas": [9]}, {"partition_index": 1, "replicas": None},
        ]},
        {"name": "nope", "partitions": [{"partition_index": 0, "replicas": [2]}]},
    ]}),
    ("ListPartitionReassignments", 0, {"topics": None}),
    ("UpdateFeatures", 1, {
        "feature_updates": [{"feature": "share.version", "max_version_level": 99}], "validate_only": True,
    }),
    ("UpdateFeatures", 2, {"feature_updates": [{"feature": "nonsense", "max_version_level": 1}]}),
    ("DescribeQuorum", 2, {"topics": METADATA_LOG}),
    ("DescribeQuorum", 0, {"topics": [{"topic_name": "t", "partitions": [{"partition_index": 0}]}]}),
    ("CreateDelegationToken", 2, {"max_lifetime_ms": -1}),
    ("RenewDelegationToken", 2, {"hmac": b"h", "renew_period_ms": 1}),
    ("ExpireDelegationToken", 2, {"hmac": b"h", "expiry_time_period_ms": 1}),
    ("UnregisterBroker", 0, {"broker_id": 77}),
    ("DeleteTopics", 6, {"topics": [{"name": "d"}, {"name": "nope"}, {"name": None, "topic_id": b"n" * 16}]}),
    ("DeleteTopics", 3, {"topic_names": ["v"]}),
]  # fmt: skip


#: Requests of alice, who may create topics that begin with "a".
OF_ALICE: list[tuple[str, int, dict[str, Any]]] = [
    ("CreateTopics", 7, {"topics": [topic("alice"), topic("bob")]}),
    ("DeleteTopics", 6, {"topics": [{"name": "alice"}, {"name": "bob"}, {"name": "t"}]}),
    ("CreatePartitions", 3, {"topics": [{"name": "alice", "count": 4}]}),
    (INCREMENTAL, 1, {"resources": [
        resource(TOPIC, "alice", ("retention.ms", "86400000")), resource(BROKER, "2", ("log.retention.ms", "86400001")),
        resource(LOGGER, "2", ("kafka", "DEBUG")), resource(BROKER, "9", ("log.retention.ms", "1")),
    ]}),
    (ALL, 2, {"resources": [resource(TOPIC, "alice", operation=None)]}),
    ("CreateAcls", 3, {"creations": [{**ACL, "resource_name": "t", "resource_pattern_type": 3}]}),
    ("AlterClientQuotas", 1, {"entries": [
        {"entity": [{"entity_type": "user", "entity_name": "a"}], "ops": [{"key": "producer_byte_rate", "value": 1e6}]},
    ]}),
    ("AlterUserScramCredentials", 0, {"deletions": [{"name": "c", "mechanism": 2}]}),
    ("ElectLeaders", 2, {"topic_partitions": [{"topic": "alice", "partitions": [0]}]}),
    ("AlterPartitionReassignments", 1, {"topics": [
        {"name": "alice", "partitions": [{"partition_index": 0, "replicas": [2]}]},
    ]}),
    ("ListPartitionReassignments", 0, {"topics": None}),
    ("UpdateFeatures", 2, {"feature_updates": [{"feature": "nonsense", "max_version_level": 1}]}),
    ("DescribeQuorum", 2, {"topics": METADATA_LOG}),
    ("UnregisterBroker", 0, {"broker_id": 77}),
    ("CreateDelegationToken", 3, {"max_lifetime_ms": -1, "owner_principal_type": None, "owner_principal_name": None}),
    ("CreateDelegationToken", 3, {
        "owner_principal_type": "User", "owner_principal_name": "bob", "max_lifetime_ms": -1,
    }),
    ("CreateDelegationToken", 2, {
        "renewers": [{"principal_type": "Group", "principal_name": "g"}], "max_lifetime_ms": -1,
    }),
    ("RenewDelegationToken", 2, {"hmac": b"h", "renew_period_ms": 1}),
    ("ExpireDelegationToken", 2, {"hmac": b"h", "expiry_time_period_ms": 1}),
]  # fmt: skip
MAY_CREATE = {**ACL, "operation": 5, "principal": "User:alice", "host": "127.0.0.1", "resource_name": "a"}
OF_SEVERAL_VOTERS = {52, 53, 54, 80, 81, 82}
"""Errors that a controller does not return if it is the whole quorum."""


def answers(port: int) -> list[Any]:
    """Returns a broker's responses to all requests, and the results of two requests that create topics."""
    with Client(port, timeout=30) as client:

        def ask(name: str, version: int, **values: Any) -> Any:
            return client.ask(request_of(name, version, values), version)

        found: list[Any] = [comparable(ask(name, version, **values)) for name, version, values in REQUESTS]
        wanted = {"topics": [{"name": "auto"}], "allow_auto_topic_creation": True}
        found.append([each.error_code for each in ask("Metadata", 8, **wanted).topics])
        found.append(await_answer(lambda: len(ask("Metadata", 8, **wanted).topics[0].partitions) or None))
        found.append(await_answer(lambda: coordinator(ask("FindCoordinator", 3, key="g", key_type=0))))
    return found


def answers_to_alice(port: int, secured: int) -> list[Any]:
    """Returns a broker's responses to alice, who may create topics that begin with "a"."""
    with Client(port) as root:
        values = {"creations": [{**MAY_CREATE, "resource_pattern_type": 4}]}
        response: Any = root.ask(request_of("CreateAcls", 3, values), 3)
        assert [each.error_code for each in response.results] == [0]
    with Client(secured, timeout=30) as client:
        assert client.ask(request_of("SaslHandshake", 1, {"mechanism": "PLAIN"}), 1).error_code == 0  # type: ignore[attr-defined]
        login: Any = client.ask(request_of("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0alice"}), 2)
        assert login.error_code == 0
        return [comparable(client.ask(request_of(*each), each[1])) for each in OF_ALICE]  # type: ignore[arg-type]


def coordinator(response: Any) -> int | None:
    return response.node_id if response.error_code == 0 else None


def await_answer(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while (answer := ask()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


@contextlib.contextmanager
def pair(controllers: str, brokers: str, home: Path) -> Iterator[tuple[int, int, int]]:
    with (
        controller(controllers, home / "controller", PROPERTIES) as port,
        broker(brokers, home / "broker", port, PROPERTIES) as (clients, secured),
    ):
        yield port, clients, secured


@pytest.fixture(scope="module")
def expected(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Any], Any, Any]]:
    with pair("apache", "apache", tmp_path_factory.mktemp("apache")) as (controller_port, port, secured):
        yield answers(port), promised(controller_port), answers_to_alice(port, secured)


def promised(port: int) -> dict[int, tuple[int, int]]:
    """Returns the APIs that a listener advertises."""
    with Client(port) as client:
        response: Any = client.ask(request_of("ApiVersions", 0, {}), 0)
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize(("controllers", "brokers"), [("apache", "ours"), ("ours", "apache"), ("ours", "ours")])
def test_the_answers_are_those_of_two_nodes_of_apache_kafka(
    expected: tuple[list[Any], Any, Any], tmp_path: Path, controllers: str, brokers: str
) -> None:
    with pair(controllers, brokers, tmp_path) as (controller_port, port, secured):
        found = answers(port)
        of_alice = answers_to_alice(port, secured)
        apis, forwarded = promised(controller_port), promised(port)
    names = [*(f"{name} v{version}" for name, version, _ in REQUESTS), "auto", "auto's partitions", "coordinator"]
    assert dict(enumerate(zip(names, found, strict=True))) == dict(enumerate(zip(names, expected[0], strict=True)))
    names = [f"{name} v{version}" for name, version, _ in OF_ALICE]
    assert dict(enumerate(zip(names, of_alice, strict=True))) == dict(enumerate(zip(names, expected[2], strict=True)))
    if (controllers, brokers) == ("apache", "ours"):
        common = {key: versions for key, versions in forwarded.items() if key in FORWARDABLE - {64}}
        assert common == {key: apis[key] for key in common}
    if controllers == "ours":
        assert set(apis) | OF_SEVERAL_VOTERS == set(expected[1])
