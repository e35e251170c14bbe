"""Reassignments of partitions: Kafka's JSON files, the requests, and the replication throttles.

Knows nothing of options and output. The rules of Apache Kafka's ``ReassignPartitionsCommand`` (KIP-73, KIP-455).
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from barnabas.cli.client import check_code, error_name
from barnabas.cli.requests import send_to_any, send_to_broker
from barnabas.errors import KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest as AlterRequest,
)
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as ConfigsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest

ANY = "any"
"""Stands for any log directory of a replica."""

VERSION = 1
"""The version of the JSON files."""

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
BROKER_THROTTLES = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
TOPIC_THROTTLES = (LEADER_REPLICAS, FOLLOWER_REPLICAS)

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1

Partition = tuple[str, int]
Replica = tuple[str, int, int]
"""Topic, partition and broker."""
Replicas = Mapping[Partition, Sequence[int]]


class Wanted(NamedTuple):
    """The contents of a file: the replicas of partitions, and the log directories of replicas."""

    partitions: dict[Partition, list[int]]
    log_dirs: dict[Replica, str]


class Ongoing(NamedTuple):
    """A partition that is being reassigned; its replicas include the added and the removed ones."""

    replicas: list[int]
    adding: list[int]
    removing: list[int]


class Move(NamedTuple):
    """The brokers that a partition is copied from, and those that it is copied to."""

    sources: set[int]
    destinations: set[int]


def name_of(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def names_of(partitions: Iterable[Partition]) -> str:
    return ",".join(map(name_of, sorted(partitions)))


# ------------------------------------------------------------------ files


def read_json(path: str, fields: str) -> list[dict[str, Any]]:
    """Returns the list in a file of version 1. :raises click.ClickException: the file is not one"""
    try:
        content = json.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise click.ClickException(str(error)) from None
    except ValueError:
        raise click.ClickException("The input string is not a valid JSON") from None
    if not isinstance(content, dict):
        raise click.ClickException("The input string is not a valid JSON")
    if content.get("version", VERSION) != VERSION:
        raise click.ClickException(f"Not supported version field value {content['version']}")
    found = content.get(fields)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise click.ClickException(f'{path} has no list "{fields}"')
    return found


def read_reassignment(path: str) -> Wanted:
    """Reads a file of ``--reassignment-json-file``. :raises click.ClickException: it contradicts itself"""
    wanted = Wanted({}, {})
    seen: list[Partition] = []
    for each in read_json(path, "partitions"):
        try:
            partition = str(each["topic"]), int(each["partition"])
            replicas = [int(broker) for broker in each["replicas"]]
            log_dirs = [str(directory) for directory in each.get("log_dirs", [ANY] * len(replicas))]
        except (KeyError, TypeError, ValueError):
            raise click.ClickException(f"{path} has a partition without topic, partition or replicas: {each}") from None
        if len(log_dirs) != len(replicas):
            raise click.ClickException(
                f"Size of replicas list {replicas} is different from size of log dirs list {log_dirs} for partition "
                f"{name_of(partition)}"
            )
        seen.append(partition)
        wanted.partitions[partition] = replicas
        for broker, directory in zip(replicas, log_dirs, strict=True):
            if directory != ANY:
                wanted.log_dirs[*partition, broker] = directory
    check_replicas(seen, wanted.partitions)
    return wanted


def check_replicas(seen: Sequence[Partition], wanted: Replicas) -> None:
    """:raises click.ClickException: a partition is listed twice, has a broker twice, or has no replicas"""
    if not seen:
        raise click.ClickException("Partition reassignment list cannot be empty")
    if not all(wanted.values()):
        raise click.ClickException("Partition replica list cannot be empty")
    twice = [partition for partition, count in Counter(seen).items() if count > 1]
    if twice:
        raise click.ClickException(f"Partition reassignment contains duplicate topic partitions: {names_of(twice)}")
    repeated = {
        partition: [str(broker) for broker, count in Counter(replicas).items() if count > 1]
        for partition, replicas in wanted.items()
    }
    duplicates = [
        f"{name_of(each)} contains multiple entries for {','.join(ids)}" for each, ids in repeated.items() if ids
    ]
    if duplicates:
        raise click.ClickException(
            f"Partition replica lists may not contain duplicate entries: {'. '.join(duplicates)}"
        )


def reassignment_json(replicas: Replicas, log_dirs: Mapping[Replica, str]) -> str:
    """Returns the content of a ``--reassignment-json-file``."""
    partitions = [
        {
            "topic": topic,
            "partition": index,
            "replicas": list(brokers),
            "log_dirs": [log_dirs.get((topic, index, broker), ANY) for broker in brokers],
        }
        for (topic, index), brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": VERSION, "partitions": partitions}, separators=(",", ":"))


# ------------------------------------------------------------------ requests


def ongoing_reassignments(admin: Any) -> dict[Partition, Ongoing]:
    response = send_to_any(admin, ListPartitionReassignmentsRequest(topics=None))
    check_code(response.error_code, response.error_message)
    return {
        (topic.name, each.partition_index): Ongoing(
            list(each.replicas), list(each.adding_replicas), list(each.removing_replicas)
        )
        for topic in response.topics
        for each in topic.partitions
    }


def alter_reassignments(
    admin: Any, wanted: Mapping[Partition, Sequence[int] | None], *, may_change_factor: bool = True
) -> dict[Partition, str]:
    """Starts reassignments; None cancels one. Returns the error messages of those that were refused."""
    Topic = AlterRequest.ReassignableTopic
    topics: dict[str, Any] = {}
    for (name, index), replicas in sorted(wanted.items()):
        topic = topics.setdefault(name, Topic(name=name, partitions=[]))
        chosen = None if replicas is None else list(replicas)
        topic.partitions.append(Topic.ReassignablePartition(partition_index=index, replicas=chosen))
    response = send_to_any(
        admin, AlterRequest(topics=list(topics.values()), allow_replication_factor_change=may_change_factor)
    )
    check_code(response.error_code, response.error_message)
    return {
        (topic.name, each.partition_index): each.error_message or error_text(each.error_code)
        for topic in response.responses
        for each in topic.partitions
        if each.error_code
    }


def error_text(code: int) -> str:
    kind = KafkaError.by_code.get(code)
    return (kind.__doc__ if kind is not None else None) or error_name(code) or ""


def replicas_of(admin: Any, topics: Iterable[str]) -> dict[Partition, list[int]]:
    """Returns the replicas of all partitions of these topics. :raises click.ClickException: there is no such topic"""
    found = {}
    for topic in admin.describe_topics(sorted(set(topics))):
        check_code(topic["error_code"], f"Topic {topic['name']} not found.")
        for each in topic["partitions"]:
            found[topic["name"], each["partition_index"]] = list(each["replica_nodes"])
    return found


def broker_racks(admin: Any) -> dict[int, str | None]:
    """Returns the live brokers, and the rack of each."""
    cluster = admin.describe_cluster()
    return {each["broker_id"]: each["rack"] for each in cluster["brokers"] if not each.get("is_fenced")}


class Directories(NamedTuple):
    """The current log directory of a replica, and the one to which it is being moved."""

    current: str | None
    future: str | None


def log_dirs_of(admin: Any, replicas: Iterable[Replica]) -> dict[Replica, Directories]:
    """Returns the log directories of replicas on live brokers."""
    wanted = set(replicas)
    live = broker_racks(admin)
    found: dict[Replica, Directories] = {}
    for broker in admin.describe_log_dirs(brokers=sorted({each[2] for each in wanted} & live.keys())):
        for directory in broker["log_dirs"]:
            for topic in directory["topics"]:
                for each in topic["partitions"]:
                    replica = topic.get("topic", topic.get("name")), each["partition_index"], broker["broker"]
                    if replica in wanted:
                        place = "future" if each["is_future_key"] else "current"
                        known = found.get(replica, Directories(None, None))
                        found[replica] = known._replace(**{place: directory["log_dir"]})
    return found


# ------------------------------------------------------------------ throttles


def moves_of(ongoing: Mapping[Partition, Ongoing], wanted: Replicas, current: Replicas) -> dict[Partition, Move]:
    """Returns the moves of partitions: those in progress, and the new ones."""
    moves = {
        partition: Move(set(each.replicas) - set(each.adding), set(each.adding)) for partition, each in ongoing.items()
    }
    for partition, replicas in wanted.items():
        sources = moves[partition].sources if partition in moves else set(current[partition])
        moves[partition] = Move(sources, set(replicas) - sources)
    return moves


def throttled_replicas(moves: Mapping[Partition, Move]) -> dict[str, dict[str, str]]:
    """Returns the values of the configs of each topic that list the throttled replicas."""
    configs: dict[str, dict[str, set[str]]] = {}
    for (topic, index), move in moves.items():
        lists = configs.setdefault(topic, {LEADER_REPLICAS: set(), FOLLOWER_REPLICAS: set()})
        lists[LEADER_REPLICAS] |= {f"{index}:{broker}" for broker in move.sources}
        lists[FOLLOWER_REPLICAS] |= {f"{index}:{broker}" for broker in move.destinations - move.sources}
    return {
        topic: {name: ",".join(sorted(values)) for name, values in lists.items()} for topic, lists in configs.items()
    }


def alter_topic_throttles(admin: Any, configs: Mapping[str, Mapping[str, str | None]]) -> None:
    """Sets the configs of topics; None deletes one."""
    if configs:
        resources = [resource(TOPIC, name, values) for name, values in sorted(configs.items())]
        check_configs(send_to_any(admin, ConfigsRequest(resources=resources, validate_only=False)))


def alter_broker_throttles(admin: Any, brokers: Iterable[int], configs: Mapping[str, str | None]) -> None:
    """Sets configs of each of these brokers, by a request to the broker itself; None deletes one."""
    for broker in sorted(brokers):
        request = ConfigsRequest(resources=[resource(BROKER, str(broker), configs)], validate_only=False)
        check_configs(send_to_broker(admin, broker, request))


def resource(kind: int, name: str, configs: Mapping[str, str | None]) -> Any:
    Resource = ConfigsRequest.AlterConfigsResource
    changes = [
        Resource.AlterableConfig(name=config, config_operation=DELETE if value is None else SET, value=value)
        for config, value in configs.items()
    ]
    return Resource(resource_type=kind, resource_name=name, configs=changes)


def check_configs(response: Any) -> None:
    """:raises click.ClickException: a config was refused"""
    for each in response.responses:
        check_code(each.error_code, each.error_message)
