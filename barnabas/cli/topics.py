"""``barnabas topics``, with the options of kafka-topics.

Knows nothing of the broker's internals; it uses an admin client.
"""

import contextlib
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from barnabas.cli.client import Cluster, cluster_options, pairs, results_of
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.reassignments import Ongoing, Partition, ongoing_reassignments
from barnabas.cli.requests import send_to_any
from barnabas.cluster.topic_names import INTERNAL
from barnabas.uuids import uuid_text
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest

MIN_ISR = "min.insync.replicas"
DEFAULT = "DEFAULT_CONFIG"
_NOT_OWN = ("DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG", DEFAULT)
_CREATED = ("name", "topic_id", "num_partitions", "replication_factor")


@click.command()
@click.option("--create", "action", flag_value="create", help="Create a topic.")
@click.option("--list", "action", flag_value="list", help="List the names of topics.")
@click.option(
    "--describe", "action", flag_value="describe", help="Describe the partitions, replicas and configs of topics."
)
@click.option("--alter", "action", flag_value="alter", help="Add partitions to a topic.")
@click.option("--delete", "action", flag_value="delete", help="Delete a topic.")
@click.option("--topic", help="The topic; except with --create, it may be a regular expression.")
@click.option("--topic-id", metavar="ID", help="With --describe: the topic by its id.")
@click.option("--partitions", type=click.IntRange(1), help="The number of partitions.")
@click.option("--replication-factor", type=click.IntRange(1), help="The number of replicas of each partition.")
@click.option(
    "--replica-assignment",
    help="The brokers of each partition: 0:1,1:2 puts partition 0 on 0 and 1, partition 1 on 1 and 2.",
)
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="A config of the new topic.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if the topic exists.")
@click.option("--if-exists", is_flag=True, help="Do nothing if the topic does not exist.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option(
    "--under-replicated-partitions", is_flag=True, help="Only partitions with fewer in-sync replicas than replicas."
)
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a live leader.")
@click.option(
    "--under-min-isr-partitions", is_flag=True, help="Only partitions with fewer in-sync replicas than configured."
)
@click.option(
    "--at-min-isr-partitions", is_flag=True, help="Only partitions with as many in-sync replicas as configured."
)
@click.option(
    "--topics-with-overrides", is_flag=True, help="Only topics with configs of their own, without partitions."
)
@json_option
@cluster_options
def topics(cluster: Cluster, action: str | None, topic: str | None, **given: Any) -> None:
    """Create, list, describe, alter and delete topics.

    \b
    barnabas topics --create --topic orders --partitions 3 --config retention.ms=60000
    barnabas topics --describe --topic orders
    barnabas topics --under-replicated-partitions
    """
    if action is None and any(given[name] for name in _FILTERS):
        action = "describe"
    if action is None:
        raise click.UsageError("One of --create, --list, --describe, --alter and --delete must be given")
    if topic is None and action not in ("list", "describe"):
        raise click.UsageError(f"--{action} needs --topic")
    with cluster.admin() as admin:
        _ACTIONS[action](admin, topic, **given)


def _create(admin: Any, topic: str, **given: Any) -> None:
    wanted: dict[str, Any] = {"configs": pairs(given["configs"], "--config")}
    if given["replica_assignment"]:
        if given["partitions"] or given["replication_factor"]:
            raise click.UsageError("--replica-assignment cannot be combined with --partitions or --replication-factor")
        wanted["assignments"] = dict(enumerate(_assignment(given["replica_assignment"])))
    else:
        wanted["num_partitions"] = given["partitions"] or -1
        wanted["replication_factor"] = given["replication_factor"] or -1
    if given["if_not_exists"] and topic in admin.list_topics():
        return
    results = results_of(admin.create_topics({topic: wanted}, raise_errors=False))
    admin.wait_for_topics([topic])
    if given["as_json"]:
        show_json(
            [{name: each[name] for name in _CREATED} | {"topic_id": _id_text(each["topic_id"])} for each in results]
        )
    else:
        click.echo(f"Created topic {topic}")


