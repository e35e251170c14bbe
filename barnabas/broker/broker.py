"""One node: its metadata, logs, hosted partitions, groups and transactions.

Knows nothing of requests, responses or sockets. :attr:`Broker.image` is the committed state of the cluster; the hosted
partitions follow it.
"""

import itertools
import logging
import socket
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker import authorizing
from barnabas.broker.coordinators import Coordinators
from barnabas.broker.fetch_sessions import FetchSessions
from barnabas.broker.hosting import Hosting
from barnabas.broker.marker_sender import MarkerSender
from barnabas.broker.names import Names
from barnabas.broker.nodes import Nodes
from barnabas.broker.producer_ids import ProducerIds
from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller.commands import (
    AllocateProducerIds,
    AmendBroker,
    AssignReplicasToDirs,
    CordonLogDirs,
    DirectoriesOffline,
    FeatureUpdate,
    RegisterBroker,
    RegisterController,
    ShutDownBroker,
    UnfenceBroker,
    UpdateFeatures,
)
from barnabas.cluster.controller.controller import Controller, Done, logged
from barnabas.cluster.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.cluster.image.snapshot_generator import SnapshotLimits
from barnabas.cluster.internal_topics import is_single_node, log_single_node_defaults
from barnabas.cluster.node_metadata import NodeMetadata
from barnabas.cluster.quorum.metadata_log import TOPIC_ID, MetadataLog, MetadataLogError, Retention, topic_config
from barnabas.cluster.quorum.sole_voter import SoleVoter, Voter
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import BROKER_RESOURCE, ConfigRules
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError, KafkaStorageError, UnknownTopicOrPartition
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.log.background import Background, Inline
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_workers import CleanerWorker
from barnabas.log.files import Files
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_directory import LogDirectory, LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.peers.peers import Peers
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.uuids import random_uuid
from barnabas.wire.schema import Versions

if TYPE_CHECKING:
    from barnabas.broker.persister import Persister
    from barnabas.broker.quotas import AddressQuotas
    from barnabas.broker.share_partitions import SharePartitions
    from barnabas.broker.token_expiry import TokenExpiry
    from barnabas.security.authorizer import Authorizer
    from barnabas.security.quotas.client_quotas import ClientQuotas
    from barnabas.security.quotas.connections import ConnectionRates
    from barnabas.share.coordinator import ShareCoordinator

logger = logging.getLogger(__name__)

FETCH_SESSION_EVICTION_MS = 120_000
"""How long a fetch session is not evicted in favour of another. Apache Kafka has no config for it."""


MAX_ASSIGNMENTS = 2250
"""The most partitions in one command (``AssignReplicasToDirsRequestBuilder``)."""


REGISTERED = logged("the registration of this broker")


class Reconfigurable(Protocol):
    """A service that follows changes of the broker's settings."""

    def check(self, proposed: BrokerConfig) -> None:
        """Checks settings that are to be set.

        :raises ConfigError: the service cannot go on with them
        """

    def reconfigure(self) -> None:
        """Goes on with the broker's settings, which have changed."""


