"""One node of a cluster: its configs, log directories, metadata, authorizer and quotas.

Knows nothing of partitions, requests or sockets. A process that is only a controller has a :class:`Node`; one that
serves clients has a :class:`~barnabas.broker.broker.Broker`.
"""

import itertools
import logging
import socket
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

from barnabas.broker import authorizing
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.controller_registration import ControllerRegistration
from barnabas.broker.names import Names
from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller.commands.features import FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller.controller import Controller, Done, logged
from barnabas.cluster.features import KRAFT_VERSION, SUPPORTED
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.cluster.image.records import endpoint_records
from barnabas.cluster.image.snapshot_generator import SnapshotLimits
from barnabas.cluster.node_metadata import ControllerMetadata, NodeMetadata
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.metadata_log import TOPIC_ID, MetadataLog, MetadataLogError, Retention, topic_config
from barnabas.cluster.quorum.quorum import Quorum
from barnabas.cluster.quorum.sole_voter import SoleVoter
from barnabas.cluster.single_node import is_single_node
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import BROKER_RESOURCE, ConfigRules
from barnabas.config.endpoints import Endpoint
from barnabas.errors import NotController
from barnabas.log.background import Background, Inline
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_workers import CleanerWorker
from barnabas.log.files import Files
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.peers.peers import Peers
from barnabas.uuids import random_uuid
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.schema import Versions

if TYPE_CHECKING:
    from barnabas.broker.quotas import AddressQuotas
    from barnabas.broker.token_expiry import TokenExpiry
    from barnabas.security.authorizer import Authorizer
    from barnabas.security.quotas.client_quotas import ClientQuotas
    from barnabas.security.quotas.connections import ConnectionRates

logger = logging.getLogger(__name__)

F = TypeVar("F")


class Reconfigurable(Protocol):
    """A service that follows changes of the node's settings."""

    def check(self, proposed: BrokerConfig) -> None:
        """Checks new settings before they are set.

        :raises ConfigError: the service cannot use them
        """

    def reconfigure(self) -> None:
        """Applies the node's settings, which have changed."""


