"""The same share groups at Barnabas and at Apache Kafka, and the records of both in ``__consumer_offsets``."""

import itertools
import struct
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from barnabas.groups.java_hash import partition_of
from barnabas.records.batch import batches
from barnabas.records.record import records_of

from .play import Play, Step, look_up
from .scenarios.share_groups import (
    AT_ONCE,
    HEARD,
    alter,
    beat,
    delete,
    enter,
    forget,
    initialized,
    leave,
    settings,
    where,
)
from .steps import HELPERS, ask, create, fetch_body, flat
from .test_differential import ATTEMPTS

OFFSETS_TOPIC = "__consumer_offsets"
PARTITIONS = 50
"""Of that topic."""

GROUP_EPOCH, ASSIGNMENT_EPOCH = 11, 12
EPOCH = struct.Struct(">hi")
"""The first fields of both values: version, and epoch."""

numbers = itertools.count(1)


def grow(count: int) -> list[Step]:
    topic = {"Name": "~t", "Count": count, "Assignments": None}
    return [ask("CreatePartitions", v=3, quiet=True, Topics=[topic], TimeoutMs=10000, ValidateOnly=False), HEARD]


def drop() -> list[Step]:
    return [ask("DeleteTopics", v=5, quiet=True, TopicNames=["~t"], TimeoutMs=10000), HEARD]


def until_initialized(partition: int) -> Step:
    return where(every=True, v=0, quiet=True, until=(f"Groups.0.Topics.0.Partitions.{partition}.ErrorCode", 0))


CONVERSATIONS: dict[str, list[Any]] = {
    "members": [
        create("~t"),
        AT_ONCE,
        enter(),
        initialized(),
        beat(),
        beat(),
        enter(member="~n", RackId="a rack"),
        beat(),
        beat("~n", RackId="another"),
        beat(SubscribedTopicNames=["~t", "~nosuch"]),
        beat("~n"),
        leave(),
        beat("~n"),
        leave("~n"),
        delete(),
    ],
    "topics": [
        AT_ONCE,
        enter(),
        create("~t"),
        HEARD,
        beat(),
        initialized(),
        beat(),
        grow(3),
        beat(),
        until_initialized(2),
        beat(),
        drop(),
        beat(),
        leave(),
    ],
    "an assignment that has to wait": [
        create("~t"),
        settings(assignment_interval_ms="15000"),
        enter(),
        initialized(),
        beat(),
        beat(),
        enter(member="~n"),
        drop(),
        beat(),
    ],
    "offsets": [
        create("~t", 2),
        AT_ONCE,
        alter({0: 3}),
        alter({0: 5, 1: 0}),
        forget(),
        alter({1: 1}),
        enter(),
        until_initialized(1),
        beat(),
        leave(),
        alter({0: 0}),
        delete(),
    ],
}


def comparable(key: bytes, value: bytes | None, topic_id: bytes, hashes: list[int]) -> tuple[str, Any]:
    """Returns a record without what differs between brokers: the topic's id, its hash, and times."""
    (kind,) = struct.unpack_from(">h", key)
    own = key.replace(topic_id, b"<id>")
    if value is None:
        return own.decode("latin-1"), None
    if kind == ASSIGNMENT_EPOCH:  # a tag of 8 bytes with the time
        return own.decode("latin-1"), (EPOCH.unpack_from(value), value[EPOCH.size : -8], len(value))
    if kind == GROUP_EPOCH:
        found = EPOCH.unpack_from(value), struct.unpack_from(">q", value, EPOCH.size)[0], value[EPOCH.size + 8 :]
        if found[1] not in hashes:
            hashes.append(found[1])
        return own.decode("latin-1"), (found[0], f"hash {hashes.index(found[1])}", found[2])
    return own.decode("latin-1"), value.replace(topic_id, b"<id>").decode("latin-1")


def written(broker: Any, steps: Iterable[Any], prefix: str) -> list[tuple[str, Any]]:
    """Returns the records of the group, in order, after the requests."""
    group = f"{prefix}g"
    partition = partition_of(group, PARTITIONS)
    fetched = fetch_body(OFFSETS_TOPIC, 0, partition=partition, PartitionMaxBytes=1 << 24, MaxBytes=1 << 24)
    # On a busy machine Apache Kafka may have no leader for a moment.
    read = ask("Fetch", v=12, until=("Responses.0.Partitions.0.ErrorCode", 0), within=60, **fetched)
    play = Play(("127.0.0.1", broker.port), prefix, HELPERS)
    play.run([*flat(steps), read])
    data = look_up(play.transcript[-1][2], "Responses.0.Partitions.0.Records")
    topic_id = play.saved["$id ~t"]
    mark = struct.pack(">h", len(group)) + group.encode()
    hashes = [0]
    return [
        comparable(bytes(record.key), None if record.value is None else bytes(record.value), topic_id, hashes)
        for batch in batches(bytearray(data or b""))
        if not batch.is_control
        for record in records_of(batch)
        if record.key is not None and bytes(record.key)[2:].startswith(mark)
    ]


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_the_records_are_the_same(apache_kafka: Any, beside: Any, conversation: str) -> None:
    steps = CONVERSATIONS[conversation]
    for _ in range(ATTEMPTS):
        prefix = f"share-records-{next(numbers)}-"
        with ThreadPoolExecutor(2) as pool:
            fetched = pool.map(written, (apache_kafka, beside), (steps, steps), (prefix, prefix))
            theirs, ours = fetched
        if ours == theirs and len(theirs) > len(steps):
            return
    assert ours == theirs
    assert len(theirs) > len(steps)
