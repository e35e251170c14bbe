"""Invariants over all nodes at every moment, under any faults.

Reads the nodes, and changes nothing. The rules are Raft's for the metadata log, and Kafka's for partitions:
- an epoch has one leader, and a voter votes for one candidate in it;
- a voter's epoch never decreases, even by a restart: it is fsynced before the voter sends anything in it;
- committed records are equal at the same offset on all nodes that know them to be committed, and the leader of the
newest epoch has all of them;
- a majority of the voters has what is committed, since their set is this one (KIP-853);
- the high watermark and the log start offset of a running node never decrease, and no log is truncated below the high
watermark; where a power cut may have undone a truncation, these and the comparison begin when the process has been in
sync;
- all replicas of the maximal ISR have all committed records, unless the controller refuses them (KIP-903);
- leader epochs and partition epochs increase; the ISR consists of replicas; the leader is in it; none is fenced, but
for the last one of a partition without a leader;
- compacted logs are equal record by record, and have the latest of each key;
- a coordinator is active on the leader of its partition, in the leader's epoch: there are no two in one epoch.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from barnabas.broker import Broker
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.quorum.elections import Leader
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.replication.followers import Followers
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.topic_names import CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE
from barnabas.coordinators.shard import State
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import RecordBatch, batches
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.compacted import Content, contents, lost
from tests.simulation.loop import Life
from tests.simulation.node import SimulatedNode
from tests.simulation.votes import Votes

Place = tuple[str, int]
METADATA: Place = (CLUSTER_METADATA, 0)
COMPACTED = (CONSUMER_OFFSETS, TRANSACTION_STATE)
"""The internal topics with the policy "compact"."""


class Broken(AssertionError):
    """An invariant does not hold."""


class Known:
    """The observed state of one process."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.turns = -1  #: of its life, when it was checked last
        self.high_watermarks: dict[Place, int] = {}
        self.starts: dict[Place, int] = {}
        self.logs: dict[Place, PartitionLog] = {}
        self.partitions: dict[Place, tuple[object, ...]] = {}  #: as of the last check
        self.read: dict[Place, int] = {}  #: the offset up to which its log was compared
        self.image: MetadataImage | None = None
        self.epochs: dict[Place, int] = {}
        self.voter: tuple[object, ...] = ()  #: as of the last check
        self.joined: set[Place] = set()  #: the partitions in whose ISR it has been