def _list(admin: Any, topic: str | None, **given: Any) -> None:
    names = sorted(_matching(admin.list_topics(), topic))
    if given["exclude_internal"]:
        names = [name for name in names if name not in INTERNAL]
    if given["as_json"]:
        show_json(names)
    else:
        for name in names:
            click.echo(name)


def _describe(admin: Any, topic: str | None, **given: Any) -> None:
    names = _existing(admin, topic, if_exists=given["if_exists"]) if topic else admin.list_topics()
    described = [
        _described(each)
        for each in sorted(admin.describe_topics(names) if names else [], key=lambda each: str(each["name"]))
        if not (given["exclude_internal"] and each["is_internal"])
    ]
    if given["topic_id"] is not None:
        described = [each for each in described if each["topic_id"] == given["topic_id"]]
        if not described and not given["if_exists"]:
            raise click.ClickException(f"There is no topic with the id {given['topic_id']}")
    min_isr = _add_configs(admin, described)
    filters = [name for name in _FILTERS if given[name]]
    if filters or given["as_json"]:
        _add_reassignments(admin, described)
    if given["as_json"]:
        _add_eligible(admin, described)
    if filters:
        for each in described:
            each["partitions"] = [
                partition
                for partition in each["partitions"]
                if any(_FILTERS[name](partition, min_isr[each["topic"]]) for name in filters)
            ]
    if given["topics_with_overrides"]:
        described = [each | {"partitions": []} for each in described if each["configs"]]
    if given["as_json"]:
        show_json(described)
        return
    for each in described:
        if filters and not each["partitions"]:
            continue
        configs = ",".join(f"{name}={value}" for name, value in each["configs"].items()) or "none of its own"
        click.echo(
            f"Topic {each['topic']}  id {each['topic_id']}  partitions {each['partition_count']}  "
            f"replication factor {each['replication_factor']}  configs: {configs}"
        )
        if not given["topics_with_overrides"]:
            show_table(each["partitions"], ["partition", "leader", "replicas", "isr", "offline"])
        click.echo()


def _id_text(topic_id: str | None) -> str:
    """Returns a topic id as Kafka's tools print it; the client has it in hexadecimal."""
    return "-" if topic_id is None else uuid_text(UUID(topic_id).bytes)


def _described(topic: dict[str, Any]) -> dict[str, Any]:
    partitions = sorted(topic["partitions"], key=lambda partition: int(partition["partition_index"]))
    return {
        "topic": topic["name"],
        "topic_id": _id_text(topic.get("topic_id")),
        "internal": topic["is_internal"],
        "partition_count": len(partitions),
        "replication_factor": len(partitions[0]["replica_nodes"]) if partitions else 0,
        "configs": {},
        "partitions": [
            {
                "partition": partition["partition_index"],
                "leader": partition["leader_id"] if partition["leader_id"] >= 0 else None,
                "replicas": list(partition["replica_nodes"]),
                "isr": list(partition["isr_nodes"]),
                "offline": list(partition.get("offline_replicas") or ()),
            }
            for partition in partitions
        ],
    }


def _add_configs(admin: Any, described: list[dict[str, Any]]) -> dict[str, int]:
    """Adds the configs set on each topic, and those set for it at any level; returns the ``min.insync.replicas`` of
    each.
    """
    from kafka.admin import ConfigResource

    if not described:
        return {}
    resources = [ConfigResource("TOPIC", each["topic"]) for each in described]
    found = admin.describe_configs(resources, config_filter="all").get("topic", {})
    for each in described:
        configs = found.get(each["topic"], {})
        own = {name for name, of_topic in configs.items() if of_topic["config_source"] not in _NOT_OWN}
        each["configs"] = {name: configs[name]["value"] for name in sorted(own)}
        each["set_configs"] = {
            name: of_topic["value"] for name, of_topic in configs.items() if of_topic["config_source"] != DEFAULT
        }
    return {name: int(configs[MIN_ISR]["value"]) for name, configs in found.items() if MIN_ISR in configs}


