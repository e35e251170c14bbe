"""The metadata of one node: quorum, loader and snapshots, and the controller if the node is one.

Knows nothing of the broker of the node, except its configs.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.controller import bootstrap
from barnabas.cluster.controller.controller import Controller
from barnabas.cluster.controller.decision import BrokerSettings, ConfigRules
from barnabas.cluster.controller.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.cluster.features import KRAFT_VERSION, METADATA_VERSION
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.image.snapshot_generator import DEFAULT_LIMITS, SnapshotGenerator, SnapshotLimits
from barnabas.cluster.quorum.metadata_log import DIRECTORY, MetadataLog, MetadataLogError
from barnabas.cluster.quorum.quorum import Quorum
from barnabas.log.files import Files

if TYPE_CHECKING:
    from barnabas.cluster.controller.periodic_tasks import PeriodicTasks

logger = logging.getLogger(__name__)


class NodeMetadata:
    """The metadata of a node; the committed image is that of :attr:`loader`. A controller has
    :class:`ControllerMetadata`.
    """

    controller: Controller | None = None  #: which decides on changes, if the node is a controller

    def __init__(
        self, metadata_log: MetadataLog, quorum: Quorum, clock: Clock, *, limits: SnapshotLimits = DEFAULT_LIMITS
    ) -> None:
        self.log = metadata_log.log
        self.quorum = quorum
        self.loader = MetadataLoader()
        self.snapshots = SnapshotGenerator(metadata_log, self.loader, lambda: self.quorum.kraft, clock, limits)
        self.quorum.listeners += [self.loader, self.snapshots]

    def open(self) -> None:
        """Loads the log and starts to follow the quorum. The image is empty until the node has caught up.

        :raises MetadataLogError: the log cannot be read
        """
        self.quorum.load()
        self.quorum.start()

    def stop(self) -> None:
        """Stops following the quorum."""
        self.quorum.stop()


class ControllerMetadata(NodeMetadata):
    """The metadata of a controller.

    :param features: the levels of a new cluster; an existing cluster must have the same levels
    :param resident: the broker of this process, if no other node can become the active controller
    :param scheduler: runs the periodic tasks of the controller, if there are other brokers
    """

    controller: Controller

    def __init__(
        self,
        metadata_log: MetadataLog,
        quorum: Quorum,
        clock: Clock,
        files: Files,
        *,
        settings: Callable[[], BrokerSettings],
        rules: ConfigRules,
        random: Random,
        limits: SnapshotLimits = DEFAULT_LIMITS,
        features: Mapping[str, int] | None = None,
        cluster_id: str = "",
        resident: int | None = None,
        scheduler: Scheduler | None = None,
    ) -> None:
        super().__init__(metadata_log, quorum, clock, limits=limits)
        self.controller = Controller(
            quorum,
            committed_image=lambda: self.loader.image,
            activation_records=self._activation_records,
            settings=settings,
            rules=rules,
            random=random,
            clock=clock,
            cluster_id=cluster_id,
            resident=resident,
        )
        self.controller.heartbeats.on_contact = self._start_tasks
        quorum.listeners.append(self.controller)
        self._scheduler = scheduler
        self._tasks: PeriodicTasks | None = None
        self._metadata_log = metadata_log
        self._files = files
        self._clock = clock
        self._settings = settings
        self._wanted_levels = dict(features or {})
        self._bootstrap: Sequence[Any] = ()

    def open(self) -> None:
        """Loads the log and becomes the leader; a cluster is bootstrapped if the log is empty.

        :raises MetadataLogError: the log cannot be read, other nodes have a vote, or a feature level is not supported
            or differs from `features`. Nothing has been appended in this case.
        """
        self.quorum.load()
        levels = self.loader.image.features
        if METADATA_VERSION not in levels:
            path = self._metadata_log.directory.removesuffix(DIRECTORY) + bootstrap.FILE_NAME
            self._bootstrap = bootstrap.read_or_format(self._files, path, self._wanted_levels, self._clock.time_ms())
            levels = bootstrap.levels_of(self._bootstrap)
        self._check_levels(levels)
        self.quorum.start()

    def stop(self) -> None:
        super().stop()
        if self._tasks is not None:
            self._tasks.stop()

    def _start_tasks(self) -> None:
        """Starts the periodic tasks."""
        if self._scheduler is None:
            return
        if self._tasks is None:
            from barnabas.cluster.controller.periodic_tasks import PeriodicTasks

            self._tasks = PeriodicTasks(self.controller, self._scheduler, self._clock, self._settings)
        self._tasks.start()

    def _check_levels(self, levels: Mapping[str, int]) -> None:
        """Checks that the feature levels are supported, and do not differ from the given ones.

        Only ``kraft.version`` is raised after the bootstrap, before the first broker registers: until then it may be
        lower than the given level.

        :raises MetadataLogError: a level is not supported, or differs
        """
        bootstrap.check_supported(levels)
        now = {KRAFT_VERSION: self.quorum.kraft.version, **levels}
        for name, level in self._wanted_levels.items():
            found = now.get(name, 0)
            is_to_come = name == KRAFT_VERSION and found < level and not self.loader.image.brokers
            if found != level and not is_to_come:
                raise MetadataLogError(
                    f"{self._metadata_log.directory}: {name} is at level {found}, not {level}; --feature "
                    "is for the first start, `barnabas features upgrade` for an existing cluster"
                )

    def _activation_records(self, image: MetadataImage) -> Sequence[Any]:
        records = []
        if self.loader.is_in_transaction:
            logger.warning("The metadata log ends within a transaction, which is aborted")
            records += bootstrap.aborted_transaction()
        if METADATA_VERSION not in image.features:
            records += bootstrap.activation_records(self._bootstrap, self._settings()[MIN_INSYNC_REPLICAS])
        return records
