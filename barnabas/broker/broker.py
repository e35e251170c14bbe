"""One node: its metadata, logs, hosted partitions, groups and transactions.

Knows nothing of requests, responses or sockets. :attr:`Broker.image` is the committed state of the cluster; the hosted
partitions follow it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators import Coordinators
from barnabas.broker.directory_assignments import Assignment, DirectoryAssignments
from barnabas.broker.environment import Created
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.hosting import Hosting
from barnabas.broker.lifecycle import Lifecycle
from barnabas.broker.node import Node, changes_brokers
from barnabas.broker.nodes import Nodes
from barnabas.broker.producer_ids import ProducerIds
from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller.controller import Done, logged
from barnabas.cluster.features import DIRECTORIES, METADATA_VERSION
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.cluster.image.records import endpoint_records
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.throttle import ReplicationThrottle
from barnabas.cluster.single_node import log_single_node_defaults
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.log.log_directory import LogDirectory, LogDirectoryError
from barnabas.log.partition_log import PartitionLog
from barnabas.peers.peers import Peers, error_of
from barnabas.records.batch import RecordBatch
from barnabas.security.quotas.rates import Windows
from barnabas.uuids import random_uuid
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest

if TYPE_CHECKING:
    from barnabas.broker.envelopes import Sender
    from barnabas.broker.marker_sender import MarkerSender
    from barnabas.broker.persister import Persister
    from barnabas.broker.share_partitions import SharePartitions
    from barnabas.broker.telemetry import Telemetry
    from barnabas.broker.topic_creation import TopicCreation
    from barnabas.cluster.controller.commands.topics import MutationQuota, NewTopic
    from barnabas.groups.coordinator import GroupCoordinator
    from barnabas.share.coordinator import ShareCoordinator
    from barnabas.transactions.coordinator import TransactionCoordinator

logger = logging.getLogger(__name__)

FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session is not evicted in favour of another. Apache Kafka has no config for it."""


REGISTERED = logged("the registration of this broker")


