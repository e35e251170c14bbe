"""No transaction hangs, and no late end ends a later one, for any order of requests and responses.

The coordinator and the logs are real; only the responses between them are held back at random. A transaction that is
open only in a log would hold back readers forever.
"""

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.produce import produce
from barnabas.broker.markers import write_markers
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.log.files import MemoryFiles
from barnabas.records.builder import build_batch
from barnabas.transactions.messages import InitProducer, Marker, ProducerIdentity, TopicPartition
from barnabas.wire.messages.produce import ProduceRequest
from tests.asking import context_of
from tests.broker.opening import opened
from tests.submitting import create_topic, ready

PARTITIONS = 2
TIMEOUT_MS = 60_000
OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")

indexes = st.integers(0, PARTITIONS - 1)
ages = st.sampled_from([0, 0, 0, 1, 2])
VERIFYING, ADDING = (10, 11), (12, 13)


class Overtaking(RuleBasedStateMachine):
    """One transactional id, with producers of both generations, old and new, that never give up."""

    @initialize()
    def start(self):
        self.clock = ManualClock()
        properties = {
            "node.id": "1",
            "log.dirs": "/data",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        self.broker = opened(BrokerConfig.from_properties(properties), MemoryFiles(self.clock), self.clock)
        create_topic(self.broker, "t", PARTITIONS, {})
        self.broker.coordinators.transactions.create_topic(ready)
        self.coordinator = self.broker.transactions
        self.held = []
        self.hold = None
        add = self.coordinator.add_partitions

        def add_later(*arguments, client_version):
            *identity, reply = arguments
            if self.hold == "question":
                self.held.append(lambda: add(*identity, reply, client_version=client_version))
            elif self.hold == "answer":
                add(*identity, lambda error: self.held.append(lambda: reply(error)), client_version=client_version)
            else:
                add(*identity, reply, client_version=client_version)

        self.coordinator.add_partitions = add_later
        self.identities = []
        self.a_producer()

    def teardown(self):
        """When everything has arrived, and every time-out is over, readers see all records."""
        if not hasattr(self, "broker"):
            return
        while self.held:
            self.held.pop(0)()
        self.clock.advance(3 * TIMEOUT_MS / 1000)
        for index in range(PARTITIONS):
            log = self.broker.partition("t", index).log
            assert log.last_stable_offset == log.log_end_offset

    def producer(self, age):
        """Returns an id and an epoch of a client: the newest, or an older one."""
        return self.identities[max(len(self.identities) - 1 - age, 0)]

    @rule(comes=st.sampled_from([False, False, True]))
    def perhaps_a_producer(self, comes):
        if comes:
            self.a_producer()

    def a_producer(self):
        """Starts a new producer, which fences the others, unless the transaction before is being ended."""
        results = []
        self.coordinator.init_producer_id(InitProducer("x", TIMEOUT_MS), results.append)
        if results and results[0].error is None:
            self.identities.append((results[0].producer_id, results[0].producer_epoch))

    @rule(
        age=ages,
        index=indexes,
        version=st.sampled_from(VERIFYING + ADDING * 2),
        behind=st.sampled_from([0, 0, 0, 0, -1, 1]),
        hold=st.sampled_from([None, None, None, "question", "answer"]),
    )
    def write(self, age, index, version, behind, hold):
        """Writes with the sequence that the log expects, or another one."""
        producer_id, producer_epoch = self.producer(age)
        entry = self.broker.partition("t", index).log.producers.entries.get(producer_id)
        expected = entry.last_sequence + 1 if entry is not None and entry.producer_epoch == producer_epoch else 0
        records = build_batch(
            [(b"k", b"v", self.clock.time_ms())],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=max(expected + behind, 0),
            is_transactional=True,
        )
        data = [ProduceRequest.TopicProduceData.PartitionProduceData(index=index, records=memoryview(records))]
        topic_id = self.broker.image.topics_by_name["t"].id
        topic = ProduceRequest.TopicProduceData(name="t", topic_id=topic_id, partition_data=data)
        context = context_of(self.broker, version)
        self.hold = hold
        answer = produce(ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1, topic_data=[topic]), context)
        assert answer is not None and (hold is not None or not isinstance(answer, Later))

    @rule(age=ages, index=indexes)
    def add(self, age, index):
        self.hold = None
        places = [TopicPartition("t", index)]
        self.coordinator.add_partitions(
            ProducerIdentity("x", *self.producer(age)), places, lambda error: None, client_version=0
        )

    @rule(age=ages, is_commit=st.booleans(), version=st.sampled_from([0, 2]))
    def end(self, age, is_commit, version):
        results = []
        self.coordinator.end(
            ProducerIdentity("x", *self.producer(age)), is_commit, results.append, client_version=version
        )
        if results[0].error is None and version == 2:
            self.identities.append((results[0].producer_id, results[0].producer_epoch))

    @rule(index=indexes, version=st.sampled_from([0, 2]))
    def end_before_the_answer(self, index, version):
        """The interesting case, which is rare at random."""
        self.write(0, index, 12, 0, "answer")
        self.end(0, True, version)

    @rule(count=st.integers(1, 3))
    def arrive(self, count):
        """Delivers held-back messages, in the order in which they were sent."""
        for _ in range(min(count, len(self.held))):
            self.held.pop(0)()

    @rule()
    def arrive_last(self):
        if self.held:
            self.held.pop()()

    @rule(milliseconds=st.sampled_from([20, 100, 10_000, TIMEOUT_MS]))
    def wait(self, milliseconds):
        self.clock.advance(milliseconds / 1000)

    @rule(age=ages, index=indexes, is_commit=st.booleans(), version=st.sampled_from([0, 1, 2, 2]))
    def a_late_marker(self, age, index, is_commit, version):
        """Delivers an old marker, which must not end an open transaction."""
        marker = Marker(*self.producer(age), 0, is_commit, version)
        log = self.broker.partition("t", index).log
        entry = log.producers.entries.get(marker.producer_id)
        would_end = entry is not None and entry.current_txn_first_offset >= 0
        if would_end and marker.producer_epoch == entry.producer_epoch and marker.transaction_version < 2:
            return  # in the first generation a late one cannot be distinguished
        if would_end and marker.producer_epoch > entry.producer_epoch:
            return  # this is not a late one
        before = dict(log.producers.transactions.open)
        write_markers(self.broker, marker, [TopicPartition("t", index)], lambda errors: None)
        assert log.producers.transactions.open == before

    @invariant()
    def what_is_open_is_known(self):
        if not hasattr(self, "broker"):
            return
        for index in range(PARTITIONS):
            producers = self.broker.partition("t", index).log.producers
            for producer_id in producers.transactions.open.values():
                entry = producers.entries[producer_id]
                known = self.coordinator.describe("x")
                assert known.state in OPEN
                assert known.producer_id == producer_id
                assert TopicPartition("t", index) in known.partitions
                assert known.producer_epoch in (entry.producer_epoch, entry.producer_epoch + 1)


TestOvertaking = Overtaking.TestCase
TestOvertaking.settings = hypothesis.settings(
    max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
