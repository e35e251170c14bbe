"""Syncs configs of topics and offsets of groups periodically, on a thread of the driver's process.

Knows nothing of Spark.
"""

import logging
import threading

from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.jobs.mirroring.administration import cluster_id
from barnabas.pipelines.jobs.mirroring.following import Topics
from barnabas.pipelines.jobs.mirroring.groups import Groups
from barnabas.pipelines.jobs.mirroring.spec import Spec

logger = logging.getLogger(__name__)


class PeriodicSync:
    """Syncs periodically until it is closed. Errors are logged, and the next round tries again."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._source, self._target = Cluster.of(spec.source_settings), Cluster.of(spec.target_settings)
        self._topics = Topics(spec, self._source, self._target)
        self._groups = Groups(spec, self._source, self._target)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Checks that source and target are two clusters.

        :raises ValueError: they are the same cluster, whose topics would be mirrored endlessly.
        """
        here, there = cluster_id(self._source), cluster_id(self._target)
        if here is not None and here == there:
            raise ValueError(f"source and target are the same cluster, {here}: a topic would be mirrored to itself")

    def start(self) -> None:
        """Starts the thread, which syncs every `Spec.refresh_seconds`."""
        self._thread = threading.Thread(target=self._run, name="mirror-keeper", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Syncs configs and groups once."""
        self._topics.follow_configs(self._topics.look())
        if self._spec.sync_groups:
            self._groups.follow()

    def close(self, *, last_look: bool) -> None:
        """Stops the thread and waits for its end.

        :param last_look: sync once more afterwards.
        """
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        if last_look:
            self.look()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                self.look()
            except Exception as problem:
                logger.warning("cannot mirror configs and groups at the moment: %s", problem)
            self._ending.wait(self._spec.refresh_seconds)