class Broker(Node):
    """A node that serves clients. Call :meth:`open`, :meth:`register` and finally :meth:`close`."""

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
        self._topic_creation: TopicCreation | None = None
        self.fetch_sessions = FetchSessions(
            lambda: self.config["max.incremental.fetch.session.cache.slots"],
            lambda: FETCH_SESSION_EVICTION_MS,
            random,
        )
        self.lifecycle = Lifecycle(
            self.node_id,
            self.controller_channel,
            scheduler=self.cluster_scheduler,
            random=random,
            settings=lambda: self.config,
            metadata_offset=lambda: self.image.offset,
        )
        self._assignments = DirectoryAssignments(self.node_id, self.controller_channel, lambda: self.epoch)
        self._assigning: set[Assignment] = set()  # of moves, until the controller has answered
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.nodes = Nodes(lambda: self.image.brokers)
        self.telemetry: Telemetry | None = None  #: what clients push their metrics to, if metrics are on
        self.value_check: Callable[[str, RecordBatch], object] | None = None  #: the schema registry's, if it runs here
        self._is_registered = False
        self._hosts = False  # whether logs and coordinators are open
        moves = self.log_manager.moves
        moves.bytes_per_second = lambda: self.config["replica.alter.log.dirs.io.max.bytes.per.second"]
        moves.before_promotion = self._assign_directory
        moves.on_promotion = self.hosting.arrived
        moves.on_cancelled = self._stays
        self.hosting.on_hosted = self._hosted

    # ------------------------------------------------------------ life

    def _opened(self) -> None:
        super()._opened()
        if self.quorum.is_sole_voter:
            self.open_logs()

    def open_logs(self) -> None:
        """Opens logs and coordinators, and recovers logs after an unclean shutdown.

        :meth:`open` calls it where this node is the only voter. On other nodes it is called once the image is complete:
        before that, a log without a topic would be taken for a stray.

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
            marker_sender=lambda: self.marker_sender,
            next_producer_id=self.producer_ids.next,
        )
        self._hosts = True

    def register(self, ports: Mapping[str, int], done: Done = REGISTERED) -> None:
        """Registers this node, and starts the coordinators once it is unfenced.

        :param ports: the bound ports by listener name
        :param done: called when the coordinators have started
        """
        endpoints = self.bound(self.config.advertised_listeners, ports)
        if not self.log_manager.online_directories:
            raise LogDirectoryError("None of the log directories can be used any more")
        registration = self._registration(endpoints)
        self.hosting.incarnation_id = registration.incarnation_id
        if self.config.is_controller:
            # Without a listener of its own, the controller has the address of the broker.
            self._register_controller(
                self.bound(self.config.advertised_controller_listeners, ports)
                or [endpoints[0]._replace(name=self.config.controller_listener_name)],
                logged("the registration of this controller"),
            )

        def unfenced(error: KafkaError | None) -> None:
            if error is None:
                self._registered(done)
            else:
                done(None, error)

        self.lifecycle.register(registration, unfenced)

    def _registration(self, endpoints: Iterable[Endpoint]) -> BrokerRegistrationRequest:
        directories = self.log_manager.online_directories
        return BrokerRegistrationRequest(
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=random_uuid(self.random.randbytes),
            listeners=endpoint_records(BrokerRegistrationRequest.Listener, endpoints),
            features=self._supported(BrokerRegistrationRequest.Feature),
            rack=self.config["broker.rack"],
            log_dirs=[directory.directory_id for directory in directories],
            previous_broker_epoch=min(directory.clean_broker_epoch for directory in directories),
        )

    def _registered(self, done: Done) -> None:
        self._is_registered = True
        self.hosting.registered()
        self._register_directories()
        self._report_directories()
        self.coordinators.start()
        self.metadata.snapshots.spare_the_next_start()
        done(None, None)

    @property
    def epoch(self) -> int:
        """The broker epoch; -1 before the registration."""
        return self.lifecycle.epoch

    def shut_down(self, done: Callable[[], object]) -> None:
        """Asks the controller to move leaders away from this broker, and calls ``done`` when it may be closed."""
        self.lifecycle.shut_down(done)

    def close(self) -> None:
        """Stops everything, flushes and closes the logs, and marks the shutdown as clean."""
        self._is_registered = False
        if self._share_partitions is not None:
            self._share_partitions.close()
        if self._persister is not None:
            self._persister.close()
        if self._hosts:
            self.coordinators.stop()
        self.hosting.close()
        if self.controller_channel.is_local:
            # Where no other broker can lead, this record comes last. The flush at the beginning of closing the logs
            # commits it at the latest.
            self.lifecycle.shut_down(lambda: None)
        self.lifecycle.stop()
        self._stop()
        self.log_manager.close(self.epoch)

    def forget_share_partitions(self) -> None:
        """Drops all share partitions, with their acquired records, and all share sessions."""
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
        self.lifecycle.applied()
        own = image.brokers.get(self.node_id)
        if self._is_registered and own is not None:
            has_upgraded = METADATA_VERSION in delta.features
            if has_upgraded:
                self._register_directories()
            self._report_directories(None if has_upgraded else delta)

    def _register_directories(self) -> None:
        """Registers the broker again if its registration lacks the directories, which an older version does not record.

        The version may have been raised before the broker was registered, or unfenced (``BrokerRegistrationTracker``).
        """
        if self.image.metadata_version >= DIRECTORIES and not self.image.brokers[self.node_id].log_dirs:
            self.lifecycle.register_again()

    def _hosted(self) -> None:
        """Reports the directories of replicas that have got their logs after the metadata had changed."""
        if self._is_registered and self.node_id in self.image.brokers:
            self._report_directories()

    def _report_directories(self, delta: MetadataDelta | None = None) -> None:
        """Reports which directories are cordoned, and which partition is in which directory (KIP-858, KIP-1066).

        Limited to the partitions that ``delta`` has changed, if given. Does not report what the metadata has already.
        """
        cordoned = [each.directory_id for each in self.log_manager.online_directories if each.is_cordoned]
        if set(cordoned) != set(self.image.brokers[self.node_id].cordoned_log_dirs or ()):
            self.lifecycle.directories_cordoned(cordoned)
        if self.image.metadata_version < DIRECTORIES:
            return
        self._assignments.report([Assignment(*each) for each in self.hosting.misplaced(self.image, delta)])

    def _handle_offline(self, directory: LogDirectory) -> None:
        """Stops the node, or reports the failure of the directory."""
        self.hosting.directory_failed()
        if not self._is_registered:
            return  # the registration will list the remaining directories, or the broker is closed
        super()._handle_offline(directory)
        if self.log_manager.online_directories and not self.metadata.log.is_offline:
            self.lifecycle.directories_offline([directory.directory_id])

    def _assign_directory(self, log: PartitionLog, directory: LogDirectory) -> bool:
        """Returns whether the metadata assigns the log to that directory, or will do so before anything else happens.

        Otherwise asks the controller to record it; the caller tries again later. A broker that has not registered yet
        waits, since the controller knows another incarnation of it.

        :raises KafkaError: the controller refuses it
        """
        if (
            self.image.metadata_version < DIRECTORIES
            or self.hosting.assigned_directory(log, self.image) == directory.directory_id
        ):
            return True
        if not self._is_registered:
            return False
        refused: list[KafkaError] = []
        assignment = Assignment(log.topic_id, log.partition, directory.directory_id)
        if assignment in self._assigning:
            return False

        def done(error: KafkaError | None) -> None:
            self._assigning.discard(assignment)
            if error is not None:
                refused.append(error)

        self._assigning.add(assignment)
        self._assignments.assign([assignment], done)
        if refused:
            raise refused[0]
        return self.controller_channel.is_local

    def _stays(self, log: PartitionLog) -> None:
        """Reports the directory of a log that has not been moved, if the metadata already assigns it to another one.

        (``ReplicaAlterLogDirsThread.removePartitions``)
        """
        if log.is_offline or not self._is_registered or self.image.metadata_version < DIRECTORIES:
            return
        directory_id = log.log_directory.directory_id
        if self.hosting.assigned_directory(log, self.image) not in (None, directory_id):
            self._assignments.report([Assignment(log.topic_id, log.partition, directory_id)])

    def _allocate_producer_ids(self, done: Done) -> None:
        request = AllocateProducerIdsRequest(broker_id=self.node_id, broker_epoch=self.epoch)

        def answered(response: AllocateProducerIdsResponse | None, error: KafkaError | None) -> None:
            if response is None or (error := error_of(response.error_code)) is not None:
                done(None, error)
            else:
                done((response.producer_id_start, response.producer_id_len), None)

        self.controller_channel.send(request, answered, timeout_ms=self.config["request.timeout.ms"])

    # ------------------------------------------------------------ for handlers

    def create_topics(
        self,
        wanted: "Sequence[NewTopic]",
        done: Created,
        *,
        quota: "MutationQuota | None" = None,
        sender: "Sender | None" = None,
    ) -> None:
        """Has the active controller create topics.

        :param sender: the client whose rights count, and whose quota if another node decides; None for this broker
        """
        if self.quorum.is_leader or self.quorum.is_sole_voter:
            from barnabas.cluster.controller.commands.topics import NO_QUOTA, CreateTopics  # not needed by a start

            self.controller.submit(CreateTopics(wanted, quota=quota or NO_QUOTA), done)
            return
        if self._topic_creation is None:
            from barnabas.broker.topic_creation import TopicCreation

            self._topic_creation = TopicCreation(self.controller_channel, lambda: self.config)
        self._topic_creation.create(wanted, sender, done)

    @property
    def groups(self) -> "GroupCoordinator":
        return self.coordinators.groups.coordinator

    @property
    def transactions(self) -> "TransactionCoordinator":
        return self.coordinators.transactions.coordinator

    @property
    def share_state(self) -> "ShareCoordinator":
        return self.coordinators.share.coordinator

    @cached_property
    def marker_sender(self) -> "MarkerSender":
        from barnabas.broker.marker_sender import MarkerSender

        return MarkerSender(self.peers, lambda: self.image)

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

    @property
    def records_in_flight(self) -> dict[str, int]:
        """The records in flight of this node's share partitions, by group."""
        return {} if self._share_partitions is None else self._share_partitions.in_flight

    @cached_property
    def leader_throttle(self) -> ReplicationThrottle:
        """The limit on what this node sends to throttled replicas."""
        windows = Windows(
            self.config["replication.quota.window.num"], self.config["replication.quota.window.size.seconds"] * 1000
        )
        return ReplicationThrottle(lambda: self.config["leader.replication.throttled.rate"], windows)

    def leader_of(self, topic: str, index: int) -> tuple[int, int]:
        """Returns the leader of a partition and its epoch, as far as this node knows; -1 where it does not.

        Apache Kafka's ``KafkaApis.getCurrentLeader`` (KIP-951).
        """
        partition = self.partitions.get((topic, index))
        image = self.image.partition(topic, index) if partition is None else partition.image
        return (-1, -1) if image is None else (image.leader, image.leader_epoch)

    def partition(self, topic: str, index: int) -> Partition:
        """Returns a partition that this node hosts.

        :raises UnknownTopicOrPartition: it does not exist
        :raises NotLeaderOrFollower: it has no replica here, or a new one without a log
        :raises KafkaStorageError: its log directory is offline
        """
        partition = self.partitions.get((topic, index))
        if partition is not None:
            return partition
        of_image = self.image.partition(topic, index)
        if of_image is None:
            raise UnknownTopicOrPartition
        if self.node_id not in of_image.replicas:
            raise NotLeaderOrFollower
        is_new = self.hosting.is_waiting(self.image.topics_by_name[topic].id, index)
        raise NotLeaderOrFollower if is_new else KafkaStorageError
