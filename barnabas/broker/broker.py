"""One node: its metadata, logs, hosted partitions, groups and transactions.

Knows nothing of requests, responses or sockets. :attr:`Broker.image` is the committed state of the cluster; the hosted
partitions follow it.
"""

import logging
from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators import Coordinators
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.hosting import Hosting
from barnabas.broker.marker_sender import MarkerSender
from barnabas.broker.node import Node, changes_brokers
from barnabas.broker.nodes import Nodes
from barnabas.broker.producer_ids import ProducerIds
from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller.commands import (
    AllocateProducerIds,
    AssignReplicasToDirs,
    BrokerHeartbeat,
    RegisterBroker,
)
from barnabas.cluster.controller.controller import Done, logged
from barnabas.cluster.features import DIRECTORIES, METADATA_VERSION
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.cluster.internal_topics import log_single_node_defaults
from barnabas.cluster.replication.partition import Partition
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.log.log_directory import LogDirectory, LogDirectoryError
from barnabas.log.partition_log import PartitionLog
from barnabas.peers.peers import Peers
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.uuids import random_uuid

if TYPE_CHECKING:
    from barnabas.broker.controller_channel import ControllerChannel
    from barnabas.broker.persister import Persister
    from barnabas.broker.share_partitions import SharePartitions
    from barnabas.share.coordinator import ShareCoordinator

logger = logging.getLogger(__name__)

FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session is not evicted in favour of another. Apache Kafka has no config for it."""


MAX_ASSIGNMENTS = 2250
"""The most partitions in one command (``AssignReplicasToDirsRequestBuilder``)."""


REGISTERED = logged("the registration of this broker")


class Broker(Node):
    """A node that serves clients. Call :meth:`open`, :meth:`register` and finally :meth:`close`."""

    controller_channel: "ControllerChannel"

    def __init__(
        self, config: BrokerConfig, *, clock: Clock, scheduler: Scheduler, random: Random, peers: Peers, **options: Any
    ) -> None:
        """Takes what :class:`~barnabas.broker.node.Node` takes."""
        super().__init__(config, clock=clock, scheduler=scheduler, random=random, peers=peers, **options)
        self.hosting = Hosting(self, self.log_manager)
        self.partitions = self.hosting.partitions
        self.coordinators: Coordinators
        self._persister: Persister | None = None
        self._share_partitions: SharePartitions | None = None
        self.marker_sender = MarkerSender(peers, lambda: self.image)
        self.fetch_sessions = FetchSessions(
            lambda: self.config["max.incremental.fetch.session.cache.slots"],
            lambda: FETCH_SESSION_EVICTION_MS,
            random,
        )
        self.producer_ids = ProducerIds(
            lambda done: self.controller.submit(AllocateProducerIds(self.node_id, self._epoch), done)
        )
        self.nodes = Nodes(lambda: self.image.brokers)
        self._is_registered = False
        self._registration: RegisterBroker
        self._hosts = False  # whether logs and coordinators are open
        moves = self.log_manager.moves
        moves.bytes_per_second = lambda: self.config["replica.alter.log.dirs.io.max.bytes.per.second"]
        moves.before_promotion = self._assign_directory
        moves.on_promotion = self.hosting.arrived

    # ------------------------------------------------------------ life

    def _opened(self) -> None:
        super()._opened()
        if self.metadata.controller is not None:
            self.open_logs()

    def open_logs(self) -> None:
        """Opens logs and coordinators, and recovers logs after an unclean shutdown.

        :meth:`open` does it on a controller. On other nodes it waits until the image is the whole one: a log without
        a topic would be taken for a stray.

        :raises LogDirectoryError: a partition has two logs
        """
        log_single_node_defaults(self.config)
        image = self.image
        self.log_manager.open_all(
            lambda topic: self.hosting.topic_config(topic, image, self.config),
            lambda log: self.hosting.is_stray(log, image),
            lambda log: self.hosting.assigned_directory(log, image),
        )
        self.hosting.host_all(image, self.config)
        self.coordinators = Coordinators(
            self,
            persister=lambda: self.persister,
            send_markers=self.marker_sender.send,
            next_producer_id=self.producer_ids.next,
        )
        self._hosts = True

    def register(self, ports: Mapping[str, int], done: Done = REGISTERED) -> None:
        """Registers and unfences this node, and starts the coordinators.

        :param ports: the bound ports by listener name
        :param done: called when the registration is committed and the coordinators have started
        """
        endpoints = self.bound(self.config.advertised_listeners, ports)
        directories = self.log_manager.online_directories
        if not directories:
            raise LogDirectoryError("None of the log directories can be used any more")
        if self.config.is_controller:
            # Without a listener of its own, the controller has the address of the broker.
            self._register_controller(
                self.bound(self.config.advertised_controller_listeners, ports)
                or [endpoints[0]._replace(name=self.config.controller_listener_name)],
                logged("the registration of this controller"),
            )
        self._registration = RegisterBroker(
            self.node_id,
            random_uuid(self.random.randbytes),
            endpoints,
            [directory.directory_id for directory in directories],
            {name: (versions.first, versions.last) for name, versions in sorted(self.supported_features.items())},
            self.cluster_id,
            self.config["broker.rack"],
            min(directory.clean_broker_epoch for directory in directories),
        )

        def registered(epoch: int, error: KafkaError | None) -> None:
            if error is not None:
                done(None, error)
            else:
                self.controller.submit(BrokerHeartbeat(self.node_id, epoch, self.image.offset), unfenced)

        def unfenced(result: Any, error: KafkaError | None) -> None:
            if error is None:
                self._registered(done)
            else:
                done(None, error)

        self.controller.submit(self._registration, registered)

    @property
    def _epoch(self) -> int:
        registered = self.image.brokers.get(self.node_id)
        return -1 if registered is None else registered.epoch

    def _heartbeat(self, what: str, **fields: Any) -> None:
        heartbeat = BrokerHeartbeat(self.node_id, self._epoch, self.image.offset, **fields)
        self.controller.submit(heartbeat, logged(what))

    def _registered(self, done: Done) -> None:
        self._is_registered = True
        self._record_directories()
        self.coordinators.start()
        self.metadata.snapshots.spare_the_next_start()
        done(None, None)

    def close(self) -> None:
        """Records the controlled shutdown, flushes and closes the logs, and marks the shutdown as clean."""
        self._is_registered = False
        if self._share_partitions is not None:
            self._share_partitions.close()
        if self._persister is not None:
            self._persister.close()
        if self._hosts:
            self.coordinators.stop()
        self.hosting.close()
        self._stop()
        # Committed, at the latest, by the flush that closing the logs begins with.
        if self._epoch != -1:
            self._heartbeat("the controlled shutdown", want_shut_down=True)
        self.log_manager.close(self._epoch)

    def forget_share_partitions(self) -> None:
        """Drops the share partitions, with their acquired records, and the share sessions."""
        if self._share_partitions is not None:
            self._share_partitions.close()
            self._share_partitions = None
        if self._persister is not None:
            self._persister.close()

    # ------------------------------------------------------------ following the metadata

    def _follow(self, image: MetadataImage, delta: MetadataDelta) -> None:
        super()._follow(image, delta)
        if not self._hosts:
            return
        self.hosting.follow(image, delta, self.config, all_changed=changes_brokers(delta))
        self.coordinators.on_image(delta)
        if self._share_partitions is not None:
            self._share_partitions.on_image(delta)
        if self._is_registered:
            if METADATA_VERSION in delta.features:
                self._amend_registrations()
            self._record_directories(None if METADATA_VERSION in delta.features else delta)

    def _amend_registrations(self) -> None:
        """Records the fields of the registrations that a lower metadata.version did not have."""
        log_dirs = [directory.directory_id for directory in self.log_manager.online_directories]
        self._registration = self._registration._replace(log_dirs=log_dirs)
        self.controller.submit(self._registration, logged("the directories of this broker"))

    def _record_directories(self, delta: MetadataDelta | None = None) -> None:
        """Records which directories are cordoned, and which partition is in which directory (KIP-858, KIP-1066).

        Limited to the partitions that ``delta`` has changed, if given. Recorded assignments are not recorded again.
        """
        cordoned = [each.directory_id for each in self.log_manager.online_directories if each.is_cordoned]
        self._heartbeat("the cordoned log directories", cordoned_log_dirs=cordoned)
        if self.image.metadata_version < DIRECTORIES:
            return
        misplaced = self.hosting.misplaced(self.image, delta)
        for at in range(0, len(misplaced), MAX_ASSIGNMENTS):
            assignments = misplaced[at : at + MAX_ASSIGNMENTS]
            self.controller.submit(
                AssignReplicasToDirs(self.node_id, self._epoch, assignments),
                logged("the log directories of partitions"),
            )

    def _handle_offline(self, directory: LogDirectory) -> None:
        """Stops the node, or records the failure of the directory."""
        self.hosting.directory_failed()
        if not self._is_registered:
            return  # the registration will have the remaining directories, or the broker is closed
        super()._handle_offline(directory)
        if self.log_manager.online_directories and not self.metadata.log.is_offline:
            self._heartbeat("the failure of a log directory", offline_log_dirs=[directory.directory_id])

    def _assign_directory(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Records that a log will be in that directory.

        :raises KafkaError: the controller refuses it, or the record cannot be written
        """
        if self.image.metadata_version < DIRECTORIES:
            return
        assignment = log.topic_id, log.partition, directory.directory_id
        refused: list[KafkaError] = []

        def done(errors: list[KafkaError | None] | None, error: KafkaError | None) -> None:
            refused.extend(each for each in (error, *(errors or ())) if each is not None)

        self.controller.submit(AssignReplicasToDirs(self.node_id, self._epoch, [assignment]), done)
        if refused:
            raise refused[0]

    # ------------------------------------------------------------ for handlers

    @property
    def groups(self) -> GroupCoordinator:
        return self.coordinators.groups.coordinator

    @property
    def transactions(self) -> TransactionCoordinator:
        return self.coordinators.transactions.coordinator

    @property
    def share_state(self) -> "ShareCoordinator":
        return self.coordinators.share.coordinator

    @property
    def persister(self) -> "Persister":
        """Sends the requests of share groups and share partitions to the share coordinator."""
        if self._persister is None:
            from barnabas.broker.persister import Persister

            self._persister = Persister(self)
        return self._persister

    @property
    def share_partitions(self) -> "SharePartitions":
        """The share partitions that this node leads."""
        if self._share_partitions is None:
            from barnabas.broker.share_partitions import SharePartitions

            self._share_partitions = SharePartitions(self)
        return self._share_partitions

    def partition(self, topic: str, index: int) -> Partition:
        """Returns a partition that this node hosts.

        :raises UnknownTopicOrPartition: it does not exist
        :raises NotLeaderOrFollower: it has no replica here
        :raises KafkaStorageError: its log directory is offline
        """
        partition = self.partitions.get((topic, index))
        if partition is not None:
            return partition
        of_image = self.image.partition(topic, index)
        if of_image is None:
            raise UnknownTopicOrPartition
        raise KafkaStorageError if self.node_id in of_image.replicas else NotLeaderOrFollower
