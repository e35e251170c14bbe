"""The state of share partitions in its log: writes, reads, snapshots, pruning and deletion."""

import pytest

from barnabas.broker.persister import Persister, Progress
from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.cluster.topic_names import SHARE_GROUP_STATE
from barnabas.config import BrokerConfig
from barnabas.errors import CoordinatorNotAvailable, InvalidRequest, NotCoordinator, UnknownTopicOrPartition
from barnabas.groups.java_hash import partition_of
from barnabas.records.batch import Compression, batches
from barnabas.share.messages import UNINITIALIZED, SharePartitionKey, SharePartitionState, StateBatch
from barnabas.share.records import coordinator_key
from barnabas.testing.faults import FaultyFiles
from tests.broker.opening import opened
from tests.submitting import create_topic, reset_to_start, submitted

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Node:
    """A broker with the topic ``t`` of three partitions; its group ``g`` uses the persister."""

    def __init__(self, **properties):
        self.files = FaultyFiles()
        self.clock = ManualClock()
        self.properties = PROPERTIES | properties
        self.open()
        self.make("t")

    def kill(self):
        self.files = self.files.survivor()
        self.open()

    def open(self):
        self.broker = opened(BrokerConfig.from_properties(self.properties), self.files, self.clock)

    def make(self, topic):
        create_topic(self.broker, topic, 3, {})

    def drop(self, topic):
        submitted(self.broker.controller, DeleteTopics([(None, self.broker.image.topics_by_name[topic].id)]))

    @property
    def topic_id(self):
        return self.broker.image.topics_by_name["t"].id

    @property
    def persister(self) -> Persister:
        return self.broker.persister

    def outcomes_of(self, ask, *arguments):
        """Returns all results by partition; the topic is ``t``. Some errors are returned only after retries."""
        answers = []
        ask("g", *arguments, answers.append)
        if not answers:
            self.clock.advance(60)
        (outcomes,) = answers
        return {
            index: type(outcome.error) if outcome.error else outcome.state for (_, index), outcome in outcomes.items()
        }

    def initialize(self, starts, state_epoch=0):
        return self.outcomes_of(self.persister.initialize, {self.topic_id: starts}, state_epoch)

    def read(self, index, leader_epoch=-1):
        return self.outcomes_of(self.persister.read, self.topic_id, index, leader_epoch)[index]

    def write(self, index, start_offset, *state_batches):
        progress = Progress(start_offset, 0)
        return self.outcomes_of(self.persister.write, self.topic_id, index, 0, 0, lambda: progress, state_batches)[
            index
        ]

    def summary(self, *indexes):
        return self.outcomes_of(self.persister.summary, [(self.topic_id, index) for index in indexes])

    def delete(self, *indexes):
        return self.outcomes_of(self.persister.delete, [(self.topic_id, index) for index in indexes])

    def log_of(self, index):
        key = coordinator_key(SharePartitionKey("g", self.topic_id, index))
        return self.broker.partition(SHARE_GROUP_STATE, partition_of(key, 3)).log


@pytest.fixture
def node():
    return Node()


def raw_read(node, topic_id):
    """Returns the coordinator's response without an earlier FindCoordinator."""
    answers = []
    node.broker.share_state.read(SharePartitionKey("g", topic_id, 0), -1, answers.append)
    return type(answers[0].error)


def test_the_topic_is_made_when_somebody_first_asks(node):
    assert SHARE_GROUP_STATE not in node.broker.image.topics_by_name
    assert node.summary(0, 1) == {0: UNINITIALIZED, 1: UNINITIALIZED}
    assert len(node.broker.image.topics_by_name[SHARE_GROUP_STATE].partitions) == 3
    assert node.log_of(0).config.cleanup_policy == frozenset({"delete"})
    assert node.log_of(0).config.retention_ms == -1


