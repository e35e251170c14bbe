"""Requests of a broker to its peers arrive late, out of order, twice, or not at all."""

from random import Random

import pytest

from barnabas.broker.marker_sender import MarkerSender
from barnabas.broker.persister import Progress
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import LeaderNotAvailable, NetworkException, RequestTimedOut, UnknownTopicOrPartition
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.share.messages import StateBatch
from barnabas.testing.unreliable import UnreliablePeers
from barnabas.transactions.messages import InitProducer, Marker, ProducerIdentity, TopicPartition
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.opening import opened
from tests.kinds import kind
from tests.submitting import create_topic, ready

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.min.isr": "1",
}
PARTITIONS = [TopicPartition("t", index) for index in range(3)]


class Life:
    """A broker that connects to itself through unreliable peers."""

    def __init__(self, seed=0, **unreliability):
        self.clock = ManualClock()
        self.broker = opened(BrokerConfig.from_properties(PROPERTIES), MemoryFiles(self.clock), self.clock)
        create_topic(self.broker, "t", 3, {})
        self.broker.coordinators.transactions.create_topic(ready)
        self.peers = UnreliablePeers(self.broker.peers, self.clock, Random(seed), **unreliability)
        self.broker.peers = self.peers
        self.broker.marker_sender._peers = self.peers

    def requests(self, kind):
        return [request for _, request in self.peers.sent if isinstance(request, kind)]

    def transaction(self, *, is_commit):
        """Runs a transaction over three partitions; it has ended, though markers may be missing."""
        transactions, answers = self.broker.transactions, []
        transactions.init_producer_id(InitProducer("x", 60_000), answers.append)
        producer = ProducerIdentity("x", answers[0].producer_id, answers[0].producer_epoch)
        transactions.add_partitions(producer, PARTITIONS, answers.append, client_version=2)
        for place in PARTITIONS:
            batch = build_batch(
                [(None, b"v", self.clock.time_ms())],
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                base_sequence=0,
                is_transactional=True,
            )
            self.broker.partition(*place).append(RecordBatch.parse(batch), self.clock.time_ms())
        transactions.end(producer, is_commit, answers.append, client_version=2)
        assert answers[1] is None
        assert answers[2].error is None

    def markers(self, place):
        log = self.broker.partition(*place).log
        data = log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
        return [batch for batch in batches(data) if batch.is_control]


@pytest.mark.parametrize("seed", range(10))
def test_every_transaction_completes(seed):
    life = Life(seed, loss=0.4)
    for number in range(5):
        life.transaction(is_commit=number % 2 == 0)
        life.clock.advance(600)
        assert life.broker.transactions.describe("x").state in ("CompleteCommit", "CompleteAbort")
        for place in PARTITIONS:
            log = life.broker.partition(*place).log
            assert log.last_stable_offset == log.log_end_offset
            assert len(life.markers(place)) > number
    assert life.peers.lost


def test_nothing_completes_while_the_leader_cannot_be_reached():
    life = Life()
    life.peers.unreachable.add(1)
    life.transaction(is_commit=True)
    life.clock.advance(300)
    assert life.broker.transactions.describe("x").state == "PrepareCommit"
    assert life.markers(PARTITIONS[0]) == []
    assert len(life.requests(WriteTxnMarkersRequest)) > 3
    life.peers.unreachable.clear()
    life.clock.advance(60)
    assert life.broker.transactions.describe("x").state == "CompleteCommit"


@pytest.mark.parametrize("error", [NetworkException, RequestTimedOut])
def test_each_leader_answers_for_its_partitions(error):
    """Partitions without a leader, or without metadata, get an error without a request."""
    life, answers, sent = Life(), [], []

    class Peers:
        def send(self, node_id, request, done, *, lane="", timeout_ms=None):
            sent.append(node_id)
            done(None, error())

    image = life.broker.image
    topic = image.topics_by_name["t"]
    leaderless = topic._replace(partitions={**topic.partitions, 1: topic.partitions[1]._replace(leader=-1)})
    image = image._replace(topics_by_name={"t": leaderless})
    sender = MarkerSender(Peers(), lambda: image)
    sender.send(Marker(1, 0, 0, True, 2), [*PARTITIONS[:2], TopicPartition("gone", 0)], answers.append)
    assert sent == [1]
    assert {place: kind(error) for errors in answers for place, error in errors.items()} == {
        PARTITIONS[0]: error,
        PARTITIONS[1]: LeaderNotAvailable,
        TopicPartition("gone", 0): UnknownTopicOrPartition,
    }


