"""An active share group, while the data directory goes from one broker to the other, and back.

Must not read files: delivered records and their delivery counts show the state of either broker.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType
from confluent_kafka.admin import NewTopic

from compat_tests.groups.members import Group

from .apache import ApacheKafka
from .hand_over import admin_of, apache_on, barnabas_on, complaints, running, wait
from .hand_over import write as produce

pytestmark = pytest.mark.xdist_group("hand_over")

GROUP, TOPIC, PARTITIONS, NEW = "workers", "jobs", 2, 30
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
    "group.share.max.delivery.count.limit": "25",
}
PATIENCE = 60.0
LATER, NEVER, DONE = AcknowledgeType.RELEASE, AcknowledgeType.REJECT, AcknowledgeType.ACCEPT

FINE = (r"[Ss]hare",)
"""Its harmless warnings: members that left, locks that timed out, a second creation of its topic."""

Place = tuple[int, int]
"""Partition and offset."""


def verdict(place: Place) -> AcknowledgeType:
    """Returns the acknowledgement of a record, except in the last round."""
    return (DONE, LATER, NEVER)[(place[0] + place[1]) % 3]


def work(bootstrap: str, expected: Mapping[Place, int], decide: Callable[[Place], AcknowledgeType]) -> dict[Place, int]:
    """Runs a member until all of these are delivered; returns the other records, and delivery counts."""
    group = Group(bootstrap, GROUP)
    group.configure(share_auto_offset_reset="earliest", share_delivery_count_limit="25")
    consumer = group.sharer()
    consumer.subscribe([TOPIC])
    found: dict[Place, int] = {}
    deadline = time.monotonic() + PATIENCE
    while not expected.keys() <= found.keys():
        assert time.monotonic() < deadline, sorted(expected.keys() - found.keys())
        for message in consumer.poll(timeout=0.5):
            assert message.error() is None, message.error()
            place = message.partition(), message.offset()
            found.setdefault(place, message.delivery_count())
            consumer.acknowledge(message, decide(place))
        printed = consumer.commit_sync(timeout=PATIENCE)
        assert not [error for error in printed.values() if error is not None], printed
    group.close()
    return found


def test_no_record_is_accepted_twice_or_lost(kafka_jars: Path, tmp_path: Path) -> None:
    """Barnabas is killed, Apache Kafka takes over, and Barnabas again."""
    makers: list[Any] = [barnabas_on, apache_on, barnabas_on]
    pending: dict[Place, int] = {}
    for turn in range(3):
        broker = makers[turn](tmp_path, SETTINGS)
        with running(broker, kill=turn == 0) as bootstrap:
            if turn == 0:
                admin = admin_of(bootstrap)
                wait(admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]))
            produce(bootstrap, TOPIC, NEW)
            new = {
                (index, turn * NEW // PARTITIONS + offset): 0
                for index in range(PARTITIONS)
                for offset in range(NEW // PARTITIONS)
            }
            expected = pending | new
            found = work(bootstrap, expected, verdict if turn < 2 else lambda place: DONE)
            assert found.keys() == expected.keys()
            for place, before in expected.items():
                assert (found[place] > before) if before else found[place] == 1, place
            pending = {place: found[place] for place in expected if verdict(place) is LATER}
        if isinstance(broker, ApacheKafka):
            assert complaints(broker.log, FINE) == []