def test_the_topic_cannot_be_made():
    node = Node(**{"share.coordinator.state.topic.replication.factor": "2"})
    assert node.summary(0) == {0: CoordinatorNotAvailable}
    assert node.initialize({0: 5, 1: 6}) == {0: CoordinatorNotAvailable, 1: CoordinatorNotAvailable}


def test_the_topic_cannot_be_written_down(node):
    node.files.fail_at = len(node.files.changes) + 1
    assert node.summary(0) == {0: CoordinatorNotAvailable}
    assert node.files.has_failed


def test_what_was_written_is_there_after_a_kill(node):
    assert node.initialize({0: 5, 2: -1}, state_epoch=0) == {0: SharePartitionState(), 2: SharePartitionState()}
    node.read(0, leader_epoch=0)
    node.write(0, 6, StateBatch(6, 8, 2, 1))
    node.kill()
    assert node.read(0) == SharePartitionState(0, start_offset=6, batches=(StateBatch(6, 8, 2, 1),))
    assert node.summary(0)[0] == SharePartitionState(0, 0, 6, 0)
    assert node.summary(0, 1, 2)[2] == SharePartitionState(0, 0, -1, -1)
    node.delete(0)
    node.kill()
    assert node.summary(0) == {0: UNINITIALIZED}


def test_an_empty_request_has_an_immediate_response(node):
    assert node.summary() == {}
    assert node.delete() == {}
    assert SHARE_GROUP_STATE not in node.broker.image.topics_by_name, "nobody has needed it yet"


def test_with_a_topic_goes_what_is_known_of_it(node):
    node.initialize({0: 5, 1: 5, 2: 5})
    topic_id = node.topic_id
    node.drop("t")
    assert raw_read(node, topic_id) is InvalidRequest
    node.make("t")
    assert node.topic_id != topic_id
    assert node.summary(0) == {0: UNINITIALIZED}
    node.kill()
    assert raw_read(node, topic_id) is InvalidRequest


def test_without_its_topic_the_coordinator_knows_nothing(node):
    node.initialize({0: 5})
    node.drop(SHARE_GROUP_STATE)
    assert raw_read(node, node.topic_id) is NotCoordinator
    assert node.summary(0) == {0: UNINITIALIZED}


def test_a_topic_that_is_not_there(node):
    answers = []
    node.persister.initialize("g", {bytes(16): {0: 0}}, 0, answers.append)
    node.clock.advance(60)
    assert isinstance(answers[0][bytes(16), 0].error, UnknownTopicOrPartition)


def test_the_log_is_kept_short(node):
    node.initialize({0: 5})
    for start in range(6, 10):
        node.write(0, start)
    node.initialize({0: 10}, state_epoch=1)
    log = node.log_of(0)
    node.clock.advance(299)
    assert log.log_start_offset == 0
    node.clock.advance(2)
    assert log.log_start_offset == 5
    node.broker.close()
    node.open()
    assert node.log_of(0).log_start_offset == 5
    assert node.read(0).start_offset == 10


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_records_are_compressed_as_the_config_says(codec):
    node = Node(**{"share.coordinator.state.topic.compression.codec": str(codec.value)})
    node.initialize({0: 5})
    log = node.log_of(0)
    (batch,) = batches(log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True))
    assert (batch.compression, batch.count, batch.producer_id, batch.base_sequence) == (codec, 1, -1, 0)
    node.kill()
    assert node.read(0).start_offset == 5


def test_reset_forgets_it_all(node):
    node.initialize({0: 5})
    persister = node.persister
    reset_to_start(node.broker)
    assert SHARE_GROUP_STATE not in node.broker.image.topics_by_name
    node.make("t")
    assert node.persister is persister
    assert node.summary(0) == {0: UNINITIALIZED}
    assert node.initialize({0: 7}) == {0: SharePartitionState()}


def test_a_broker_without_share_groups_has_no_coordinator_of_them(node):
    node.kill()
    assert "share" not in vars(node.broker.coordinators)
    node.summary(0)
    node.kill()
    assert "share" in vars(node.broker.coordinators)
