"""``kafka-topics`` over ``barnabas topics``.

Knows nothing of the broker. Apache Kafka's ``TopicCommand``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.kafka_tools.options import (
    CONNECTION,
    FLAG,
    OWN,
    OWN_FLAG,
    VALUE,
    Given,
    UsageProblem,
    refuse,
    require,
    require_one,
)
from barnabas.cli.kafka_tools.tool import Failed, Tool, answer_of, call, connection

ACTIONS = ("list", "describe", "create", "alter", "delete")
FILTERS = ("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions", "at-min-isr-partitions")
ONE_ACTION = "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
COLLIDING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)

OPTIONS = {
    **CONNECTION,
    **dict.fromkeys(ACTIONS, FLAG),
    **dict.fromkeys(FILTERS, FLAG),
    **dict.fromkeys(("exclude-internal", "if-exists", "if-not-exists"), FLAG),
    "topics-with-overrides": OWN_FLAG,
    **dict.fromkeys(("config", "partitions", "replica-assignment", "replication-factor", "topic", "topic-id"), VALUE),
    "delete-config": OWN,
    "partition-size-limit-per-response": OWN,
}


def topics(arguments: Sequence[str]) -> int:
    """``kafka-topics``: creates, lists, describes, alters and deletes topics."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    action = require_one(given, ACTIONS, ONE_ACTION)
    _check(given, action)
    try:
        answer = answer_of(given, "topics")
    except Failed as error:
        message = error.message
        if message.startswith("There is no topic "):
            message = f"Topic '{message.removeprefix('There is no topic ')}' does not exist as expected"
        click.echo(f"Error while executing topic command : {message}")
        click.echo(error.java, err=True)
        return 1
    for line in _LINES[action](given, answer):
        click.echo(line)
    return 0


def _check(given: Given, action: str) -> None:
    """Checks options as ``TopicCommandOptions`` does. :raises UsageProblem: they cannot be combined"""
    connection(given)
    if action in ("create", "alter", "delete") and not (action == "delete" and "topic-id" in given):
        require(given, "topic")
    if action == "alter":
        require(given, "partitions")
    if action == "create":
        refuse(given, "replica-assignment", "partitions", "replication-factor")
    for option, allowed in _ALLOWED.items():
        if option in given and action not in allowed:
            raise UsageProblem(f'Option "[{option}]" can\'t be used with option "[{action}]"')


#: Options that only some actions have.
_ALLOWED = {
    "config": ("create",),
    "partitions": ("create", "alter"),
    "replica-assignment": ("create", "alter"),
    "replication-factor": ("create",),
    "if-not-exists": ("create",),
    "if-exists": ("alter", "delete", "describe"),
    "exclude-internal": ("list", "describe"),
    "topic-id": ("describe",),
    **dict.fromkeys((*FILTERS, "topics-with-overrides"), ("describe",)),
}


def _created(given: Given, answer: Any) -> Iterator[str]:
    name = given.one("topic")
    if set("._") & set(name):
        yield COLLIDING
    if answer is not None:
        yield f"Created topic {name}."


def _described(given: Given, answer: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    has_filter = any(name in given for name in FILTERS)
    overridden = "topics-with-overrides" in given
    for topic in answer:
        if overridden and not topic["set_configs"]:
            continue
        if not has_filter:
            configs = ",".join(f"{name}={value}" for name, value in topic["set_configs"].items())
            yield (
                f"Topic: {topic['topic']}\tTopicId: {topic['topic_id']}\tPartitionCount: {topic['partition_count']}\t"
                f"ReplicationFactor: {topic['replication_factor']}\tConfigs: {configs}"
            )
        for each in () if overridden else topic["partitions"]:
            leader = "none" if each["leader"] is None else each["leader"]
            moving = "".join(
                f"\t{what} Replicas: {_ids(each[key])}"
                for what, key in (("Adding", "adding"), ("Removing", "removing"))
                if each[key]
            )
            yield (
                f"\tTopic: {topic['topic']}\tPartition: {each['partition']}\tLeader: {leader}\tReplicas: "
                f"{_ids(each['replicas'])}\tIsr: {_ids(each['isr'])}{moving}\tElr: {_ids(each['elr'])}\t"
                f"LastKnownElr: {_ids(each['last_known_elr'])}"
            )


def _ids(brokers: Sequence[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))


def _nothing(given: Given, answer: Any) -> Iterator[str]:
    return iter(())


_LINES: dict[str, Callable[[Given, Any], Iterator[str]]] = {
    "create": _created,
    "list": lambda given, answer: iter(answer),
    "describe": _described,
    "alter": _nothing,
    "delete": _nothing,
}

TOOL = Tool("This tool helps to create, delete, describe, or change a topic.", OPTIONS, _run)
