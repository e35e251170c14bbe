"""The mirror's streaming source: its offsets are those of the source cluster, and its tasks copy records.

Records do not pass through Spark: a task copies its ranges directly from source to target, and returns one row per
range. Spark may run a task again, although it writes: the progress of a partition is committed in the transaction that
copies its records, so a repeated task has nothing left to copy. Knows nothing of how records are copied.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from barnabas.pipelines.jobs.mirroring.planning import Range, shared_out
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.offsets import StreamOffset
from barnabas.pipelines.workers import spare_the_collector

FORMAT = "barnabas_mirror"
SPEC = "spec.secret"
"""The option that holds a Spec. It may contain passwords, and Spark redacts options whose names contain ``secret``."""

TASKS = "tasks"
SCHEMA = "topic string, partition int, target string, start long, end long, records long, bytes long, transactions int"


class Share(InputPartition):
    """The ranges that one task copies, in this order."""

    def __init__(self, ranges: Sequence[Range]) -> None:
        super().__init__(None)
        self.ranges = list(ranges)


class MirrorSource(DataSource):
    """The data source that the job registers as `FORMAT`. Its options are `SPEC` and `TASKS`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> "MirrorReader":
        return MirrorReader(self.options[SPEC], int(self.options[TASKS]))


class MirrorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver, and copies ranges in tasks."""

    def __init__(self, spec: str, tasks: int) -> None:
        self._spec_text, self._tasks = spec, tasks
        self._spec = Spec.from_json(spec)
        self._kept: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self._spec_text, "tasks": self._tasks}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["spec"], state["tasks"])  # type: ignore[misc]

    @property
    def _planner(self) -> Any:
        if self._kept is None:
            from barnabas.pipelines.client.cluster import Cluster
            from barnabas.pipelines.jobs.mirroring.planner import Planner

            spec = self._spec
            self._kept = Planner(spec, Cluster.of(spec.source_settings), Cluster.of(spec.target_settings))
        return self._kept

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._spec.max_offsets_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.freeze()

    def initialOffset(self) -> dict[str, Any]:
        positions: StreamOffset = self._planner.initial()
        return positions.to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        begin = StreamOffset.from_json(start)
        self._planner.show(begin)  # all before a batch's start is copied; Spark may never call commit()
        positions: StreamOffset = self._planner.latest(begin, most)
        return positions.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        positions: StreamOffset = self._planner.ends()
        return positions.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = self._planner.ranges(StreamOffset.from_json(start), StreamOffset.from_json(end))
        return [Share(share) for share in shared_out(ranges, self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        from barnabas.pipelines.jobs.mirroring.copying import copy

        if not isinstance(partition, Share):
            return  # Spark runs a task even for a batch without partitions
        for each in partition.ranges:
            yield tuple(copy(self._spec, each))
        spare_the_collector()
