"""Each change of a file fails once while transactions commit offsets; the state is consistent after a restart.

A transaction with an acknowledged end has this outcome; one without a response has either outcome when its producer has
returned. If commits wait for the disk, this also holds after a power cut.
"""

import pytest

from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.transactions.messages import ProducerIdentity, TopicPartition
from tests.broker.failing import TransactionalNode, fail_each_change
from tests.stable_offsets import stable_offsets
from tests.submitting import create_topic, ready

PLAIN, IN_TRANSACTION = 0, 1


class Promised:
    """The possible offsets of the two partitions: one, or two while the outcome of a commit is unknown."""

    def __init__(self):
        self.offsets = {PLAIN: {-1}, IN_TRANSACTION: {-1}}


class Node(TransactionalNode):
    def prepare(self):
        create_topic(self.broker, "t", 2, {})
        self.broker.coordinators.groups.create_topic(ready)
        self.broker.coordinators.transactions.create_topic(ready)
        self.init()

    def commit(self, value):
        """Commits an offset outside of a transaction."""
        self.promised.offsets[PLAIN].add(value)
        results = []
        self._commit(PLAIN, value, results, None)
        if results == [None]:
            self.promised.offsets[PLAIN] = {value}

    def transaction(self, value, *, is_commit):
        if self.producer is None:
            return
        offsets = self.promised.offsets[IN_TRANSACTION]
        results = []
        place = TopicPartition(CONSUMER_OFFSETS, 0)

        def added(error):
            if error is None:
                self._commit(IN_TRANSACTION, value, results, self.producer)

        self.broker.transactions.add_partitions(ProducerIdentity("x", *self.producer), [place], added, client_version=2)
        if results != [None]:
            return
        if is_commit:
            offsets.add(value)
        if self.end(is_commit) and is_commit:
            self.promised.offsets[IN_TRANSACTION] = {value}

    def _commit(self, partition, value, outcomes, producer):
        offsets = [OffsetToCommit("t", partition, value)]
        self.broker.groups.commit_offsets(OffsetCommit("g", offsets, producer=producer), outcomes.extend)

    def check(self, where):
        """Checks the offsets when the producer has returned."""
        if self.broker.image.topics_by_name.keys() < {"t", CONSUMER_OFFSETS, "__transaction_state"}:
            return
        assert self.init() is not None, where
        found = self.broker.groups.fetch_offsets("g").get("t", {})
        assert not stable_offsets(self.broker.groups, "g")[1], where
        for partition, expected in self.promised.offsets.items():
            offset = found[partition].offset if partition in found else -1
            assert offset in expected, f"{where}: partition {partition} is at {offset}, not at one of {expected}"
            self.promised.offsets[partition] = {offset}


def story(files, promised, properties):
    node = Node(files, promised, **properties)
    node.prepare()
    for value in (1, 2, 3, 4):
        node.commit(value)
        node.transaction(value, is_commit=value != 2)
    node.broker.close()
    if not node.broker.metadata.log.is_offline:
        node = Node(files, promised, **properties)
        node.init()
        node.transaction(5, is_commit=True)
        node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_a_transaction_holds_together_whatever_fails(flushes):
    def whole(promised):
        assert promised.offsets == {PLAIN: {4}, IN_TRANSACTION: {5}}

    fail_each_change(Node, story, Promised, flushes=flushes, whole=whole, one_more=6)
