"""A broker with a transactional producer, and a scenario that is repeated with a failure at each change of a file.

Knows nothing of the scenario, nor of its invariants.
"""

import itertools
from random import Random

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.errors import ConcurrentTransactions, KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.offsets.pending import Producer
from barnabas.testing.faults import FaultyFiles
from barnabas.transactions.messages import InitProducer, ProducerIdentity
from tests.broker.opening import opened

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class TransactionalNode:
    """A broker on these files, with one producer of the second generation."""

    def __init__(self, files, promised, **properties):
        self.promised = promised
        self.clock = ManualClock()
        self.broker = opened(BrokerConfig.from_properties(PROPERTIES | properties), files, self.clock)
        self.producer = None

    def init(self):
        """Initializes the producer; None if the record cannot be written."""
        answers = []
        for _ in range(2):  # the earlier transaction is aborted first
            self.broker.transactions.init_producer_id(InitProducer("x", 60_000), answers.append)
            if answers and not isinstance(answers[-1].error, ConcurrentTransactions):
                break
        if answers and answers[-1].error is None:
            self.producer = Producer(answers[-1].producer_id, answers[-1].producer_epoch)
        return self.producer

    def end(self, is_commit):
        """Ends the transaction; returns whether the end was acknowledged, which continues in the next epoch."""
        answers = []
        self.broker.transactions.end(ProducerIdentity("x", *self.producer), is_commit, answers.append, client_version=2)
        if not answers or answers[0].error is not None:
            return False
        self.producer = Producer(answers[0].producer_id, answers[0].producer_epoch)
        return True


def fail_each_change(node, tell, promise, *, flushes, whole, one_more):
    """Runs the story with the first change failing permanently, then the second, until a run has no further changes.

    ``whole`` is the complete result; ``one_more`` is a transaction that has to succeed after each failure. With
    ``flushes``, commits wait for the disk, and the failure is a power cut.
    """
    properties = {"log.flush.interval.messages": "1"} if flushes else {}
    for n in itertools.count(1):
        files, promised = FaultyFiles(n, lasting="for ever", torn=Random(n)), promise()
        try:
            tell(files, promised, properties)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 100
            whole(promised)
            return
        where = f"failure at operation {n}, {files.changes[n - 1]}"
        again = node(files.survivor(power_cut=flushes), promised, **properties)
        again.check(where)
        again.transaction(one_more, is_commit=True)
        again.check(f"a transaction after a {where}")
