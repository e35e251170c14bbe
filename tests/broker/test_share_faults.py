"""Each change of a file fails once while members share a partition; the broker starts again.

Accepted records with a response are not delivered again; all others are. If records wait for the disk, this also holds
after a power cut.
"""

import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.testing.faults import FaultyFiles
from tests.api_handlers.share_node import ACCEPT, RELEASE, SHARE_STATE, ShareNode, acquired
from tests.broker.opening import opened
from tests.submitting import create_topic

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "1",
    **SHARE_STATE,
}


class Results:
    """The acknowledged results: the number of produced records, and the offsets of accepted ones."""

    def __init__(self):
        self.produced = 0
        self.done = set()


def on(files, properties):
    clock = ManualClock()
    return ShareNode.on(opened(BrokerConfig.from_properties(PROPERTIES | properties), files, clock), clock)


def story(files, outcomes, properties):
    node = on(files, properties)
    create_topic(node.broker, "t", 1, {})
    node.initialize("g", partitions=(0,))
    for size in (3, 4, 2):
        node.produce(size)
        if not node.broker.partition("t", 0).log.is_offline:
            outcomes.produced += size
    given = acquired(node.fetch(0, 0)).get(0)
    assert given, "the partition cannot be read any more"
    for epoch, (first, last, kind) in enumerate([(0, 1, ACCEPT), (4, 4, RELEASE), (5, 8, ACCEPT)], start=1):
        assert given[0][0] <= first and last <= given[-1][1]
        if node.acknowledge(epoch, (0, first, last, [kind])) == {0: 0} and kind == ACCEPT:
            outcomes.done.update(range(first, last + 1))
    node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_what_was_accepted_does_not_come_again_whatever_fails(flushes):
    properties = {"log.flush.interval.messages": "1"} if flushes else {}
    for n in itertools.count(1):
        files, results = FaultyFiles(n, lasting="for ever", torn=Random(n)), Results()
        try:
            story(files, results, properties)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError, AssertionError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 50
            assert results.done == {0, 1, 5, 6, 7, 8}
            return
        if results.produced:
            again = on(files.survivor(power_cut=flushes), properties)
            given = acquired(again.fetch(0, 0, max_wait_ms=0)).get(0, [])
            offsets = {offset for first, last, _ in given for offset in range(first, last + 1)}
            where = f"failure at operation {n}, {files.changes[n - 1]}"
            assert not offsets & results.done, where
            # An acceptance without a response may have been written.
            assert offsets | results.done >= {2, 3, 4} & set(range(results.produced)), where
