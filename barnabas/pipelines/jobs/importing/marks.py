"""The progress in a table: the values of its increasing columns in the last row of a batch, as text.

Knows nothing of how batches are written, nor of topics.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Mark = tuple[str, ...]
"""A value for each increasing column. Timestamps are microseconds since the epoch, which no time zone changes."""

WHOLE = ("tinyint", "smallint", "int", "bigint")


class Bound(NamedTuple):
    """The end of a batch."""

    mark: Mark
    row: int  #: the number of new rows up to here


class Growing:
    """The increasing columns, by which new rows of a table are recognized, in the order of their comparison."""

    def __init__(self, rows: "DataFrame", names: Sequence[str]) -> None:
        """:raises ValueError: a column does not exist, or databases disagree on the order of its type."""
        lower = {name.lower(): name for name in rows.columns}
        missing = [name for name in names if name.lower() not in lower]
        if missing:
            raise ValueError(f"increasing names {missing[0]!r}, but the columns are {', '.join(rows.columns)}")
        self._names = [lower[name.lower()] for name in names]
        self._types = [rows.schema[name].dataType.simpleString() for name in self._names]
        for name, kind in zip(self._names, self._types, strict=True):
            if kind not in (*WHOLE, "date", "timestamp", "timestamp_ntz") and not kind.startswith("decimal"):
                raise ValueError(
                    f"increasing names {name!r}, which is {kind}, but must be a whole number, decimal, date or time"
                )

    def columns(self) -> "list[Column]":
        """Returns the columns for Spark."""
        from pyspark.sql import functions as F

        return [F.col(f"`{name.replace('`', '``')}`") for name in self._names]

    def between(self, low: Mark | None, high: Mark | None) -> "Column":
        """Returns the condition that a row is after `low`, and not after `high`."""
        from pyspark.sql import functions as F

        found = F.lit(True)
        if low is not None:
            found = found & self._beyond(low)
        if high is not None:
            found = found & self._upto(high)
        for column in self.columns():
            found = found & column.isNotNull()
        return found

    def before(self, seconds: float) -> "Column":
        """Returns the condition that a row is at least this old, by the first column that is a timestamp.

        :raises ValueError: no column is a timestamp.
        """
        from pyspark.sql import functions as F

        for column, kind in zip(self.columns(), self._types, strict=True):
            if kind.startswith("timestamp"):
                return column <= F.current_timestamp() - F.make_dt_interval(secs=F.lit(seconds))
        raise ValueError(f"delay_seconds needs a time in increasing, but {self._names[0]!r} is {self._types[0]}")

    def bounds(self, rows: "DataFrame", count: int) -> list[Bound]:
        """Returns the ends of batches of about `count` rows, up to the last row. Reads the increasing columns once."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        ordered = Window.orderBy(*self.columns())
        numbered = rows.select(
            *(self._text(index).alias(f"mark{index}") for index in range(len(self._names))),
            F.row_number().over(ordered).alias("row"),
            F.lead(self.columns()[0]).over(ordered).isNull().alias("last"),
        )
        found = numbered.where((F.col("row") % count == 0) | F.col("last")).orderBy("row").collect()
        bounds: list[Bound] = []
        for each in found:
            bound = Bound(tuple(each[f"mark{index}"] for index in range(len(self._names))), each["row"])
            if bounds and bounds[-1].mark == bound.mark:
                bounds.pop()  # rows with the same mark stay in one batch
            bounds.append(bound)
        return bounds

    def _text(self, index: int) -> "Column":
        from pyspark.sql import functions as F

        column = self.columns()[index]
        return (F.unix_micros(column) if self._types[index] == "timestamp" else column).cast("string")

    def _literal(self, index: int, text: str) -> "Column":
        from pyspark.sql import functions as F

        if self._types[index] == "timestamp":
            return F.timestamp_micros(F.lit(int(text)))
        return F.lit(text).cast(self._types[index])

    def _beyond(self, mark: Mark) -> "Column":
        columns, values = self.columns(), [self._literal(index, text) for index, text in enumerate(mark)]
        found = columns[-1] > values[-1]
        for column, value in list(zip(columns, values, strict=True))[-2::-1]:
            found = (column > value) | ((column == value) & found)
        return found

    def _upto(self, mark: Mark) -> "Column":
        columns, values = self.columns(), [self._literal(index, text) for index, text in enumerate(mark)]
        found = columns[-1] <= values[-1]
        for column, value in list(zip(columns, values, strict=True))[-2::-1]:
            found = (column < value) | ((column == value) & found)
        return found