class Invariants:
    """The invariants over a cluster. :meth:`check` is called repeatedly."""

    def __init__(self, cluster: SimulatedCluster, *, compacts: bool = False) -> None:
        """:param compacts: whether the logs of the internal topics with that policy are compacted"""
        self.cluster = cluster
        self.votes = Votes(cluster)
        self._compacted = COMPACTED if compacts else ()
        self.checks = 0
        self._epochs: dict[tuple[int, int], int] = {}  # of the quorum, by node and disk
        self._known: dict[int, Known] = {}
        self._leaders: dict[tuple[Place, int], int] = {}  # by place and epoch
        self._committed: dict[Place, dict[int, Any]] = {}  # batches by their first offset; records of compacted logs
        self._ends: dict[Place, int] = {}  # the ends of committed records
        self._states: dict[tuple[Place, int], Any] = {}  # by place and partition epoch
        self._newest: dict[Place, int] = {}  # leader epoch
        self._seen: list[tuple[object, ...]] = []  # process, image and epoch of each node

    def check(self) -> None:
        """Checks the changes since the last call. :raises Broken: an invariant does not hold"""
        self.checks += 1
        if self.votes.doubled:
            raise Broken(self.votes.doubled[0])
        changed: set[Place] = set()
        nodes = list(self._nodes())
        has_changed = self._see_nodes(nodes)
        for node, server_node in nodes:
            known = self._known[node.id]
            if known.turns == known.life.turns:
                continue  # nothing of it has run since
            known.turns = known.life.turns
            self._check_voter(node, server_node, known)
            if isinstance(server_node, Broker):
                self._check_image(node, server_node.image, known)
                if server_node._hosts:
                    self._check_coordinators(node, server_node)
                self._check_partitions(node, server_node, known, changed)
        for _, server_node in nodes:
            if not isinstance(server_node, Broker) or not is_registered(server_node, server_node.image):
                continue
            partitions = server_node.partitions
            for place in list(partitions) if has_changed else changed:
                partition = partitions.get(place)
                if partition is not None and partition.leads and partition.leader_epoch == self._newest.get(place):
                    self._check_leader(server_node, partition, place)

    def _see_nodes(self, nodes: list[tuple[SimulatedNode, Any]]) -> bool:
        """Returns whether a process, its registration or its image has changed since the last check."""
        seen: list[tuple[object, ...]] = []
        for node, server_node in nodes:
            known = self._known.get(node.id)
            if known is None or known.life is not node.life:
                assert node.life is not None
                self._known[node.id] = Known(node.life)
            is_broker = isinstance(server_node, Broker)
            seen.append((node.life, server_node.image if is_broker else None, server_node.epoch if is_broker else -1))
        before, self._seen = self._seen, seen
        return len(before) != len(seen) or any(
            mine[0] is not other[0] or mine[1] is not other[1] or mine[2] != other[2]
            for mine, other in zip(before, seen, strict=True)
        )

    def _nodes(self) -> Iterator[tuple[SimulatedNode, Any]]:
        for node in self.cluster.nodes.values():
            server_node = None if node.process is None else getattr(node.process, "node", None)
            if node.life is not None and getattr(server_node, "metadata", None) is not None:
                yield node, server_node

    # ------------------------------------------------------------ the quorum

    def _check_voter(self, node: SimulatedNode, server_node: Any, known: Known) -> None:
        voter = server_node.quorum
        if not isinstance(voter, RaftVoter):
            return
        state, high_watermark, log = voter.elections.state, voter.high_watermark, voter.metadata_log.log
        seen = (voter.elections.high_watermark, high_watermark, log.log_end_offset, state, log)
        if known.voter == seen:
            return
        known.voter = seen
        if voter._is_following:  # what was stored has been read
            self._check_epoch(node, voter.elections.epoch)
        if isinstance(state, Leader):
            self._one_leader(METADATA, state.elected.epoch, node.id)
            if 0 < voter.elections.high_watermark <= state.start_offset:
                raise Broken(f"{node.id} commits {voter.elections.high_watermark} without a record of its epoch")
            self._check_majority(node, voter)
        if high_watermark is not None:
            self._check_log(node, log, METADATA, high_watermark, known)

    def _check_majority(self, node: SimulatedNode, voter: RaftVoter) -> None:
        """Checks that a majority of the voters has what the leader has committed, as far as they run.

        What is older than the newest set of voters was committed by a majority of another set.
        """
        end, voters = voter.elections.high_watermark, voter.voters()
        if end <= voter.latest_voters()[0]:
            return
        running = {each.id: server_node.quorum for each, server_node in self._nodes() if each.id in voters}
        lagging = sorted(each for each, other in running.items() if other.metadata_log.log.log_end_offset < end)
        if len(lagging) > (len(voters) - 1) // 2:
            raise Broken(f"{node.id} commits {end} of the metadata log; of the voters {sorted(voters)}, {lagging} lag")

    def _check_epoch(self, node: SimulatedNode, epoch: int) -> None:
        """Checks that a voter's epoch does not decrease, unless it runs on an older copy of its disk."""
        before = self._epochs.get((node.id, node.disk), -1)
        if epoch < before:
            raise Broken(f"the epoch of the quorum goes back from {before} to {epoch} on {node.id}")
        self._epochs[node.id, node.disk] = epoch

    def _one_leader(self, place: Place, epoch: int, node_id: int) -> None:
        other = self._leaders.setdefault((place, epoch), node_id)
        if other != node_id:
            raise Broken(f"{other} and {node_id} lead {name(place)} in epoch {epoch}")

    # ------------------------------------------------------------ logs

    def _check_log(self, node: SimulatedNode, log: PartitionLog, place: Place, end: int, known: Known) -> None:
        if known.logs.setdefault(place, log) is not log:  # the replica was removed and added again
            known.logs[place] = log
            known.high_watermarks.pop(place, None)
            known.starts.pop(place, None)
            known.read.pop(place, None)
        before = known.high_watermarks.get(place, -1)
        if end < before:
            raise Broken(f"the high watermark of {name(place)} goes back from {before} to {end} on {node.id}")
        if log.log_end_offset < before:
            raise Broken(f"{name(place)} is cut off at {log.log_end_offset} on {node.id}; {before} was committed")
        if log.log_start_offset < known.starts.get(place, 0):
            raise Broken(f"the start of {name(place)} goes back to {log.log_start_offset} on {node.id}")
        known.high_watermarks[place], known.starts[place] = end, log.log_start_offset
        self._compare(node, log, place, end, known)
        self._ends[place] = max(end, self._ends.get(place, 0))

    def _compare(self, node: SimulatedNode, log: PartitionLog, place: Place, end: int, known: Known) -> None:
        """Compares the log from the last comparison up to ``end`` with those of the other nodes."""
        at = max(known.read.get(place, 0), log.log_start_offset)
        committed = self._committed.setdefault(place, {})
        while at < end and not log.is_offline:
            data = log.read(at, 1 << 20, up_to=end, minimum_one=True)
            found = list(batches(memoryview(data)))
            if not found:
                if place[0] in self._compacted or self._is_within_batch(log, at, end):
                    break  # the newer records of all keys are above a high watermark that was read from its checkpoint
                raise Broken(f"{name(place)} has nothing at {at} on {node.id}; it is committed up to {end}")
            for batch in found:
                for offset, content in self._contents(batch, place):
                    if committed.setdefault(offset, content) != content:
                        raise Broken(f"{name(place)} has other records at {offset} on {node.id}")
                at = max(at, batch.last_offset + 1)
        known.read[place] = max(known.read.get(place, 0), at)

    @staticmethod
    def _is_within_batch(log: PartitionLog, at: int, end: int) -> bool:
        """Returns whether the batch at ``at`` ends at ``end`` or later.

        DeleteRecords may have moved the leader's log start offset into a batch. The log of a follower that begins there
        has the whole batch, and after a kill it begins with it, while the checkpoint has the offset in it.
        """
        data = log.read(at, 1, up_to=log.log_end_offset, minimum_one=True)
        return any(batch.base_offset <= at and batch.last_offset >= end for batch in batches(memoryview(data)))

    def _contents(self, batch: RecordBatch, place: Place) -> Iterable[tuple[int, Content | bytes]]:
        """Returns what is compared: the batch, or its records where compaction may have removed some."""
        return contents(batch) if place[0] in self._compacted else ((batch.base_offset, bytes(batch.buffer)),)

    def conclude(self) -> None:
        """Checks what holds at the end. :raises Broken: a compacted log lacks a record"""
        for node, server_node in self._nodes():
            for place in [each for each in self._committed if each[0] in self._compacted]:
                partition = server_node.partitions.get(place) if isinstance(server_node, Broker) else None
                if partition is not None and not partition.log.is_offline:
                    offset = lost(partition.log, self._committed[place], partition.log.high_watermark)
                    if offset is not None:
                        raise Broken(f"{name(place)} has lost the latest record of a key, at {offset} on {node.id}")

    # ------------------------------------------------------------ partitions

    def _check_partitions(self, node: SimulatedNode, broker: Broker, known: Known, changed: set[Place]) -> None:
        """Checks the partitions that have changed, and adds them to ``changed``."""
        before = known.partitions
        for place, partition in broker.partitions.items():
            log, followers = partition.log, partition.followers
            state = (
                log.high_watermark,
                log.log_end_offset,
                partition.leader_epoch,
                partition.leads,
                log,
                None if followers is None else followers._maximal_isr,
            )
            if before.get(place) != state and not log.is_offline:
                before[place] = state
                changed.add(place)
                self._check_partition(node, broker, partition, place, known)

    @staticmethod
    def _has_joined(broker: Broker, place: Place, known: Known) -> bool:
        """Returns whether the process has been in sync. Before, a power cut may have undone a truncation of its log."""
        if place not in known.joined and is_registered(broker, broker.image):
            state = broker.image.partition(*place)
            if state is not None and broker.node_id in state.isr:
                known.joined.add(place)
        return place in known.joined

    def _check_partition(
        self, node: SimulatedNode, broker: Broker, partition: Partition, place: Place, known: Known
    ) -> None:
        log = partition.log
        if not node.has_forgotten or self._has_joined(broker, place, known):
            self._check_log(node, log, place, log.high_watermark, known)
        if partition.leader_epoch < known.epochs.get(place, -1):
            raise Broken(f"the leader epoch of {name(place)} goes back to {partition.leader_epoch} on {node.id}")
        known.epochs[place] = partition.leader_epoch
        if partition.leads:
            self._one_leader(place, partition.leader_epoch, node.id)
            if partition.leader_epoch > self._newest.get(place, -1):
                self._newest[place] = partition.leader_epoch
                self.cluster.network.say(
                    f"{node.id} leads {name(place)} in epoch {partition.leader_epoch} from {log.log_end_offset} "
                    f"(high watermark {log.high_watermark}, committed {self._ends.get(place, 0)})"
                )

    def _check_leader(self, broker: Broker, partition: Partition, place: Place) -> None:
        """Checks the leader of the newest epoch, and its ISR."""
        end = self._ends.get(place, 0)
        log = partition.log
        if log.is_offline:
            return
        if log.log_end_offset < end:
            raise Broken(f"{broker.node_id} leads {name(place)} and ends at {log.log_end_offset}, not {end}")
        node = self.cluster.nodes[broker.node_id]
        self._compare(node, log, place, end, self._known[node.id])
        if partition.followers is None:
            return
        for follower in partition.followers._maximal_isr:
            other = self.cluster.nodes[follower].process
            found = None if other is None else getattr(other, "node", None)
            if not isinstance(found, Broker) or not is_registered(found, broker.image):
                continue  # it is down, or was restarted
            if is_refused(partition.followers, follower, found.epoch):
                continue
            copy = found.partitions.get(place)
            if copy is None or has_left(copy, partition):
                continue
            if not copy.log.is_offline and copy.log.log_end_offset < end:
                raise Broken(
                    f"{follower} is in sync with {broker.node_id} for {name(place)} and ends at "
                    f"{copy.log.log_end_offset}; {end} is committed"
                )

    # ------------------------------------------------------------ metadata

    def _check_image(self, node: SimulatedNode, image: MetadataImage, known: Known) -> None:
        before, known.image = known.image, image
        if before is image:
            return
        if before is not None and image.offset < before.offset:
            raise Broken(f"the metadata go back from {before.offset} to {image.offset} on {node.id}")
        for topic in image.topics_by_id.values():
            for index, part in topic.partitions.items():
                place = (topic.name, index)
                state = (part.leader, part.leader_epoch, part.isr, part.replicas)
                if self._states.setdefault((place, part.partition_epoch), state) != state:
                    raise Broken(f"{name(place)} has two states in partition epoch {part.partition_epoch}")
                if not set(part.isr) <= set(part.replicas):
                    raise Broken(f"the ISR {part.isr} of {name(place)} is not within {part.replicas}")
                if part.leader >= 0 and part.leader not in part.isr:
                    raise Broken(f"the leader {part.leader} of {name(place)} is not in the ISR {part.isr}")
                fenced = [each for each in part.isr if each not in image.brokers or image.brokers[each].fenced]
                is_last = part.leader < 0 and len(part.isr) == 1  # it stays without eligible leader replicas (KIP-966)
                if fenced and not is_last:
                    raise Broken(f"{fenced} are fenced, and in the ISR {part.isr} of {name(place)}")
                old = None if before is None else before.topics_by_id.get(topic.id)
                if old is not None and index in old.partitions:
                    self._check_epochs(place, old.partitions[index], part)

    # ------------------------------------------------------------ coordinators

    def _check_coordinators(self, node: SimulatedNode, broker: Broker) -> None:
        for runtime in broker.coordinators._runtimes():
            for context in runtime._contexts.values():
                if context.state is not State.ACTIVE:
                    continue
                place = (runtime.topic, context.index)
                partition = broker.partitions.get(place)
                if partition is None or not partition.leads or partition.leader_epoch != context.epoch:
                    raise Broken(f"{node.id} is the coordinator of {name(place)} in epoch {context.epoch}: {partition}")

    @staticmethod
    def _check_epochs(place: Place, old: Any, new: Any) -> None:
        if new.partition_epoch < old.partition_epoch or new.leader_epoch < old.leader_epoch:
            raise Broken(f"the epochs of {name(place)} go back: {old} to {new}")
        if new.leader != old.leader and new.leader_epoch == old.leader_epoch:
            raise Broken(f"{name(place)} has another leader in the epoch {new.leader_epoch}")


def is_refused(followers: Followers, broker_id: int, broker_epoch: int) -> bool:
    """Returns whether the ISR is proposed with an earlier process of that follower, which is refused (KIP-903).

    The log of the running process may be shorter.
    """
    change = followers._change
    if broker_id in followers.isr or change is None:
        return False
    return change.isr.get(broker_id, -1) not in (-1, broker_epoch)


def has_left(copy: Partition, leader: Partition) -> bool:
    """Returns whether the follower knows that it is out of the ISR, and the leader does not yet.

    It may have been removed as a replica, and added again with an empty log, from which it fetches in a later epoch.
    """
    here, there = copy.image, leader.image
    return here.partition_epoch > there.partition_epoch and copy.node_id not in here.isr


def is_registered(broker: Broker, image: MetadataImage) -> bool:
    """Returns whether that process is the registered one: an earlier one is not checked."""
    known = image.brokers.get(broker.node_id)
    return known is not None and not known.fenced and known.epoch == broker.epoch


def name(place: Place) -> str:
    """Returns the partition's name."""
    return f"{place[0]}-{place[1]}"
