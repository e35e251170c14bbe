"""What a mirror looks after beside its records: configs of topics, and offsets of groups, every few seconds.

On a thread of its own, in the process of whoever started the mirror. Knows nothing of Spark.
"""

import logging
import threading

from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.jobs.mirroring.administration import cluster_id
from barnabas.pipelines.jobs.mirroring.following import Topics
from barnabas.pipelines.jobs.mirroring.groups import Groups
from barnabas.pipelines.jobs.mirroring.spec import Spec

logger = logging.getLogger(__name__)


class Keeper:
    """Looks until it is closed. What goes wrong meanwhile is logged, and tried again with the next look."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._source, self._target = Cluster.of(spec.source_settings), Cluster.of(spec.target_settings)
        self._topics = Topics(spec, self._source, self._target)
        self._groups = Groups(spec, self._source, self._target)
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Nothing, if there are two clusters.

        Raises:
            ValueError: source and target are one, whose topics would be mirrored again and again.
        """
        here, there = cluster_id(self._source), cluster_id(self._target)
        if here is not None and here == there:
            raise ValueError(f"source and target are the same cluster, {here}: a topic would be mirrored to itself")

    def start(self) -> None:
        """Begin to look, every `Spec.refresh_seconds`."""
        self._thread = threading.Thread(target=self._run, name="mirror-keeper", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Once."""
        self._topics.follow_configs(self._topics.look())
        if self._spec.sync_groups:
            self._groups.follow()

    def close(self, *, last_look: bool) -> None:
        """End the thread, wait for it, and look once more if that is wanted."""
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
                logger.warning("cannot follow configs and groups at the moment: %s", problem)
            self._ending.wait(self._spec.refresh_seconds)
