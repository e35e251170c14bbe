"""Sends requests of simulated brokers to a controller: registrations, heartbeats and shutdowns.

Knows nothing of which controller answers. Offsets, broker epochs and topic ids differ between two controllers, and are
replaced by names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from barnabas.cluster.features import SUPPORTED
from barnabas.wire.message import Request
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

TOPIC = "orders"
FAR = 1 << 40  #: a metadata offset beyond the end of the log
PREFERRED, UNCLEAN = 0, 1
FEATURES = {name: (feature.first, feature.last) for name, feature in sorted(SUPPORTED.items())}

Epochs = Mapping[str, int]
Said = tuple[str, Any]
"""The subject of a step, and the response."""


def directory(broker_id: int, nth: int = 0) -> bytes:
    return bytes([broker_id, nth + 1]) * 8


class Script:
    """The requests, in order; ``ask`` sends one to the controller."""

    def __init__(self, ask: Callable[[Request, int], Any], cluster_id: str) -> None:
        self._ask = ask
        self.cluster_id = cluster_id
        self.epochs: dict[int, int] = {}  #: of brokers, by their ids
        self.names: dict[int, str] = {}  #: of broker epochs
        self.topic_id = bytes(16)

    def play(self) -> Iterator[Said]:
        for act in (
            self.registration, self.life, self.topics, self.isrs, self.elections, self.moves, self.directories,
            self.others, self.shutdown, self.fencing, self.crash, self.end,
        ):  # fmt: skip
            for said in act():
                yield f"{act.__name__}: {said[0]}", said[1]

    # ------------------------------------------------------------ registration

    def register(self, broker_id: int, incarnation: int = 1, **fields: Any) -> Said:
        features = fields.pop("features", FEATURES)
        request = BrokerRegistrationRequest(
            **{
                "broker_id": broker_id,
                "cluster_id": self.cluster_id,
                "incarnation_id": bytes([broker_id, incarnation]) * 8,
                "listeners": [
                    BrokerRegistrationRequest.Listener(
                        name="PLAINTEXT", host="127.0.0.1", port=9000 + broker_id, security_protocol=0
                    )
                ],
                "features": [
                    BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                    for name, (low, high) in features.items()
                ],
                "rack": f"rack-{broker_id}",
                "log_dirs": [directory(broker_id)],
                **fields,
            }
        )
        response = self._ask(request, 4)
        epoch = response.broker_epoch
        if response.error_code == 0:
            self.epochs[broker_id] = epoch
            self.names.setdefault(epoch, f"broker {broker_id}, incarnation {incarnation}")
        said = {"error_code": response.error_code, "epoch": self.names.get(epoch, epoch)}
        return f"register {broker_id}.{incarnation} {sorted(fields)}", said

    def registration(self) -> Iterator[Said]:
        yield self.register(1, cluster_id="another-cluster-of-mine")
        yield self.register(1, log_dirs=[])
        yield self.register(1, log_dirs=[bytes(16)])
        yield self.register(1, log_dirs=[bytes(15) + b"\x63"])
        yield self.register(1, log_dirs=[directory(1), directory(1)])
        yield self.register(1, is_migrating_zk_broker=True)
        yield self.register(1, features={name: each for name, each in FEATURES.items() if name != "metadata.version"})
        yield self.register(1, features={**FEATURES, "metadata.version": (7, 8)})
        yield self.register(1, features={name: FEATURES[name] for name in ("metadata.version", "kraft.version")})
        yield self.register(1, features={**FEATURES, "my.feature": (0, 3)})
        yield self.register(1, features={**FEATURES, "my.feature": (1, 3)})
        yield self.register(1, features={**FEATURES, "kraft.version": (1, 1)})
        yield self.register(1)
        yield self.register(2, log_dirs=[directory(1)])
        yield self.register(2, log_dirs=[directory(2), directory(2, 1)])
        yield self.register(3, rack=None)
        yield self.register(3, 2)  # no heartbeat yet
        yield self.register(4)

    # ------------------------------------------------------------ heartbeats

    def beat(self, broker_id: int, *, v: int = 2, offset: int = FAR, **fields: Any) -> Said:
        epoch = fields.pop("epoch", self.epochs.get(broker_id, -1))
        wants = {"want_fence": False, "want_shut_down": False, **fields}
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=epoch, current_metadata_offset=offset, **wants
        )
        response = self._ask(request, v)
        said = {name: getattr(response, name) for name in ("error_code", "is_caught_up", "is_fenced")}
        said["should_shut_down"] = response.should_shut_down
        return f"heartbeat {broker_id} at {offset} {sorted(fields)}", said

    def life(self) -> Iterator[Said]:
        yield self.beat(9)
        yield self.beat(1, epoch=-1)
        yield self.beat(1, epoch=self.epochs[1] + 1000)
        yield self.beat(1, offset=-1)
        yield self.beat(1, want_fence=True)
        for broker_id in (1, 2, 3, 4):
            yield self.beat(broker_id, v=0)
            yield self.beat(broker_id)
        yield self.register(1, 2)  # another incarnation while the first is alive
        yield self.register(1, rack="another")  # the same again
        yield self.beat(1)
        yield self.beat(2, cordoned_log_dirs=[directory(2)])
        yield self.beat(2, cordoned_log_dirs=[directory(2)])
        yield self.beat(2, cordoned_log_dirs=[])

    # ------------------------------------------------------------ partitions

    def topics(self) -> Iterator[Said]:
        replicas = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3], [2, 1, 3]]
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                CreateTopicsRequest.CreatableTopic.CreatableReplicaAssignment(partition_index=index, broker_ids=each)
                for index, each in enumerate(replicas)
            ],
            configs=[CreateTopicsRequest.CreatableTopic.CreatableTopicConfig(name="min.insync.replicas", value="2")],
        )
        response = self._ask(CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=False), 7)
        (created,) = response.topics
        self.topic_id = created.topic_id
        yield "create", created.error_code

    def alter(
        self, index: int, isr: Sequence[int], leader_epoch: int, partition_epoch: int, *, by: int, v: int = 3,
        topic_id: bytes | None = None, state: int = 0, epochs: Mapping[int, int] | None = None,
        epoch: int | None = None,
    ) -> Said:  # fmt: skip
        data = AlterPartitionRequest.TopicData
        states = [
            data.PartitionData.BrokerState(broker_id=each, broker_epoch={**self.epochs, **(epochs or {})}.get(each, -1))
            for each in isr
        ]
        partition = data.PartitionData(
            partition_index=index, leader_epoch=leader_epoch, new_isr=list(isr), new_isr_with_epochs=states,
            leader_recovery_state=state, partition_epoch=partition_epoch,
        )  # fmt: skip
        request = AlterPartitionRequest(
            broker_id=by,
            broker_epoch=self.epochs.get(by, -1) if epoch is None else epoch,
            topics=[data(topic_id=self.topic_id if topic_id is None else topic_id, partitions=[partition])],
        )
        response = self._ask(request, v)
        said: Any = response.error_code
        if response.topics:
            (found,) = response.topics[0].partitions
            fields = ("error_code", "leader_id", "leader_epoch", "isr", "leader_recovery_state", "partition_epoch")
            said = {name: getattr(found, name) for name in fields}
        return f"isr of {index} by {by}: {list(isr)}, {leader_epoch}, {partition_epoch}", said

    def isrs(self) -> Iterator[Said]:
        yield self.alter(0, [1, 2], 0, 0, by=1, epoch=5)
        yield self.alter(0, [1, 2], 0, 0, by=9)
        yield self.alter(0, [1, 2], 0, 0, by=1, topic_id=bytes(16))
        yield self.alter(0, [1, 2], 0, 0, by=1, topic_id=bytes([9]) * 16)
        yield self.alter(9, [1, 2], 0, 0, by=1)
        yield self.alter(0, [1, 2], 7, 0, by=1)
        yield self.alter(0, [1, 2], 0, 7, by=1)
        yield self.alter(0, [2], 0, 0, by=2)
        yield self.alter(0, [2, 3], 0, 0, by=1)
        yield self.alter(0, [], 0, 0, by=1)
        yield self.alter(0, [1, 4], 0, 0, by=1)  # not a replica
        yield self.alter(0, [1, 1], 0, 0, by=1)
        yield self.alter(0, [1, 2], 0, 0, by=1, state=1)
        yield self.alter(0, [1], 0, 0, by=1, state=1)
        yield self.alter(0, [1, 2], 0, 0, by=1, epochs={2: 3})
        yield self.alter(0, [1, 2], 0, 0, by=1, epochs={2: -1})
        yield self.alter(0, [1, 2, 3], 0, 0, by=1)  # an old partition epoch
        yield self.alter(0, [1, 2], 0, 1, by=1)  # unchanged
        yield self.alter(0, [1], 0, 1, by=1, v=2)  # below the minimum
        yield self.alter(0, [1, 2, 3], 0, 2, by=1)
        yield self.alter(0, [1, 2, 3], -1, 3, by=1)

    def elect(self, kind: int, *indexes: int, topic: str = TOPIC, everywhere: bool = False) -> Said:
        wanted = [ElectLeadersRequest.TopicPartitions(topic=topic, partitions=list(indexes))]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=None if everywhere else wanted)
        response = self._ask(request, 2)
        said = [
            (each.partition_id, each.error_code, each.error_message)
            for topic_result in response.replica_election_results
            for each in topic_result.partition_result
        ]
        return f"elect {kind} {indexes}", (response.error_code, sorted(said))

    def elections(self) -> Iterator[Said]:
        yield self.elect(7, 0)
        yield self.elect(PREFERRED, 0, 9)
        yield self.elect(PREFERRED, 0, topic="nope")
        yield self.elect(UNCLEAN, 0)
        yield self.beat(1, want_fence=True)
        yield self.elect(PREFERRED, 0, 1)
        yield self.elect(UNCLEAN, 3)
        yield self.alter(0, [2, 3, 1], 1, 4, by=2)  # the fenced one
        yield self.beat(1)
        yield self.elect(PREFERRED, 0)  # it is not in sync yet
        yield self.alter(0, [2, 3, 1], 1, 4, by=2)
        yield self.elect(PREFERRED, everywhere=True)
        yield self.elect(PREFERRED, everywhere=True)

    # ------------------------------------------------------------ reassignment

    def move(self, *moves: tuple[int, Sequence[int] | None], topic: str = TOPIC, keeps_factor: bool = False) -> Said:
        wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
        partitions = [
            wanted.ReassignablePartition(partition_index=index, replicas=None if target is None else list(target))
            for index, target in moves
        ]
        request = AlterPartitionReassignmentsRequest(
            allow_replication_factor_change=not keeps_factor, topics=[wanted(name=topic, partitions=partitions)]
        )
        response = self._ask(request, 1)
        said = [
            (each.partition_index, each.error_code, each.error_message)
            for entry in response.responses
            for each in entry.partitions
        ]
        return f"move {moves}", (response.error_code, said)

    def listed(self) -> Said:
        response = self._ask(ListPartitionReassignmentsRequest(topics=None), 0)
        said = [
            (each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
            for topic in response.topics
            for each in topic.partitions
        ]
        return "listed", (response.error_code, sorted(said))

    def moves(self) -> Iterator[Said]:
        yield self.move((0, [1]), topic="nope")
        yield self.move((9, [1]), (0, [8]), (0, []), (0, [1, 1]), (3, None))
        yield self.move((3, [1, 2]), keeps_factor=True)
        yield self.move((0, [2, 1, 3]))  # another order
        yield self.move((3, [4]))
        yield self.listed()
        yield self.move((3, [4, 3]))  # to other brokers, during the first reassignment
        yield self.listed()
        yield self.move((3, None))
        yield self.listed()
        yield self.move((3, [4, 3]))
        yield self.move((2, [4, 1, 2]))
        yield self.listed()
        yield from self.guessed(2, [3, 1, 2, 4])  # its leader leaves
        yield from self.guessed(3, [1, 2, 3, 4])
        yield from self.guessed(3, [4])
        yield self.listed()
        yield self.move((4, [2]))  # at once
        yield self.move((4, [2, 4]))
        yield self.listed()
        yield self.move((4, [2, 4]))
        yield self.move((4, [2, 1]))
        yield self.move((4, None))
        yield self.listed()
        yield self.move((0, [4]))
        yield self.move((0, [1, 2]))  # to some of its previous replicas
        yield self.listed()
        yield from self.guessed(0, [1, 2, 3, 4])
        yield self.listed()
        yield self.move((0, None))
        yield self.listed()

    def guessed(self, index: int, isr: Sequence[int]) -> Iterator[Said]:
        """Changes an ISR with the partition's current epochs."""
        for leader in (1, 2, 3, 4):
            for leader_epoch in range(5):
                for partition_epoch in range(10):
                    yield self.alter(index, isr, leader_epoch, partition_epoch, by=leader)

    # ------------------------------------------------------------ directories, producer ids, controllers

    def assign(self, broker_id: int, *assignments: tuple[bytes, int], epoch: int | None = None, **topic: bytes) -> Said:
        data = AssignReplicasToDirsRequest.DirectoryData
        topic_id = topic.get("topic_id", self.topic_id)
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id,
            broker_epoch=self.epochs.get(broker_id, -1) if epoch is None else epoch,
            directories=[
                data(
                    id=log_dir,
                    topics=[
                        data.TopicData(
                            topic_id=topic_id, partitions=[data.TopicData.PartitionData(partition_index=index)]
                        )
                    ],
                )
                for log_dir, index in assignments
            ],
        )
        response = self._ask(request, 0)
        said = [each.topics[0].partitions[0].error_code for each in response.directories]
        return f"assign {broker_id} {[index for _, index in assignments]}", (response.error_code, said)

    def directories(self) -> Iterator[Said]:
        yield self.assign(9, (directory(9), 0))
        yield self.assign(1, (directory(1), 0), epoch=3)
        yield self.assign(1, (directory(1), 0), topic_id=bytes([9]) * 16)
        yield self.assign(2, (directory(2), 0), (directory(2, 1), 1), (directory(2), 2), (directory(2), 9))
        yield self.assign(1, (directory(1), 4))
        yield self.assign(2, (directory(2), 0))
        yield self.beat(2, offline_log_dirs=[directory(2, 1)])
        yield self.beat(2, offline_log_dirs=[directory(2, 1)])
        yield self.assign(2, (directory(2, 1), 0))  # into one that has failed

    def others(self) -> Iterator[Said]:
        for broker_id, epoch in ((1, self.epochs[1]), (2, self.epochs[2]), (1, 5), (9, 5)):
            request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
            block = self._ask(request, 0)
            yield f"producer ids {broker_id}", (block.error_code, block.producer_id_start, block.producer_id_len)
        listener = ControllerRegistrationRequest.Listener(
            name="CONTROLLER", host="127.0.0.1", port=9999, security_protocol=0
        )
        feature = ControllerRegistrationRequest.Feature(
            name="metadata.version", min_supported_version=7, max_supported_version=30
        )
        request = ControllerRegistrationRequest(
            controller_id=5, incarnation_id=bytes([5]) * 16, listeners=[listener], features=[feature]
        )
        response = self._ask(request, 0)
        yield "controller", (response.error_code, response.error_message)

    # ------------------------------------------------------------ ends

    def shutdown(self) -> Iterator[Said]:
        yield self.beat(1)
        yield self.beat(2, offset=1)
        yield self.beat(3)
        yield self.beat(1, want_shut_down=True)
        yield self.beat(1, want_shut_down=True)  # the second one does not know yet
        yield self.alter(1, [2, 3, 1], 0, 0, by=2)
        yield self.beat(2)
        yield self.beat(1, want_shut_down=True)
        yield self.beat(1)

    def fencing(self) -> Iterator[Said]:
        yield self.beat(3, want_fence=True)
        yield self.beat(2, want_fence=True)
        yield self.elect(UNCLEAN, 0, 1, 2, 3)
        yield self.beat(3)
        yield self.elect(UNCLEAN, 0, 1, 2, 3)
        yield self.beat(2)
        yield self.elect(PREFERRED, everywhere=True)

    def crash(self) -> Iterator[Said]:
        yield self.beat(3, want_fence=True)
        yield self.unregister(9)
        yield self.unregister(3)
        yield self.beat(3)
        yield self.register(3, 3)
        yield self.beat(3)

    def unregister(self, broker_id: int) -> Said:
        response = self._ask(UnregisterBrokerRequest(broker_id=broker_id), 0)
        return f"unregister {broker_id}", (response.error_code, response.error_message)

    def end(self) -> Iterator[Said]:
        yield self.beat(2, want_fence=True, want_shut_down=True)
        yield self.beat(3, want_shut_down=True)