class Broker:
    """A node that is both broker and controller. Call :meth:`open`, :meth:`register` and finally :meth:`close`."""

    supported_features: Mapping[str, Versions] = {
        name: Versions(feature.first, feature.last) for name, feature in SUPPORTED.items()
    }

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files,
        clock: Clock,
        scheduler: Scheduler,
        random: Random,
        background: Background,
        peers: Peers,
        reader: Background | None = None,
        resolver: Background | None = None,
        new_cleaner_worker: Callable[[], CleanerWorker] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.scheduler = scheduler
        self.random = random
        self.peers = peers
        self.node_id = config.node_id
        self.cluster_id = ""
        self._features = features or {}
        self._files = files
        self._background = background
        self.log_manager = LogManager(
            files,
            config.log_dirs,
            clock=clock,
            scheduler=scheduler,
            background=background,
            reader=reader,
            settings=LogSettings.from_config(config),
            cleaner_settings=CleanerSettings.from_config(config),
            new_cleaner_worker=new_cleaner_worker,
            random_bytes=random.randbytes,
            on_directory_failure=self._directory_failed,
        )
        self.hosting = Hosting(self.node_id, self.log_manager)
        self.partitions = self.hosting.partitions
        self.metadata: NodeMetadata
        self.coordinators: Coordinators
        self.authorizer: Authorizer | None = None  #: None if every client may do everything
        self._persister: Persister | None = None
        self._share_partitions: SharePartitions | None = None
        self.marker_sender = MarkerSender(peers, lambda: self.image)
        self.fetch_sessions = FetchSessions(
            lambda: self.config["max.incremental.fetch.session.cache.slots"],
            lambda: FETCH_SESSION_EVICTION_MS,
            random,
        )
        self.producer_ids = ProducerIds(lambda done: self.controller.submit(AllocateProducerIds(self.node_id), done))
        self.names = Names(resolver or Inline())
        self.nodes = Nodes(lambda: self.image.brokers)
        self.connection_numbers = itertools.count(1)  #: numbers the connections of all listeners
        self.quotas: ClientQuotas | None = None  #: of users and client ids; None while none is set
        self.connection_rates: ConnectionRates | None = None  #: None while nothing limits them
        self._address_quotas: AddressQuotas | None = None
        self._token_expiry: TokenExpiry | None = None  #: None while there are no delegation tokens
        self.on_fatal: Callable[[str], object] = lambda reason: (
            None
        )  #: called with the reason when the broker has to stop
        self.reconfigurables: list[Reconfigurable] = []
        self._is_registered = False
        moves = self.log_manager.moves
        moves.bytes_per_second = lambda: self.config["replica.alter.log.dirs.io.max.bytes.per.second"]
        moves.before_promotion = self._assign_directory
        moves.on_promotion = self.hosting.arrived

    # ------------------------------------------------------------ life

    def open(self) -> None:
        """Opens metadata, logs and coordinators, and recovers logs after an unclean shutdown.

        :raises LogDirectoryError: a directory is in use, or belongs to another node
        :raises MetadataLogError: the metadata log cannot be read, or belongs to a quorum of several voters
        """
        self.cluster_id = self.log_manager.start(self.node_id)
        try:
            self.metadata = self._open_metadata()
            self._apply_dynamic_configs()
            log_single_node_defaults(self.config)
            image = self.image
            self.authorizer = authorizing.new_authorizer(self.config, image)
            self.log_manager.open_all(
                lambda topic: self.hosting.topic_config(topic, image, self.config),
                lambda log: self.hosting.is_stray(log, image),
                lambda log: self.hosting.assigned_directory(log, image),
            )
            self.hosting.host_all(image, self.config)
            self._apply_quotas()
            self.metadata.loader.publishers.append(self._follow)
            self.coordinators = Coordinators(
                self,
                persister=lambda: self.persister,
                send_markers=self.marker_sender.send,
                next_producer_id=self.producer_ids.next,
            )
        except BaseException:
            self.log_manager.close()
            raise

    def register(self, ports: Mapping[str, int], done: Done = REGISTERED) -> None:
        """Registers and unfences this node, and starts the coordinators.

        :param ports: the bound ports by listener name
        :param done: called when the registration is committed and the coordinators have started
        """
        endpoints = [
            Endpoint(
                each.name,
                each.host or socket.getfqdn(),
                each.port or ports.get(each.name, 0),
                each.security_protocol,
            )
            for each in self.config.advertised_listeners
        ]
        directories = self.log_manager.online_directories
        if not directories:
            raise LogDirectoryError("None of the log directories can be used any more")
        incarnation_id = random_uuid(self.random.randbytes)
        # Without a controller listener, the controller has the address of the broker.
        voters = self.config.controller_listeners or [endpoints[0]._replace(name=self.config.controller_listener_name)]
        self._as_controller = RegisterController(self.node_id, incarnation_id, voters)
        self.controller.submit(self._as_controller, logged("the registration of this controller"))
        self.quorum.voter_endpoints = voters
        kraft_version = self._features.get(KRAFT_VERSION, 0)
        if kraft_version > self.quorum.kraft.version:  # a new cluster: an existing one would not have opened
            update = UpdateFeatures([FeatureUpdate(KRAFT_VERSION, kraft_version)])
            self.controller.submit(update, logged(f"the level of {KRAFT_VERSION}"))
        registration = RegisterBroker(
            self.node_id,
            incarnation_id,
            endpoints,
            [directory.directory_id for directory in directories],
            self.config["broker.rack"],
            min(directory.clean_broker_epoch for directory in directories),
        )
        self.controller.submit(registration, REGISTERED)

        def unfenced(result: Any, error: KafkaError | None) -> None:
            if error is None:
                self._registered(done)
            else:
                done(None, error)

        self.controller.submit(UnfenceBroker(self.node_id), unfenced)

    def _registered(self, done: Done) -> None:
        self._is_registered = True
        self._record_directories()
        self.coordinators.start()
        self._start_token_expiry()
        self.metadata.snapshots.spare_the_next_start()
        done(None, None)

    def _start_token_expiry(self) -> None:
        if self.config["delegation.token.secret.key"] is not None:
            from barnabas.broker.token_expiry import TokenExpiry

            interval_ms = self.config["delegation.token.expiry.check.interval.ms"]
            self._token_expiry = TokenExpiry(self.controller, self.scheduler, interval_ms)
            self._token_expiry.start()

    def close(self) -> None:
        """Records the controlled shutdown, flushes and closes the logs, and marks the shutdown as clean."""
        self._is_registered = False
        if self._share_partitions is not None:
            self._share_partitions.close()
        if self._persister is not None:
            self._persister.close()
        self.coordinators.stop()
        self.names.close()
        if self._token_expiry is not None:
            self._token_expiry.stop()
        # Committed, at the latest, by the flush that closing the logs begins with.
        self.controller.submit(ShutDownBroker(self.node_id), logged("the controlled shutdown"))
        registered = self.image.brokers.get(self.node_id)
        self.log_manager.close(-1 if registered is None else registered.epoch)

    def _open_metadata(self) -> NodeMetadata:
        config = self.config
        log_config = topic_config(config["metadata.log.segment.bytes"], config["metadata.log.segment.ms"])
        log = self.log_manager.open(CLUSTER_METADATA, 0, log_config)
        if log is None:
            for directory in self.log_manager.directories:
                if directory.offline is not None:
                    raise MetadataLogError(f"the metadata log may be in {directory.path}: {directory.offline}")
            first = self.log_manager.online_directories[0].directory_id
            log = self.log_manager.create(CLUSTER_METADATA, 0, TOPIC_ID, log_config, directory_id=first)
        metadata_log = MetadataLog(
            log,
            log.directory,
            self._files,
            clock=self.clock,
            background=self._background,
            retention=Retention(config["metadata.max.retention.bytes"], config["metadata.max.retention.ms"]),
        )
        metadata = NodeMetadata(
            metadata_log,
            self._files,
            self.clock,
            Voter(self.node_id, log.log_directory.directory_id),
            settings=lambda: self.config,
            rules=ConfigRules(lambda: self.config, self._check_services),
            random=self.random,
            limits=SnapshotLimits(
                config["metadata.log.max.record.bytes.between.snapshots"],
                config["metadata.log.max.snapshot.interval.ms"],
            ),
            features=self._features,
        )
        metadata.open()
        return metadata

    def forget_share_partitions(self) -> None:
        """Drops the share partitions, with their acquired records, and the share sessions."""
        if self._share_partitions is not None:
            self._share_partitions.close()
            self._share_partitions = None
        if self._persister is not None:
            self._persister.close()

    # ------------------------------------------------------------ following the metadata

    def _follow(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Applies a new committed image to this node."""
        all_changed = any(resource_type == BROKER_RESOURCE for resource_type, _ in delta.configs)
        if all_changed or self.config.single_node != is_single_node(image, self.node_id):
            self._apply_dynamic_configs()
        if delta.quotas or all_changed:
            self._apply_quotas()
        self.hosting.follow(image, delta, self.config, all_changed=all_changed)
        if self.authorizer is not None:
            authorizing.follow(self.authorizer, image, delta)
        self.coordinators.on_image(delta)
        if self._share_partitions is not None:
            self._share_partitions.on_image(delta)
        if self._is_registered:
            if METADATA_VERSION in delta.features:
                self._amend_registrations()
            self._record_directories(None if METADATA_VERSION in delta.features else delta)

    def _amend_registrations(self) -> None:
        """Records the fields of the registrations that a lower metadata.version did not have."""
        if self.node_id not in self.image.controllers:
            self.controller.submit(self._as_controller, logged("the registration of this controller"))
        log_dirs = [directory.directory_id for directory in self.log_manager.online_directories]
        self.controller.submit(AmendBroker(self.node_id, log_dirs), logged("the directories of this broker"))

    def _record_directories(self, delta: MetadataDelta | None = None) -> None:
        """Records which directories are cordoned, and which partition is in which directory (KIP-858, KIP-1066).

        Limited to the partitions that ``delta`` has changed, if given. Recorded assignments are not recorded again.
        """
        cordoned = [each.directory_id for each in self.log_manager.online_directories if each.is_cordoned]
        self.controller.submit(CordonLogDirs(self.node_id, cordoned), logged("the cordoned log directories"))
        misplaced = self.hosting.misplaced(self.image, delta)
        for at in range(0, len(misplaced), MAX_ASSIGNMENTS):
            assignments = misplaced[at : at + MAX_ASSIGNMENTS]
            self.controller.submit(
                AssignReplicasToDirs(self.node_id, assignments), logged("the log directories of partitions")
            )

    def _directory_failed(self, directory: LogDirectory) -> None:
        # Later, since this may be called during a change of the metadata.
        self.scheduler.call_later(0, self._handle_offline, directory)

    def _handle_offline(self, directory: LogDirectory) -> None:
        """Records the failure of a directory. Stops if it was the last one, or has the metadata log."""
        online = self.log_manager.online_directories
        if not self._is_registered:
            return  # the registration will have the remaining directories, or the broker is closed
        if not online:
            self.on_fatal(f"the last log directory, {directory.path}, is offline")
        elif self.metadata.log.is_offline:
            self.on_fatal(f"{directory.path}, the log directory with the metadata log, is offline")
        else:
            remaining = [each.directory_id for each in online]
            self.controller.submit(
                DirectoriesOffline(self.node_id, remaining), logged("the failure of a log directory")
            )

    def _assign_directory(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Records that a log will be in that directory.

        :raises KafkaError: the controller refuses it, or the record cannot be written
        """
        assignment = log.topic_id, log.partition, directory.directory_id
        refused: list[KafkaError] = []

        def done(errors: list[KafkaError | None] | None, error: KafkaError | None) -> None:
            refused.extend(each for each in (error, *(errors or ())) if each is not None)

        self.controller.submit(AssignReplicasToDirs(self.node_id, [assignment]), done)
        if refused:
            raise refused[0]

    def _check_services(self, proposed: BrokerConfig) -> None:
        for service in self.reconfigurables:
            service.check(proposed)

    def _apply_dynamic_configs(self) -> None:
        """Applies the dynamic configs: those of this broker, then those of all brokers, then the static ones."""
        image = self.image
        of_all, of_this = (image.configs_of(BROKER_RESOURCE, name) for name in ("", str(self.node_id)))
        single_node = is_single_node(image, self.node_id)
        self.config = self.config.with_single_node(single_node).with_dynamic(of_all, of_this)
        self.log_manager.housekeeping.settings = LogSettings.from_config(self.config)
        self.log_manager.check_reads(self.config["barnabas.log.read.check.crcs"])
        self.log_manager.cleaner.reconfigure(CleanerSettings.from_config(self.config))
        self.log_manager.cordon(self.config["cordoned.log.dirs"] or ())
        for service in self.reconfigurables:
            service.reconfigure()

    def _apply_quotas(self) -> None:
        """Applies the quotas of clients and addresses, and the limits of new connections."""
        if (
            self._address_quotas is None
            and not self.image.quotas
            and not self.config.sets_any("connection.creation.rate")
        ):
            return  # as on most brokers, which need not import what limits
        from barnabas.broker import quotas

        if self._address_quotas is None:
            self._address_quotas = quotas.AddressQuotas(self.names, self._apply_quotas)
        self.quotas = quotas.client_quotas(self.quotas, self.image, self.config, self.clock)
        addresses = self._address_quotas.of(self.image)
        self.connection_rates = quotas.connection_rates(self.connection_rates, addresses, self.config, self.clock)

    # ------------------------------------------------------------ for handlers

    @property
    def image(self) -> MetadataImage:
        """The committed state of the cluster."""
        return self.metadata.loader.image

    @property
    def controller(self) -> Controller:
        return self.metadata.controller

    @property
    def quorum(self) -> SoleVoter:
        return self.metadata.quorum

    @property
    def finalized_features(self) -> Mapping[str, int]:
        """The finalized features and their levels, with ``kraft.version`` if its level is not 0."""
        raised = self.quorum.kraft.version
        return {**self.image.features, KRAFT_VERSION: raised} if raised else self.image.features

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
        :raises KafkaStorageError: its log directory is offline
        """
        partition = self.partitions.get((topic, index))
        if partition is None:
            raise KafkaStorageError if self.image.partition(topic, index) is not None else UnknownTopicOrPartition
        return partition

    def topic_name(self, topic_id: bytes) -> str | None:
        """Returns the name of the topic with that id, None if there is none."""
        topic = self.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name
