"""The mirror's admin requests: topics, partitions, configs and groups.

Each request is retried until it succeeds, or until ``default.api.timeout.ms`` has passed. Knows nothing of what is
mirrored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListGroupsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from barnabas.errors import KafkaError, TopicAlreadyExists, UnknownTopicOrPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.jobs.mirroring.configs import Changes

TOPIC_RESOURCE = 2
TOPICS_OWN = 1  # the config source of configs that are set on the topic itself
SET, DELETE = 0, 1
TOPICS_AT_ONCE = 500


class NewTopic(NamedTuple):
    """A topic to create. A replication factor of -1 means the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class Group(NamedTuple):
    """A listed group. State and kind are empty if the broker is too old to return them (KIP-518, KIP-848)."""

    name: str
    state: str
    protocol: str
    kind: str

    @property
    def has_members(self) -> bool:
        """Whether the group is known to have members. If the state is unknown, the coordinator decides."""
        return self.state not in ("Empty", "Dead", "")


def cluster_id(cluster: Cluster) -> str | None:
    """Returns the cluster's id, or None if the brokers return none."""
    found: str | None = cluster.run(cluster.retrying, lambda: cluster.send_to_any(_no_topics())).cluster_id
    return found


def create_topic(cluster: Cluster, topic: NewTopic) -> bool:
    """Creates a topic; returns False if it exists already, which leaves it unchanged."""
    wanted = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            wanted(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                assignments=[],
                configs=[wanted.CreatableTopicConfig(name=key, value=value) for key, value in topic.configs.items()],
            )
        ],
        timeout_ms=30_000,
        validate_only=False,
    )

    async def attempt() -> bool:
        try:
            _check((await _ask_controller(cluster, request)).topics, "cannot make topic {}", "name")
        except TopicAlreadyExists:
            return False
        return True

    made: bool = cluster.run(cluster.retrying, attempt)
    return made


def create_partitions(cluster: Cluster, topic: str, count: int) -> None:
    """Increases the number of a topic's partitions to `count`."""
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.CreatePartitionsTopic(name=topic, count=count, assignments=None)],
        timeout_ms=30_000,
        validate_only=False,
    )

    async def attempt() -> None:
        _check((await _ask_controller(cluster, request)).results, f"cannot give topic {{}} {count} partitions", "name")

    cluster.run(cluster.retrying, attempt)


def topic_configs(cluster: Cluster, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Returns the configs that are set on each topic itself, without topics that do not exist."""
    wanted, found = sorted(set(topics)), {}
    for first in range(0, len(wanted), TOPICS_AT_ONCE):
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
                )
                for name in wanted[first : first + TOPICS_AT_ONCE]
            ],
            include_synonyms=False,
            include_documentation=False,
        )

        async def attempt(request: Any = request) -> Any:
            response = await cluster.send_to_any(request)
            there = [each for each in response.results if each.error_code != UnknownTopicOrPartition.code]
            _check(there, "cannot see the configs of topic {}", "resource_name")
            return there

        for each in cluster.run(cluster.retrying, attempt):
            found[each.resource_name] = {
                config.name: config.value or ""
                for config in each.configs
                if config.config_source == TOPICS_OWN and not config.is_sensitive
            }
    return found


def alter_configs(cluster: Cluster, topics: Mapping[str, Changes]) -> None:
    """Changes configs of topics (KIP-339).

    :raises KafkaError: the cluster rejects a change; the message names the topic and the reason.
    """
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=TOPIC_RESOURCE,
                resource_name=topic,
                configs=[
                    *(
                        resource.AlterableConfig(name=name, config_operation=SET, value=value)
                        for name, value in wanted.set.items()
                    ),
                    *(
                        resource.AlterableConfig(name=name, config_operation=DELETE, value=None)
                        for name in wanted.delete
                    ),
                ],
            )
            for topic, wanted in topics.items()
        ],
        validate_only=False,
    )

    async def attempt() -> None:
        answers = (await _ask_controller(cluster, request)).responses
        _check(answers, "cannot change the configs of topic {}", "resource_name")

    cluster.run(cluster.retrying, attempt)


def groups(cluster: Cluster) -> list[Group]:
    """Returns all groups of a cluster, as its brokers list them."""

    async def attempt() -> list[Group]:
        metadata = await cluster.send_to_any(_no_topics())
        found = []
        for broker in metadata.brokers:
            response = await cluster.send(
                broker.node_id, ListGroupsRequest(states_filter=[], types_filter=[], min_version=0)
            )
            if response.error_code:
                raise KafkaError.by_code[response.error_code](f"cannot list the groups of broker {broker.node_id}")
            found += [
                Group(
                    each.group_id,
                    getattr(each, "group_state", "") or "",
                    each.protocol_type,
                    getattr(each, "group_type", "") or "",
                )
                for each in response.groups
            ]
        return found

    listed: list[Group] = cluster.run(cluster.retrying, attempt)
    return listed


async def _ask_controller(cluster: Cluster, request: Any) -> Any:
    metadata = await cluster.send_to_any(_no_topics())
    return await cluster.send(metadata.controller_id, request)


def _no_topics() -> Any:
    return MetadataRequest(
        topics=[],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _check(answers: Sequence[Any], what: str, name: str) -> None:
    for answer in answers:
        if answer.error_code:
            error = KafkaError.by_code.get(answer.error_code, KafkaError.by_code[-1])
            raise error(f"{what.format(getattr(answer, name))}: {answer.error_message or error()}")
