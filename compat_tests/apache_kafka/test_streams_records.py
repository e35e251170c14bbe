"""The records of streams groups in ``__consumer_offsets``: both brokers write the same bytes for the same requests,
except for the hash of the topics, which depends on their ids, and the time of an assignment.
"""

import itertools
import struct
from typing import Any

import pytest

from barnabas.groups.java_hash import partition_of

from .play import Play
from .scenarios.streams import beat, enter, group_configs, internal, owning, subtopology, tasks
from .steps import HELPERS, ask, create, flat, ready

confluent_kafka = pytest.importorskip("confluent_kafka")

GROUP_KEY, TARGETS_KEY = 17, 20
"""Types of records: of a group, and of its target assignments."""

HASH = slice(6, 14)
"""The position of the hash in a group's record, after version and epoch."""

TIME = slice(-8, None)
"""The position of the time in a record of target assignments: last, as the only tagged field."""

numbers = itertools.count(1)

STEPS = [
    create("~t", 3),
    group_configs(num_standby_replicas="1"),
    enter(
        "~m",
        subtopology(
            "0",
            RepartitionSinkTopics=["~g-r"],
            StateChangelogTopics=[internal("~g-c", 0, 1, cleanup_policy="compact")],
        ),
        subtopology("1", [], RepartitionSourceTopics=[internal("~g-r", retention_ms="-1", cleanup_policy="delete")]),
        RackId="a rack",
        UserEndpoint={"Host": "h", "Port": 65535},
        ClientTags=[{"Key": "zone", "Value": "z"}, {"Key": "cluster", "Value": "c"}],
    ),
    ready("~g-r", 3),
    ready("~g-c", 3),
    beat("~m", until=("Status", []), quiet=True),
    enter(
        "~n",
        subtopology(
            "0",
            RepartitionSinkTopics=["~g-r"],
            StateChangelogTopics=[internal("~g-c", 0, 1, cleanup_policy="compact")],
        ),
        subtopology("1", [], RepartitionSourceTopics=[internal("~g-r", retention_ms="-1", cleanup_policy="delete")]),
    ),
    beat("~m", until=("Status", []), quiet=True),
    beat("~n"),
    beat("~m"),
    beat("~m", ActiveTasks=[*tasks(0, 1), *tasks(0, 1, of="1")], StandbyTasks=[], WarmupTasks=[]),
    beat("~n"),
    beat("~m", ActiveTasks=tasks(0), StandbyTasks=[], WarmupTasks=[]),
    beat("~n", **owning()),
    beat("~m"),
    beat("~n", -1),
    beat("~m", -1),
    ask("DeleteGroups", v=2, GroupsNames=["~g"]),
]


def records(broker: Any, group: str) -> list[tuple[bytes, bytes | None]]:
    """Returns all records of the group in ``__consumer_offsets``, without what differs between brokers."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reader",
            "enable.partition.eof": True,
            # Open transactions of other tests may precede our records.
            "isolation.level": "read_uncommitted",
        }
    )
    topic = consumer.list_topics("__consumer_offsets", 10).topics["__consumer_offsets"]
    place = confluent_kafka.TopicPartition("__consumer_offsets", partition_of(group, len(topic.partitions)), 0)
    consumer.assign([place])
    found: list[tuple[bytes, bytes | None]] = []
    while (message := consumer.poll(60)) is not None and message.error() is None:
        if group.encode() in message.key():
            found.append((message.key(), message.value()))
    assert message is not None and message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    consumer.close()
    return [(key, without_own(key, value)) for key, value in found]


def without_own(key: bytes, value: bytes | None) -> bytes | None:
    (kind,) = struct.unpack_from(">h", key)
    if value is None or kind not in (GROUP_KEY, TARGETS_KEY):
        return value
    blanked = bytearray(value)
    blanked[HASH if kind == GROUP_KEY else TIME] = bytes(8)
    return bytes(blanked)


def test_records_are_the_same(apache_kafka: Any, beside: Any) -> None:
    prefix = f"streams-records-{next(numbers)}-"
    written = []
    for broker in (apache_kafka, beside):
        Play(("127.0.0.1", broker.port), prefix, HELPERS).run(list(flat(STEPS)))
        written.append(records(broker, f"{prefix}g"))
    theirs, ours = written
    assert len(theirs) > 30
    assert ours == theirs