def _add_reassignments(admin: Any, described: list[dict[str, Any]]) -> None:
    """Adds the adding and removing replicas of each partition that is being reassigned.

    Without the right to list reassignments, or on a broker without that API, there are none, as in Kafka's
    ``TopicService``.
    """
    from kafka.errors import IncompatibleBrokerVersion

    ongoing: dict[Partition, Ongoing] = {}
    with contextlib.suppress(click.ClickException, IncompatibleBrokerVersion):
        ongoing = ongoing_reassignments(admin)
    for topic in described:
        for partition in topic["partitions"]:
            found = ongoing.get((topic["topic"], partition["partition"]))
            partition["adding"] = found.adding if found else []
            partition["removing"] = found.removing if found else []


def _add_eligible(admin: Any, described: list[dict[str, Any]]) -> None:
    """Adds the eligible leader replicas (KIP-966) of each partition; None on a broker that does not know them."""
    from kafka.errors import IncompatibleBrokerVersion

    Topic = DescribeTopicPartitionsRequest.TopicRequest
    wanted = [Topic(name=each["topic"]) for each in described]
    found: dict[Partition, Any] = {}
    cursor: Any = None
    with contextlib.suppress(IncompatibleBrokerVersion):
        while wanted:
            response = send_to_any(admin, DescribeTopicPartitionsRequest(topics=wanted, cursor=cursor))
            found |= {
                (topic.name, each.partition_index): each for topic in response.topics for each in topic.partitions
            }
            if response.next_cursor is None:
                break
            after = response.next_cursor
            cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=after.topic_name, partition_index=after.partition_index
            )
    for topic in described:
        for partition in topic["partitions"]:
            each = found.get((topic["topic"], partition["partition"]))
            partition["elr"] = each and each.eligible_leader_replicas
            partition["last_known_elr"] = each and each.last_known_elr


def _alter(admin: Any, topic: str, **given: Any) -> None:
    if not given["partitions"]:
        raise click.UsageError("--alter needs --partitions; configs are altered by barnabas configs")
    wanted = given["partitions"]
    if given["replica_assignment"]:
        wanted = {"count": wanted, "assignments": _assignment(given["replica_assignment"])}
    for name in _existing(admin, topic, if_exists=given["if_exists"]):
        results_of(admin.create_partitions({name: wanted}, raise_errors=False))
        if not given["as_json"]:
            click.echo(f"Topic {name} has {given['partitions']} partitions")


def _delete(admin: Any, topic: str, **given: Any) -> None:
    names = _existing(admin, topic, if_exists=given["if_exists"])
    if names:
        results_of(admin.delete_topics(names, raise_errors=False))
    if given["as_json"]:
        show_json(names)
    else:
        for name in names:
            click.echo(f"Deleted topic {name}")


def _existing(admin: Any, topic: str, *, if_exists: bool) -> list[str]:
    names = sorted(_matching(admin.list_topics(), topic))
    if not names and not if_exists:
        raise click.ClickException(f"There is no topic {topic}")
    return names


def _matching(names: list[str], pattern: str | None) -> list[str]:
    if pattern is None or pattern in names:
        return names if pattern is None else [pattern]
    try:
        matches = re.compile(pattern.replace(",", "|")).fullmatch
    except re.error as error:
        raise click.UsageError(f"--topic is {pattern!r}, which is no name and no regular expression: {error}") from None
    return [name for name in names if matches(name)]


def _assignment(text: str) -> list[list[int]]:
    try:
        return [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--replica-assignment is {text!r}, but must be like 0:1,1:2") from None


_ACTIONS: dict[str, Callable[..., None]] = {
    "create": _create,
    "list": _list,
    "describe": _describe,
    "alter": _alter,
    "delete": _delete,
}

#: Kafka's ``PartitionDescription``: each option with its rule for a partition and the minimum ISR. Replicas that are
#: being added are not missing in the ISR yet.
_FILTERS: dict[str, Callable[[dict[str, Any], int], bool]] = {
    "under_replicated_partitions": lambda partition, _: (
        len(partition["isr"]) < len(partition["replicas"]) - len(partition["adding"])
    ),
    "unavailable_partitions": lambda partition, _: (
        partition["leader"] is None or partition["leader"] in partition["offline"]
    ),
    "under_min_isr_partitions": lambda partition, min_isr: len(partition["isr"]) < min_isr,
    "at_min_isr_partitions": lambda partition, min_isr: len(partition["isr"]) == min_isr,
}
