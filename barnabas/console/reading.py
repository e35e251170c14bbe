"""Reads the data of the pages from any Kafka cluster, with kafka-python.

Knows nothing of HTTP and HTML. All functions block: the application calls them in threads.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from barnabas.cluster.features import METADATA_VERSION, METADATA_VERSIONS
from barnabas.errors import InvalidTopicException, UnknownTopicOrPartition

_MISSING: Final = (UnknownTopicOrPartition.code, InvalidTopicException.code)
_OF_TOPIC: Final = ("DYNAMIC_TOPIC_CONFIG", "TOPIC_CONFIG")


class Client(Protocol):
    """The access to a cluster: ``barnabas.cli.client.Cluster`` implements it."""

    bootstrap_server: str

    def admin(self) -> AbstractContextManager[Any]:
        """Opens an admin client, and closes it at the end."""

    def settings(
        self, defaults: Mapping[str, Any], given: Mapping[str, str] | None = None, **own: Any
    ) -> dict[str, Any]:
        """Returns the keyword arguments of a client."""


class Missing(Exception):
    """What a page is about does not exist.

    :param hint: what to do
    """

    def __init__(self, text: str, hint: str = "Choose one that exists.") -> None:
        super().__init__(text)
        self.hint = hint


class Page(NamedTuple):
    """A page of a list: its items and its number."""

    items: list[Any]
    number: int  #: from 1
    pages: int
    total: int

    @classmethod
    def of(cls, items: list[Any], number: int, size: int) -> "Page":
        """Returns a page; numbers beyond the last one return the last one."""
        pages = max(1, -(-len(items) // size))
        number = min(max(number, 1), pages)
        return cls(items[(number - 1) * size : number * size], number, pages, len(items))


def overview(client: Client) -> dict[str, Any]:
    """Returns the cluster's id, controller, brokers and number of topics."""
    from barnabas.cli.brokers import described

    with client.admin() as admin:
        cluster = admin.describe_cluster()
        return {
            "id": cluster["cluster_id"],
            "controller": cluster["controller_id"],
            "brokers": sorted(cluster["brokers"], key=lambda each: int(each.get("broker_id", each.get("node_id", 0)))),
            "states": {each["id"]: {**each, "releases": _releases(each["features"])} for each in described(admin)},
            "health": _health(admin),
        }


def _releases(features: Mapping[str, tuple[int, int]]) -> str:
    """Returns the metadata versions that a broker supports, as releases of Kafka."""
    if METADATA_VERSION not in features:
        return "unknown"
    return " to ".join(str(METADATA_VERSIONS.get(each, each)) for each in features[METADATA_VERSION])


def _health(admin: Any) -> dict[str, int]:
    """Returns the numbers of topics, partitions, under-replicated partitions, and partitions without a leader."""
    found = [_summary(each) for each in admin.describe_topics()]
    sums = {name: sum(each[name] for each in found) for name in ("partitions", "under_replicated", "offline")}
    return {"topics": len(found), **sums}


def topics(client: Client, search: str, page: int, size: int) -> Page:
    """Returns the topics whose names contain a text."""
    with client.admin() as admin:
        described = {each["name"]: each for each in admin.describe_topics()}
        found = Page.of(sorted(name for name in described if search.lower() in name.lower()), page, size)
        sizes = Counter[str]()
        for (name, _), each in _sizes(admin, found.items).items():
            sizes[name] += each
    return found._replace(items=[{**_summary(described[name]), "size": sizes.get(name)} for name in found.items])


def _summary(topic: dict[str, Any]) -> dict[str, Any]:
    partitions = topic["partitions"]
    return {
        "name": topic["name"],
        "internal": topic["is_internal"],
        "partitions": len(partitions),
        "replicas": len(partitions[0]["replica_nodes"]) if partitions else 0,
        "under_replicated": sum(len(each["isr_nodes"]) < len(each["replica_nodes"]) for each in partitions),
        "offline": sum(each["leader_id"] < 0 for each in partitions),
    }


def topic(client: Client, name: str, page: int, size: int) -> dict[str, Any]:
    """Returns a topic's configs and one page of its partitions. :raises Missing: the topic does not exist"""
    from kafka.admin import ConfigResource

    with client.admin() as admin:
        described = existing(admin, name)
        sizes = _sizes(admin, [name])
        configs = admin.describe_configs([ConfigResource("TOPIC", name)], config_filter="all")["topic"][name]
    partitions = sorted(described["partitions"], key=lambda each: int(each["partition_index"]))
    return {
        **_summary(described),
        "page": Page.of(partitions, page, size),
        "sizes": {index: each for (_, index), each in sizes.items()},
        "size": sum(sizes.values()) if sizes else None,
        "configs": [
            {
                "name": config,
                "value": of["value"],
                "is_own": of["config_source"] in _OF_TOPIC,
                "read_only": of.get("read_only", False),
                "sensitive": of.get("is_sensitive", False),
            }
            for config, of in sorted(configs.items())
        ],
    }


def destroyed(client: Client, name: str) -> dict[str, Any]:
    """Returns what a deletion of the topic removes: partitions, records, bytes, and the groups that have read it.

    :raises Missing: the topic does not exist
    """
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    with client.admin() as admin:
        found = _summary(existing(admin, name))
        where = [TopicPartition(name, index) for index in range(found["partitions"])]
        ends = admin.list_partition_offsets(dict.fromkeys(where, OffsetSpec.LATEST))
        beginnings = admin.list_partition_offsets(dict.fromkeys(where, OffsetSpec.EARLIEST))
        sizes = _sizes(admin, [name])
    records = sum(max(0, ends[each].offset - beginnings[each].offset) for each in where)
    return {**found, "records": records, "size": sum(sizes.values()) if sizes else None}


def _sizes(admin: Any, names: list[str]) -> dict[tuple[str, int], int]:
    """Returns the size of each partition's largest replica in bytes; empty if the broker does not return it."""
    from kafka.errors import KafkaError

    sizes: dict[tuple[str, int], int] = {}
    try:
        for broker in admin.describe_log_dirs(names) if names else ():
            for directory in broker.get("log_dirs", broker.get("results", ())):
                for topic in directory["topics"]:
                    for each in topic["partitions"]:
                        at = topic.get("name", topic.get("topic")), each["partition_index"]
                        sizes[at] = max(sizes.get(at, 0), each.get("partition_size", each.get("size", 0)))
    except KafkaError:
        return {}
    return sizes


def existing(admin: Any, name: str) -> dict[str, Any]:
    """Returns the description of a topic by an admin client.

    :raises Missing: the topic does not exist
    :raises click.ClickException: the broker responds with an error
    """
    from barnabas.cli.client import check_code

    described: dict[str, Any] = admin.describe_topics([name])[0]  # does not create the topic
    if described["error_code"] in _MISSING:
        raise Missing(f"There is no topic {name}.")
    check_code(described["error_code"])
    return described
