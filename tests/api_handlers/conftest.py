"""Fixtures of the handlers' tests: a broker of real parts that does no I/O."""

from random import Random
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.peer_requests import join
from barnabas.api_handlers.registry import APIS
from barnabas.broker import Broker
from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.configs import ConfigResource
from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.cluster.controller.decision import Surroundings
from barnabas.cluster.controller.decisions import decide
from barnabas.cluster.controller.feature_decisions import bootstrap_records, first_records
from barnabas.cluster.controller.heartbeats import Heartbeats
from barnabas.cluster.image.image import MetadataImage
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import ConfigRules
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles
from barnabas.peers.in_process import InProcessPeers
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.asking import context_of, handled
from tests.registering import CLUSTER_ID, heartbeat, registration
from tests.submitting import create_topic, ready, submitted


class ConfigCluster:
    """A broker with configs only: the real controller and image, without logs, clock and sockets."""

    node_id = 1
    quorum = SimpleNamespace(is_leader=True)

    def __init__(self, **properties: str) -> None:
        self.static = BrokerConfig.from_properties(properties)
        self.config = self.static
        self.image = MetadataImage()
        self._around = Surroundings(
            self.static,
            ConfigRules(lambda: self.config),
            Random(0),
            Heartbeats(ManualClock(), lambda: self.static["broker.session.timeout.ms"]),
            CLUSTER_ID,
        )
        self._apply(first_records(bootstrap_records(), 1))
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
        epoch = submitted(self, registration(1, endpoints=[endpoint]))
        submitted(self, heartbeat(1, epoch, metadata_offset=self.image.offset))

    @property
    def controller(self) -> "ConfigCluster":
        return self

    def submit(self, command, done):
        try:
            decision = decide(command, self.image, self._around._replace(next_offset=self.image.offset + 1))
        except KafkaError as error:
            done(None, error)
            return
        self._apply(decision.records)
        done(decision.result, None)

    def _apply(self, records):
        self.image, _ = self.image.apply(records, offset=self.image.offset + len(records))
        self.config = self.static.with_dynamic(self.image.configs_of(4, ""), self.image.configs_of(4, "1"))

    def create_topic(self, name, **configs):
        (created,) = submitted(self, CreateTopics([NewTopic(name, 1, 1, configs=list(configs.items()))]))
        assert created.error is None, created.error

    def configs(self, kind, name):
        return dict(self.image.configs_of(*ConfigResource(kind, name)))

    def ask(self, handle, request, version):
        """Returns the response, encoded and decoded, so that it only has the fields of the version."""
        requested = type(request).decode(request.encode(version=version), version=version)
        response = handled(handle, requested, context_of(self, version))
        return type(response).decode(response.encode(version=version), version=version)


@pytest.fixture(scope="session")
def config_cluster():
    """Returns :class:`ConfigCluster`, for a test with own properties."""
    return ConfigCluster


class QuietNode:
    """A whole broker in memory, without sockets, with a manual clock."""

    def __init__(self, **properties: str) -> None:
        defaults = {"node.id": "1", "log.dirs": "/a,/b", "listeners": "PLAINTEXT://127.0.0.1:9092"}
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.background = Inline()
        self.peers = InProcessPeers(encodes=True)
        self.broker = Broker(
            BrokerConfig.from_properties(defaults | properties),
            files=self.files,
            clock=self.clock,
            scheduler=self.clock,
            random=Random(0),
            background=self.background,
            peers=self.peers,
        )
        join(self.peers, self.broker)
        self.broker.open()
        self.broker.register({"PLAINTEXT": 9092})

    def create_topic(self, name, partitions=1, **configs):
        """Creates a topic; returns its first partition."""
        create_topic(self.broker, name, partitions, {key.replace("_", "."): value for key, value in configs.items()})
        return self.broker.partition(name, 0)

    def append(self, partition, *timestamps, **options):
        """Appends one batch, with a record for each of these times in ms."""
        records = [(b"key", b"value", timestamp) for timestamp in timestamps]
        batch = RecordBatch.parse(build_batch(records, **options))
        return partition.append(batch, self.clock.time_ms())

    def ask(self, handle, request, version):
        """Returns the response, encoded and decoded, so that it only has the fields of the version."""
        return ConfigCluster.ask(self.broker, handle, request, version)


@pytest.fixture
def node():
    """:class:`QuietNode`."""
    return QuietNode()


@pytest.fixture(scope="session")
def quiet_node():
    """Returns :class:`QuietNode`, for a test with own properties."""
    return QuietNode


