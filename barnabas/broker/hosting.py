"""The partitions that this node hosts: created, configured and removed as the metadata image says.

Knows nothing of clients: it creates logs and :class:`Partition` objects from the metadata image.

A log is a directory with four files, which takes milliseconds on a slow file system. Of a change of the metadata with
many new replicas, only the first :data:`AT_ONCE` get their logs before the change is answered. The others get them in
later turns of the loop, so that clients and the quorum go on; until then they are answered NOT_LEADER_OR_FOLLOWER, as
by an Apache Kafka broker that has not applied the change yet.
"""

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.lifecycle import State
from barnabas.broker.new_replicas import Key, NewReplicas
from barnabas.cluster.image.image import (
    UNASSIGNED_DIRECTORY,
    MetadataDelta,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from barnabas.cluster.quorum.client import NO_NODE
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.topic_names import CLUSTER_METADATA, INTERNAL
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.config.profile import topic_notices
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.records.validation import ProducePolicy

if TYPE_CHECKING:
    from barnabas.broker.isr_changes import IsrChanges, LeadingNode
    from barnabas.broker.replica_fetchers import FollowingNode, ReplicaFetchers

    class HostingNode(FollowingNode, LeadingNode, Protocol):
        """The broker that hosts: it leads some partitions, and follows in others."""


logger = logging.getLogger(__name__)

AT_ONCE: Final = 128


class Hosting:
    """The hosted partitions. The hot path reads :attr:`partitions` and :attr:`partitions_by_id`."""

    def __init__(self, node: "HostingNode", log_manager: LogManager) -> None:
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.partitions_by_id: dict[tuple[bytes, int], Partition] = {}
        self._node = node
        self._node_id = node.node_id
        self._log_manager = log_manager
        self._fetchers: ReplicaFetchers | None = None  #: None where no other node leads
        self._isr_changes: IsrChanges | None = None  #: None where no partition has followers
        self._read_traffic: Callable[[Partition], object] | None = None
        self.incarnation_id: bytes | None = None  #: of this process, in its registration
        self._is_known = False  # whether the metadata have had that
        #: Called when replicas that were new in earlier changes of the metadata have all got their logs.
        self.on_hosted: Callable[[], object] = lambda: None
        self._new_replicas = NewReplicas(
            self._host_new, lambda: self.on_hosted(), node.cluster_clock, node.cluster_scheduler
        )

    # ------------------------------------------------------------ the whole image

    def topic_config(self, topic: str, image: MetadataImage, config: BrokerConfig) -> TopicConfig:
        """Returns the effective config of a topic."""
        return config.topic(image.configs_of(TOPIC_RESOURCE, topic))

    def is_stray(self, log: PartitionLog, image: MetadataImage) -> bool:
        """Returns whether a log on the disk is no longer a replica of this node."""
        if log.topic == CLUSTER_METADATA:
            return False
        topic = image.topics_by_name.get(log.topic)
        partition = None if topic is None else topic.partitions.get(log.partition)
        if topic is None or partition is None or self._node_id not in partition.replicas:
            return True
        return any(log.topic_id) and log.topic_id != topic.id

    def assigned_directory(self, log: PartitionLog, image: MetadataImage) -> bytes | None:
        """Returns the id of the log directory that the metadata assigns; None for an unknown partition."""
        topic = image.topics_by_name.get(log.topic)
        partition = None if topic is None else topic.partitions.get(log.partition)
        return None if partition is None else self._directory_of(partition)

    def _directory_of(self, partition: PartitionImage) -> bytes | None:
        """Returns the directory of this node's replica."""
        return dict(zip(partition.replicas, partition.directories, strict=True)).get(self._node_id)

    def misplaced(self, image: MetadataImage, delta: MetadataDelta | None = None) -> list[tuple[bytes, int, bytes]]:
        """Returns topic id, partition and actual directory id of replicas that the metadata assigns to another
        directory.

        Limited to the partitions that ``delta`` has changed, if given. Leaves out a replica that is about to be there.
        """
        manager, found = self._log_manager, []
        changed = delta.partitions if delta is not None else image.topics_by_id.keys()
        for topic_id in changed:
            topic = image.topics_by_id[topic_id]
            for index in delta.partitions[topic_id] if delta is not None else topic.partitions:
                partition = self.partitions.get((topic.name, index))
                if partition is None or partition.log.is_offline:
                    continue
                directory_id = partition.log.log_directory.directory_id
                assigned = self._directory_of(topic.partitions[index])
                move = manager.moves.under_way.get((topic.name, index))
                if move is not None and move.is_announced and move.future.log_directory.directory_id == assigned:
                    continue
                if assigned != directory_id:
                    found.append((topic_id, index, directory_id))
        return found

    def arrived(self, log: PartitionLog) -> None:
        """Switches a partition to its log in another directory."""
        partition = self.partitions.get((log.topic, log.partition))
        if partition is not None:
            partition.use_log(log)

    def host_all(self, image: MetadataImage, config: BrokerConfig) -> None:
        for topic in image.topics_by_id.values():
            self._host(topic, topic.partitions, image, config)

    def count_traffic(self, read: Callable[[Partition], object]) -> None:
        """Counts what leaders append from now on.

        :param read: is called with a partition that is removed, before its counts are gone
        """
        self._read_traffic = read
        for partition in self.partitions.values():
            partition.count_traffic()

    # ------------------------------------------------------------ changes

    def follow(self, image: MetadataImage, delta: MetadataDelta, config: BrokerConfig, *, all_changed: bool) -> None:
        """Applies a change of the metadata. ``all_changed``: the broker's defaults have changed."""
        for topic in delta.deleted_topics.values():
            for index in topic.partitions:
                partition = self.partitions_by_id.get((topic.id, index))
                if partition is not None:
                    self._remove(partition, UnknownTopicOrPartition())
        if not self._is_known and self._has_registered(image):
            self._is_known = True
            self._host_changed(image, delta, config)
            self._lead_late()
        else:
            self._host_changed(image, delta, config)
        changed = {name for kind, name in delta.configs if kind == TOPIC_RESOURCE} & image.topics_by_name.keys()
        for name in image.topics_by_name if all_changed else changed:
            self._configure(image.topics_by_name[name], image, config)
        if all_changed and self._fetchers is not None:
            self._fetchers.resize()
        for name in sorted(changed):
            for notice in topic_notices(name, image.configs_of(TOPIC_RESOURCE, name)):
                logger.warning("%s", notice)

    def _host_changed(self, image: MetadataImage, delta: MetadataDelta, config: BrokerConfig) -> None:
        """Hosts the partitions that have changed, or has them hosted later. Those that wait already go on waiting.

        Coordinators expect the logs of the internal topics at once.
        """
        at_once, later = AT_ONCE, list[Key]()
        for topic_id, changed in delta.partitions.items():
            topic = image.topics_by_id[topic_id]
            indexes = [index for index in sorted(changed) if (topic_id, index) not in self._new_replicas]
            if topic.name not in INTERNAL:
                new = [index for index in indexes if self._is_new(topic, index)]
                waiting = frozenset(new[at_once:])
                at_once = max(at_once - len(new), 0)
                if waiting:
                    later += [(topic_id, index) for index in indexes if index in waiting]
                    indexes = [index for index in indexes if index not in waiting]
            self._host(topic, indexes, image, config)
        self._new_replicas.add(later)

    def _is_new(self, topic: TopicImage, index: int) -> bool:
        return self._node_id in topic.partitions[index].replicas and (topic.name, index) not in self.partitions

    def _host_new(self, key: Key) -> None:
        """Hosts a replica that has waited, if the metadata still has it."""
        topic_id, index = key
        image = self._node.image
        topic = image.topics_by_id.get(topic_id)
        if topic is not None and index in topic.partitions and self._is_new(topic, index):
            self._host(topic, [index], image, self._node.config)

    def is_waiting(self, topic_id: bytes, index: int) -> bool:
        """Returns whether a replica is new here and has no log yet."""
        return (topic_id, index) in self._new_replicas

    def is_ready(self, name: str) -> bool:
        """Returns whether the node knows the topic, and has the logs of all its replicas of it."""
        topic = self._node.image.topics_by_name.get(name)
        return topic is not None and not any(self.is_waiting(topic.id, index) for index in topic.partitions)

    def _host(self, topic: TopicImage, indexes: Iterable[int], image: MetadataImage, config: BrokerConfig) -> None:
        topic_config = self.topic_config(topic.name, image, config)
        policy = ProducePolicy.of(topic_config)
        for index in sorted(indexes):
            of_image = topic.partitions[index]
            partition = self.partitions.get((topic.name, index))
            if self._node_id not in of_image.replicas:
                if partition is not None:
                    self._remove(partition, NotLeaderOrFollower())
                continue
            if partition is None:
                try:
                    log = self._log_manager.create(
                        topic.name,
                        index,
                        topic.id,
                        topic_config,
                        directory_id=self._directory_of(of_image),
                        is_new=self._has_no_log(of_image),
                    )
                except KafkaStorageError as error:
                    logger.error("Cannot host %s-%d: %s", topic.name, index, error)
                    continue
                partition = Partition(topic.name, topic.id, index, self._node_id, log, policy, self._replication)
                if self._read_traffic is not None:
                    partition.count_traffic()
                self.partitions[topic.name, index] = self.partitions_by_id[topic.id, index] = partition
            if of_image.leader == self._node_id and self._may_lead(of_image):
                self._stop_fetching(partition)
                partition.become_leader(of_image)
            else:
                partition.become_follower(of_image)
                self._fetch(partition, of_image)

    # ------------------------------------------------------------ what an earlier process led

    def _has_registered(self, image: MetadataImage) -> bool:
        own = image.brokers.get(self._node_id)
        return own is not None and own.incarnation_id == self.incarnation_id

    def _may_lead(self, of_image: PartitionImage) -> bool:
        """Returns whether this process is the leader. Before its registration, an earlier one of this broker is.

        A power cut may have taken records from its log since: as a leader it would begin its epoch at another offset
        than it has begun, and as a follower find no difference from the next leader's log. An Apache Kafka broker
        applies no metadata before its registration (``BrokerLifecycleManager.initialCatchUpFuture``).
        """
        return self._is_known or len(of_image.replicas) == 1

    def _lead_late(self) -> None:
        """Leads what this broker led before its registration, and leads still."""
        for partition in self.partitions.values():
            if not partition.leads and partition.image.leader == self._node_id:
                partition.become_leader(partition.image)

    def _has_no_log(self, of_image: PartitionImage) -> bool:
        """Returns whether the replica is new: no directory, online or offline, can have a log of it.

        (``Partition.createLogInAssignedDirectoryId``)
        """
        online = [each.directory_id for each in self._log_manager.online_directories]
        return of_image.partition_epoch == 0 or self._directory_of(of_image) in (UNASSIGNED_DIRECTORY, *online)

    def _replication(self) -> "IsrChanges":
        if self._isr_changes is None:
            from barnabas.broker.isr_changes import IsrChanges

            self._isr_changes = IsrChanges(self._node)
        return self._isr_changes

    def _fetch(self, partition: Partition, of_image: PartitionImage) -> None:
        """Fetches a partition from its leader, if it has one.

        A broker in a controlled shutdown that has left the ISR does not join it again
        (``ReplicaManager.applyLocalFollowersDelta``).
        """
        if of_image.leader in (NO_NODE, self._node_id) or partition.log.is_offline or self._is_leaving(of_image):
            self._stop_fetching(partition)
            return
        if self._fetchers is None:
            from barnabas.broker.replica_fetchers import ReplicaFetchers

            self._fetchers = ReplicaFetchers(self._node)
        self._fetchers.follow(partition)

    def _is_leaving(self, of_image: PartitionImage) -> bool:
        return self._node_id not in of_image.isr and self._node.lifecycle.state is State.PENDING_CONTROLLED_SHUTDOWN

    def registered(self) -> None:
        """Fetches what this broker follows, from the registration on."""
        if self._fetchers is not None:
            self._fetchers.registered()

    def _stop_fetching(self, partition: Partition) -> None:
        if self._fetchers is not None:
            self._fetchers.stop(partition)

    def directory_failed(self) -> None:
        """Stops fetching the partitions of a failed log directory."""
        for partition in self.partitions.values():
            if partition.log.is_offline:
                self._stop_fetching(partition)

    def close(self) -> None:
        """Stops hosting and fetching, and checking followers."""
        self._new_replicas.close()
        if self._fetchers is not None:
            self._fetchers.close()
        if self._isr_changes is not None:
            self._isr_changes.close()

    def _configure(self, topic: TopicImage, image: MetadataImage, config: BrokerConfig) -> None:
        topic_config = self.topic_config(topic.name, image, config)
        policy = ProducePolicy.of(topic_config)
        for index in topic.partitions:
            partition = self.partitions.get((topic.name, index))
            if partition is not None:
                self._log_manager.update_config(partition.log, topic_config)
                partition.produce_policy = policy
                if self._fetchers is not None:
                    self._fetchers.reconfigured(partition)

    def _remove(self, partition: Partition, error: KafkaError) -> None:
        """Deletes a partition and its log. Waiting requests get the error."""
        key = partition.index
        del self.partitions[partition.topic, key], self.partitions_by_id[partition.topic_id, key]
        self._stop_fetching(partition)
        partition.close(error)
        if self._read_traffic is not None:
            self._read_traffic(partition)
        self._log_manager.delete_async(partition.log)
