"""Stores a small JSON value in a job's checkpoint, in any file system that Spark can write to.

Knows nothing of what the value means.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StoredValue:
    """One named value. Each write replaces the older of two copies, so one complete copy always exists."""

    def __init__(self, spark: "SparkSession", checkpoint: str, name: str) -> None:
        self._spark = spark
        self._places = [f"{checkpoint.rstrip('/')}/{name}-{number}" for number in (0, 1)]
        self._count = 0

    def read(self) -> Any:
        """Returns the value that was written last, or None if there is none."""
        found: list[dict[str, Any]] = [each for each in map(self._at, self._places) if each is not None]
        if not found:
            return None
        newest = max(found, key=lambda each: each["count"])
        self._count = newest["count"]
        return newest["value"]

    def write(self, value: Any) -> None:
        """Writes the value. If an earlier run may have written one, `read` must be called first."""
        line = json.dumps({"count": self._count + 1, "value": value})
        rows = self._spark.createDataFrame([(line,)], "value STRING").coalesce(1)
        rows.write.mode("overwrite").text(self._places[(self._count + 1) % 2])
        self._count += 1

    def _at(self, place: str) -> dict[str, Any] | None:
        """Returns the copy at this path, or None if there is none or its write is incomplete."""
        from pyspark.errors import AnalysisException

        try:
            rows = self._spark.read.text(place).collect()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise
        found: dict[str, Any] | None = json.loads(rows[0]["value"]) if rows else None
        return found