class GroupNode(QuietNode):
    """A node that is the coordinator of all groups, with the topics t (three partitions) and u (one)."""

    def __init__(self, **properties: str) -> None:
        defaults = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "4"}
        defaults |= {"transaction.state.log.replication.factor": "1", "transaction.state.log.num.partitions": "4"}
        defaults |= {"transaction.state.log.min.isr": "1", "share.coordinator.state.topic.min.isr": "1"}
        defaults |= {"share.coordinator.state.topic.replication.factor": "1"}
        defaults |= {"share.coordinator.state.topic.num.partitions": "2"}
        defaults["group.initial.rebalance.delay.ms"] = "0"
        super().__init__(**(defaults | properties))
        self.create_topic("t", 3)
        self.create_topic("u")

    def topic_id(self, name):
        return self.broker.image.topics_by_name[name].id

    def lose_followers(self):
        """Gives the partitions of the group coordinator a follower that never fetches, and each a commit of another
        group, which does not become durable.
        """
        of_two = {"replicas": (1, 2), "isr": (1, 2), "directories": (bytes(16),) * 2}
        for index in range(4):
            partition = self.broker.partition("__consumer_offsets", index)
            partition.become_leader(partition.image._replace(**of_two))
        Topic = OffsetCommitRequest.OffsetCommitRequestTopic
        offset = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        for number in range(16):
            self.send(OffsetCommitRequest(group_id=f"other {number}", topics=[Topic(name="t", partitions=[offset])]), 8)
        for index in range(4):
            assert self.broker.partition("__consumer_offsets", index).log.log_end_offset > 0

    def after_the_time_out(self, promise, version):
        """Returns the response to a request that waits for a write until it times out."""
        self.clock.advance(4.9)
        assert promise.response is None
        self.clock.advance(0.2)
        return self.answer(promise, version)

    def send(self, request, version, client_id="client"):
        """Sends the request, encoded; returns the promise of a response."""
        context = context_of(self.broker, version, client_id=client_id)
        requested = type(request).decode(request.encode(version=version), version=version)
        answer = handled(APIS[request.api_key].handle, requested, context)
        if isinstance(answer, Later):
            return answer
        promise = Later()
        promise.resolve(answer)
        return promise

    def call(self, request, version, client_id="client"):
        """Returns the immediate response, decoded from its bytes."""
        promise = self.send(request, version, client_id)
        self.clock.advance(0)
        return self.answer(promise, version)

    @staticmethod
    def answer(promise, version):
        assert promise.response is not None, "not answered"
        return type(promise.response).decode(promise.response.encode(version=version), version=version)

    def join(self, group_id="g", version=9, name="client", **fields):
        """Sends a JoinGroup with an immediate response."""
        promise = self.send_join(group_id, version, name, **fields)
        self.clock.advance(0)
        return self.answer(promise, version)

    def send_join(self, group_id="g", version=9, name="client", **fields):
        """Sends a JoinGroup whose response may be later."""
        fields = {"protocol_type": "consumer", "protocols": (("range", b"range's"),), "member_id": ""} | fields
        fields["protocols"] = [
            JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in fields["protocols"]
        ]
        defaults = {"group_id": group_id, "session_timeout_ms": 10_000}
        if version >= 1:
            defaults["rebalance_timeout_ms"] = 60_000
        return self.send(JoinGroupRequest(**(defaults | fields)), version, name)

    def stable(self, group_id="g", assignment=b"all", **fields):
        """Returns the id of the only member of a group, with its assignment."""
        joined = self.join(group_id, version=3, **fields)
        answer = self.sync(joined.member_id, joined.generation_id, {joined.member_id: assignment}, group_id)
        assert answer.error_code == 0
        return joined.member_id

    def sync(self, member_id, generation_id, assignments=(), group_id="g", version=3, **fields):
        """Sends a SyncGroup with an immediate response."""
        Assignment = SyncGroupRequest.SyncGroupRequestAssignment
        found = [Assignment(member_id=each, assignment=data) for each, data in dict(assignments).items()]
        names = {"group_id": group_id, "generation_id": generation_id, "member_id": member_id, "assignments": found}
        return self.call(SyncGroupRequest(**(names | fields)), version)

    def leave(self, member_id, group_id="g"):
        """Sends a LeaveGroup of one member."""
        return self.call(LeaveGroupRequest(group_id=group_id, member_id=member_id), 0)

    def commit(self, group_id="g", topic="t", **offsets):
        """Commits as a simple consumer: ``p0=7`` is offset 7 of partition 0."""
        Topic = OffsetCommitRequest.OffsetCommitRequestTopic
        partitions = [
            Topic.OffsetCommitRequestPartition(
                partition_index=int(name[1:]), committed_offset=offset, committed_metadata=""
            )
            for name, offset in offsets.items()
        ]
        request = OffsetCommitRequest(group_id=group_id, topics=[Topic(name=topic, partitions=partitions)])
        return self.call(request, 8)


@pytest.fixture
def group_node():
    """A :class:`GroupNode` that has received FindCoordinator."""
    node = GroupNode()
    node.broker.coordinators.groups.create_topic(ready)
    return node


@pytest.fixture
def quiet_group_node():
    """A :class:`GroupNode` without a FindCoordinator request: it is not the coordinator."""
    return GroupNode()
