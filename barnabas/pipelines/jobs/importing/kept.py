"""A value that a job keeps with its checkpoint, wherever Spark can write: a few lines of JSON.

Knows nothing of what is kept.
"""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Kept:
    """One value under a name, of which there is always a whole one: each write goes to the older of two places."""

    def __init__(self, spark: "SparkSession", checkpoint: str, name: str) -> None:
        self._spark = spark
        self._places = [f"{checkpoint.rstrip('/')}/{name}-{number}" for number in (0, 1)]
        self._count = 0

    def read(self) -> Any:
        """The value that was written last; None before the first."""
        found: list[dict[str, Any]] = [each for each in map(self._at, self._places) if each is not None]
        if not found:
            return None
        newest = max(found, key=lambda each: each["count"])
        self._count = newest["count"]
        return newest["value"]

    def write(self, value: Any) -> None:
        """Keep this one; ``read`` must have been called before where there may be one."""
        line = json.dumps({"count": self._count + 1, "value": value})
        rows = self._spark.createDataFrame([(line,)], "value STRING").coalesce(1)
        rows.write.mode("overwrite").text(self._places[(self._count + 1) % 2])
        self._count += 1

    def _at(self, place: str) -> dict[str, Any] | None:
        """What is there; None where nothing is, or where a write did not come to its end."""
        from pyspark.errors import AnalysisException

        try:
            rows = self._spark.read.text(place).collect()
        except AnalysisException as error:
            if error.getCondition() == "PATH_NOT_FOUND":
                return None
            raise
        found: dict[str, Any] | None = json.loads(rows[0]["value"]) if rows else None
        return found
