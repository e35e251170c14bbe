"""What the pages show, asked of any Kafka by kafka-python.

Knows nothing of HTTP and HTML. Every function blocks: the application calls them in threads.
"""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

POLL_MS: Final = 250
READ_S: Final = 5
"""How long a page waits for records that the broker does not deliver: offsets may be compacted away."""

SHOWN_CHARACTERS: Final = 2_000
"""How much of a key or value a page shows."""

_OF_TOPIC: Final = ("DYNAMIC_TOPIC_CONFIG", "TOPIC_CONFIG")


class Client(Protocol):
    """How a cluster is reached: ``barnabas.cli.client.Cluster`` is one."""

    bootstrap_server: str

    def admin(self) -> AbstractContextManager[Any]:
        """Opens an admin client, and closes it at the end."""

    def settings(
        self, defaults: Mapping[str, Any], given: Mapping[str, str] | None = None, **own: Any
    ) -> dict[str, Any]:
        """Returns the keyword arguments of a client."""


class Missing(Exception):
    """There is no such topic or partition."""


class Page(NamedTuple):
    """Some of many: the items of one page, and where it stands."""

    items: list[Any]
    number: int  #: from 1
    pages: int
    total: int

    @classmethod
    def of(cls, items: list[Any], number: int, size: int) -> "Page":
        """Returns a page; a number beyond the last is the last."""
        pages = max(1, -(-len(items) // size))
        number = min(max(number, 1), pages)
        return cls(items[(number - 1) * size : number * size], number, pages, len(items))


class Batch(NamedTuple):
    """Records of one partition from an offset on."""

    records: list[dict[str, Any]]
    start: int  #: the offset that was asked for, within the log
    beginning: int
    end: int


def overview(client: Client) -> dict[str, Any]:
    """Returns the cluster's id, controller, brokers and number of topics."""
    with client.admin() as admin:
        cluster = admin.describe_cluster()
        return {
            "id": cluster["cluster_id"],
            "controller": cluster["controller_id"],
            "brokers": sorted(cluster["brokers"], key=lambda each: int(each.get("broker_id", each.get("node_id", 0)))),
            "topics": len(admin.list_topics()),
        }


def topics(client: Client, search: str, page: int, size: int) -> Page:
    """Returns the topics whose name contains a text. Only those of the page are described."""
    with client.admin() as admin:
        names = sorted(name for name in admin.list_topics() if search.lower() in name.lower())
        found = Page.of(names, page, size)
        described = {each["name"]: each for each in admin.describe_topics(found.items)} if found.items else {}
    return found._replace(items=[_summary(described[name]) for name in found.items if name in described])


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
    """Returns a topic's partitions, of one page, and its configs. :raises Missing: there is no such topic"""
    from kafka.admin import ConfigResource

    with client.admin() as admin:
        if name not in admin.list_topics():
            raise Missing(f"There is no topic {name}.")
        described = admin.describe_topics([name])[0]
        configs = admin.describe_configs([ConfigResource("TOPIC", name)], config_filter="all")["topic"][name]
    partitions = sorted(described["partitions"], key=lambda each: int(each["partition_index"]))
    return {
        **_summary(described),
        "page": Page.of(partitions, page, size),
        "configs": [
            {"name": config, "value": of["value"], "is_own": of["config_source"] in _OF_TOPIC}
            for config, of in sorted(configs.items())
        ],
    }


def records(client: Client, name: str, partition: int, offset: int | None, limit: int) -> Batch:
    """Returns up to ``limit`` records of a partition.

    :param offset: where they begin; None is so that the last ones are read
    :raises Missing: there is no such topic or partition
    """
    from kafka import TopicPartition

    where = TopicPartition(name, partition)
    with _consumer(client) as consumer:
        if partition not in (consumer.partitions_for_topic(name) or ()):
            raise Missing(f"There is no partition {partition} of a topic {name}.")
        beginning = consumer.beginning_offsets([where])[where]
        end = consumer.end_offsets([where])[where]
        start = min(max(end - limit if offset is None else offset, beginning), end)
        consumer.assign([where])
        consumer.seek(where, start)
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + READ_S
        while len(found) < limit and consumer.position(where) < end and time.monotonic() < deadline:
            for polled in consumer.poll(timeout_ms=POLL_MS, max_records=limit - len(found)).values():
                found.extend(_record(each) for each in polled)
        return Batch(found, start, beginning, end)


@contextlib.contextmanager
def _consumer(client: Client) -> Iterator[Any]:
    from kafka import KafkaConsumer

    own: dict[str, Any] = {"group_id": None, "enable_auto_commit": False, "allow_auto_create_topics": False}
    consumer = KafkaConsumer(**client.settings(KafkaConsumer.DEFAULT_CONFIG, **own))
    try:
        yield consumer
    finally:
        consumer.close()


def _record(record: Any) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": decoded(record.key),
        "value": decoded(record.value),
        "headers": [(name, decoded(value)) for name, value in record.headers],
    }


def decoded(data: bytes | None) -> dict[str, Any]:
    """Returns bytes as a page shows them: JSON, text, or hex where they are no UTF-8; and whether that is all."""
    if data is None:
        return {"kind": "null", "text": "null", "is_cut": False}
    kind, text = "hex", ""
    try:
        text = data.decode("utf-8")
        kind = "text"
        if text[:1] in ("{", "["):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
            kind = "json"
    except (ValueError, RecursionError):
        text = text or data[:SHOWN_CHARACTERS].hex(" ")
    return {"kind": kind, "text": text[:SHOWN_CHARACTERS], "is_cut": len(text) > SHOWN_CHARACTERS}