class Node:
    """A node with the roles that ``process.roles`` says. Call :meth:`open` and finally :meth:`close`.

    :param cluster_clock: by which nodes wait for one another, with ``cluster_scheduler``: by default ``clock``. A test
        that advances ``clock`` keeps this one, since other nodes' requests take the machine's time
    :param peers: reaches the brokers of the cluster, this one among them
    :param controller_peers: reaches the controllers; by default ``peers``
    :param reader: runs reads of cold data; ``resolver`` looks up the names of clients
    :param features: levels that a new cluster gets, and that an existing one must have
    """

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
        cluster_clock: Clock | None = None,
        cluster_scheduler: Scheduler | None = None,
        controller_peers: Peers | None = None,
        reader: Background | None = None,
        resolver: Background | None = None,
        new_cleaner_worker: Callable[[], CleanerWorker] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.config = config
        self.clock = clock
        self.scheduler = scheduler
        self.cluster_clock = cluster_clock or clock
        self.cluster_scheduler = cluster_scheduler or scheduler
        self.random = random
        self.peers = peers
        self.controller_peers = controller_peers or peers
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
            settings=LogSettings.from_settings(config),
            cleaner_settings=CleanerSettings.from_settings(config),
            new_cleaner_worker=new_cleaner_worker,
            random_bytes=random.randbytes,
            on_directory_failure=self._directory_failed,
            metadata_log_dir=config.metadata_log_dir,
        )
        self.metadata: NodeMetadata
        self.authorizer: Authorizer | None = None  #: None if every client may do everything
        self.names = Names(resolver or Inline())
        self.connection_numbers = itertools.count(1)  #: numbers the connections of all listeners
        self.quotas: ClientQuotas | None = None  #: of users and client ids; None while none is set
        self.connection_rates: ConnectionRates | None = None  #: None while nothing limits them
        self._address_quotas: AddressQuotas | None = None
        self._token_expiry: TokenExpiry | None = None  #: None while there are no delegation tokens
        self.on_fatal: Callable[[str], object] = lambda reason: None  #: called with the reason when the node must stop
        self.reconfigurables: list[Reconfigurable] = []
        self._controller_registration: ControllerRegistration | None = None
        self.controller_channel = ControllerChannel(
            self.node_id,
            self.controller_peers,
            lambda: self.quorum.leadership,
            is_sole=lambda: self.quorum.is_sole_voter,
            clock=self.cluster_clock,
            scheduler=self.cluster_scheduler,
            timeout_ms=lambda: self.config["request.timeout.ms"],
        )

    # ------------------------------------------------------------ life

    def open(self) -> None:
        """Opens the directories and the metadata. A node that is the only voter leads the quorum on return.

        :raises LogDirectoryError: a directory is in use, belongs to another node, or has to be formatted first
        :raises MetadataLogError: the metadata log cannot be read, or belongs to another quorum
        """
        self.cluster_id = self.log_manager.start(self.node_id, formats=self.config.is_lone)
        try:
            self.metadata = self._new_metadata()
            self.metadata.open()
            self._opened()
        except BaseException:
            self.log_manager.close()
            raise

    def _opened(self) -> None:
        """Starts from the first image: the complete one on a controller, an empty one on other nodes."""
        self._apply_dynamic_configs()
        self.authorizer = authorizing.new_authorizer(self.config, self.image)
        self._apply_quotas()
        self.metadata.loader.publishers.append(self._follow)

    def register(self, ports: Mapping[str, int], done: Done) -> None:
        """Registers this node in its roles, and starts its periodic tasks.

        :param ports: the bound ports by listener name
        :param done: called when the registration is committed
        """
        if self.config.is_controller:
            self._register_controller(self.bound(self.config.advertised_controller_listeners, ports), done)

    def bound(self, endpoints: Iterable[Endpoint], ports: Mapping[str, int]) -> list[Endpoint]:
        """Returns the endpoints; one without a host gets that of this machine, one without a port the bound port."""
        return [
            each._replace(host=each.host or socket.getfqdn(), port=each.port or ports.get(each.name, 0))
            for each in endpoints
        ]

    def _register_controller(self, endpoints: list[Endpoint], done: Done) -> None:
        self.quorum.voter_endpoints = endpoints
        request = ControllerRegistrationRequest(
            controller_id=self.node_id,
            incarnation_id=random_uuid(self.random.randbytes),
            listeners=endpoint_records(ControllerRegistrationRequest.Listener, endpoints),
            features=self._supported(ControllerRegistrationRequest.Feature),
        )
        registration = ControllerRegistration(request, self.controller_channel, lambda error: done(None, error))
        self._controller_registration = registration
        registration.follow(self.image)
        kraft_version = self._features.get(KRAFT_VERSION, 0)
        if kraft_version > self.quorum.kraft.version:  # a new cluster: an existing one would not have opened
            update = UpdateFeatures([FeatureUpdate(KRAFT_VERSION, kraft_version)])
            self.controller.submit(update, logged(f"the level of {KRAFT_VERSION}"))
        self._start_token_expiry()

    def _supported(self, feature: Callable[..., F]) -> list[F]:
        """Returns the features of this node, as the structs of a registration."""
        return [
            feature(name=name, min_supported_version=levels.first, max_supported_version=levels.last)
            for name, levels in sorted(self.supported_features.items())
        ]

    def _start_token_expiry(self) -> None:
        if self.config["delegation.token.secret.key"] is not None:
            from barnabas.broker.token_expiry import TokenExpiry

            interval_ms = self.config["delegation.token.expiry.check.interval.ms"]
            self._token_expiry = TokenExpiry(self.controller, self.scheduler, interval_ms)
            self._token_expiry.start()

    def close(self) -> None:
        """Flushes and closes the logs, and marks the shutdown as clean."""
        self._stop()
        self.log_manager.close()

    def _stop(self) -> None:
        """Stops the periodic tasks."""
        self.controller_channel.close()
        self.names.close()
        if self._token_expiry is not None:
            self._token_expiry.stop()
        self.metadata.stop()

    def _new_metadata(self) -> NodeMetadata:
        config = self.config
        log_config = topic_config(
            config["metadata.log.segment.bytes"], config["metadata.log.segment.ms"], is_voters=config.is_controller
        )
        wanted = self.log_manager.metadata_directory
        log = self.log_manager.open(CLUSTER_METADATA, 0, log_config)
        if log is None:
            for directory in self.log_manager.registry.directories:
                if directory.offline is not None:
                    raise MetadataLogError(f"the metadata log may be in {directory.path}: {directory.offline}")
            log = self.log_manager.create(CLUSTER_METADATA, 0, TOPIC_ID, log_config)
        elif log.log_directory is not wanted and config["metadata.log.dir"] is not None:
            raise MetadataLogError(f"the metadata log is {log.directory}, but metadata.log.dir is {wanted.path}")
        metadata_log = MetadataLog(
            log,
            log.directory,
            self._files,
            clock=self.clock,
            background=self._background,
            retention=Retention(config["metadata.max.retention.bytes"], config["metadata.max.retention.ms"]),
        )
        limits = SnapshotLimits(
            config["metadata.log.max.record.bytes.between.snapshots"], config["metadata.log.max.snapshot.interval.ms"]
        )
        return (
            self._as_voter(metadata_log, limits)
            if config.is_controller
            else NodeMetadata(metadata_log, self._new_observer(metadata_log), self.clock, limits=limits)
        )

    def _new_observer(self, metadata_log: MetadataLog) -> Quorum:
        from barnabas.broker.quorum_membership import new_observer

        return new_observer(self, metadata_log, self._files)

    def _as_voter(self, metadata_log: MetadataLog, limits: SnapshotLimits) -> ControllerMetadata:
        quorum = self._new_voter(metadata_log)
        return ControllerMetadata(
            metadata_log,
            quorum,
            self.cluster_clock,
            self._files,
            settings=lambda: self.config,
            rules=self.config_rules,
            random=self.random,
            limits=limits,
            features=self._features,
            cluster_id=self.cluster_id,
            resident=self.node_id if self.config.is_broker and quorum.is_sole_voter else None,
            scheduler=self.cluster_scheduler,
        )

    def _new_voter(self, metadata_log: MetadataLog) -> Quorum:
        if not self.config.names_controllers:
            key = ReplicaKey(self.node_id, metadata_log.log.log_directory.directory_id)
            return SoleVoter(metadata_log, self._files, self.clock, key)
        from barnabas.broker.quorum_membership import new_voter

        return new_voter(self, metadata_log, self._files)

    # ------------------------------------------------------------ following the metadata

    def _follow(self, image: MetadataImage, delta: MetadataDelta) -> None:
        """Applies a new committed image to this node."""
        if changes_brokers(delta) or self.config.single_node != self._is_single:
            self._apply_dynamic_configs()
        if delta.quotas or changes_brokers(delta):
            self._apply_quotas()
        if self.authorizer is not None:
            authorizing.follow(self.authorizer, image, delta)
        if self._controller_registration is not None:
            self._controller_registration.follow(image)

    def _directory_failed(self, directory: LogDirectory) -> None:
        # Later, since this may be called during a change of the metadata.
        self.scheduler.call_later(0, self._handle_offline, directory)

    def _handle_offline(self, directory: LogDirectory) -> None:
        """Stops the node if the directory was the last online one, or has the metadata log."""
        if not self.log_manager.online_directories:
            self.on_fatal(f"the last log directory, {directory.path}, is offline")
        elif self.metadata.log.is_offline:
            self.on_fatal(f"{directory.path}, the log directory with the metadata log, is offline")

    def _check_services(self, proposed: BrokerConfig) -> None:
        for service in self.reconfigurables:
            service.check(proposed)

    def _apply_dynamic_configs(self) -> None:
        """Applies the dynamic configs: those of this broker, then those of all brokers, then the static ones."""
        image = self.image
        of_all, of_this = (image.configs_of(BROKER_RESOURCE, name) for name in ("", str(self.node_id)))
        self.config = self.config.with_single_node(self._is_single).with_dynamic(of_all, of_this)
        self.log_manager.housekeeping.settings = LogSettings.from_settings(self.config)
        self.log_manager.check_reads(self.config["barnabas.log.read.check.crcs"])
        self.log_manager.cleaner.reconfigure(CleanerSettings.from_settings(self.config))
        self.log_manager.cordon(self.config["cordoned.log.dirs"] or ())
        for service in self.reconfigurables:
            service.reconfigure()

    @property
    def _is_single(self) -> bool:
        return self.config.is_lone and is_single_node(self.image, self.node_id)

    def _apply_quotas(self) -> None:
        """Applies the quotas of clients and addresses, and the limits of new connections."""
        if (
            self._address_quotas is None
            and not self.image.quotas
            and not self.config.sets_any("connection.creation.rate")
        ):
            return  # as on most brokers, which then do not import the quotas
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

    def broker_endpoint(self, node_id: int) -> Endpoint | None:
        """Returns where other brokers reach a broker; None if it is not registered, or has no such listener."""
        broker = self.image.brokers.get(node_id)
        return None if broker is None else broker.endpoints.get(self.config.inter_broker_listener_name)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Returns the name of the topic with that id, None if there is none."""
        topic = self.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    @property
    def config_rules(self) -> ConfigRules:
        """The checks of configs that are to be set on this node."""
        return ConfigRules(lambda: self.config, self._check_services)

    @property
    def controller(self) -> Controller:
        """The controller of this node, which may not be the active one.

        :raises NotController: this node is not a controller
        """
        if self.metadata.controller is None:
            raise NotController
        return self.metadata.controller

    @property
    def quorum(self) -> Quorum:
        return self.metadata.quorum

    @property
    def finalized_features(self) -> Mapping[str, int]:
        """The finalized features and their levels, with ``kraft.version`` if its level is not 0."""
        raised = self.quorum.kraft.version
        return {**self.image.features, KRAFT_VERSION: raised} if raised else self.image.features


def changes_brokers(delta: MetadataDelta) -> bool:
    """Returns whether a dynamic config of brokers has changed."""
    return any(resource_type == BROKER_RESOURCE for resource_type, _ in delta.configs)