def at(start_offset):
    """Returns where a share partition is."""
    return lambda: Progress(start_offset, 0)


class TestShareState:
    @pytest.fixture
    def life(self):
        return Life(3)

    def ask(self, life, call, *arguments):
        answers = []
        getattr(life.broker.persister, call)("g", *arguments, answers.append)
        return answers

    def outcome(self, life, call, *arguments):
        answers = self.ask(life, call, *arguments)
        life.clock.advance(300)
        ((outcome,),) = [outcomes.values() for outcomes in answers]
        return outcome

    def topic_id(self, life):
        return life.broker.image.topics_by_name["t"].id

    def test_writes_keep_their_order(self, life):
        """One write is in flight; later ones are combined, but never before an earlier one."""
        topic_id = self.topic_id(life)
        assert self.outcome(life, "initialize", {topic_id: {0: 0}}, 0).error is None
        answers = []
        for start in range(1, 6):
            batch = StateBatch(start, start + 1, 2, 1)
            answers.append(self.ask(life, "write", topic_id, 0, 0, -1, at(start), [batch]))
        assert len(life.requests(WriteShareGroupStateRequest)) == 1
        life.clock.advance(60)
        assert all(len(outcomes) == 1 for outcomes in answers)
        starts = [each.topics[0].partitions[0].start_offset for each in life.requests(WriteShareGroupStateRequest)]
        assert starts == [1, 2, 3, 4, 5]
        assert self.outcome(life, "read", topic_id, 0, -1).state.start_offset == 5

    def test_a_write_that_is_tried_again_does_not_take_the_start_offset_back(self, life):
        """The one after it has moved it, and records below it were acknowledged."""
        topic_id, starts = self.topic_id(life), [1]
        assert self.outcome(life, "initialize", {topic_id: {0: 0}}, 0).error is None
        life.peers.unreachable.add(1)
        answers = self.ask(life, "write", topic_id, 0, 0, -1, lambda: Progress(starts[-1], 0), [StateBatch(9, 9, 2, 1)])
        life.clock.advance(1)
        life.peers.unreachable.clear()
        starts.append(5)
        self.ask(life, "write", topic_id, 0, 0, -1, lambda: Progress(starts[-1], 0), [])
        life.clock.advance(60)
        assert len(answers) == 1
        state = self.outcome(life, "read", topic_id, 0, -1).state
        assert (state.start_offset, state.batches) == (5, (StateBatch(9, 9, 2, 1),))

    def test_partitions_of_a_group_go_together(self, life):
        topic_id = self.topic_id(life)
        answers = self.ask(life, "initialize", {topic_id: dict.fromkeys(range(3), 0)}, 0)
        life.clock.advance(60)
        assert len(answers) == 1
        for index in (0, 1, 2, 1):
            self.ask(life, "write", topic_id, index, 0, -1, at(7), [])
        life.clock.advance(60)
        sizes = [len(each.topics[0].partitions) for each in life.requests(WriteShareGroupStateRequest)]
        assert sizes == [1, 2, 1]

    def test_an_unreachable_coordinator_is_tried_five_times(self, life):
        topic_id = self.topic_id(life)
        assert self.outcome(life, "initialize", {topic_id: {0: 0}}, 0).error is None
        life.peers.unreachable.add(1)
        outcome = self.outcome(life, "write", topic_id, 0, 0, -1, at(1), [])
        assert isinstance(outcome.error, (NetworkException, RequestTimedOut))
        assert len(life.requests(WriteShareGroupStateRequest)) == 5

    def test_one_that_comes_back_answers(self, life):
        topic_id = self.topic_id(life)
        life.peers.unreachable.add(1)
        answers = self.ask(life, "initialize", {topic_id: {0: 4}}, 0)
        life.clock.advance(4)
        assert answers == []
        life.peers.unreachable.clear()
        life.clock.advance(120)
        ((outcome,),) = [outcomes.values() for outcomes in answers]
        assert outcome.error is None
        assert self.outcome(life, "read", topic_id, 0, -1).state.start_offset == 4

    def test_a_closed_broker_retries_nothing(self, life):
        life.peers.unreachable.add(1)
        answers = self.ask(life, "initialize", {self.topic_id(life): {0: 4}}, 0)
        life.clock.advance(1)
        life.broker.persister.close()
        sent = len(life.peers.sent)
        life.clock.advance(300)
        assert answers == []
        assert len(life.peers.sent) <= sent + 1
