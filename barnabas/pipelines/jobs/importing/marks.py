"""How far a table was read: the values of its growing columns in the last row of a batch, as text that can be kept.

Knows nothing of batches and of topics.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Mark = tuple[str, ...]
"""A value for each growing column; times as microseconds since 1970, so that no time zone changes them."""

WHOLE = ("tinyint", "smallint", "int", "bigint")


class Bound(NamedTuple):
    """Where a batch ends."""

    mark: Mark
    row: int  #: how many rows there are from the first that is new up to here


class Growing:
    """The columns by which new rows of a table are known, in the order in which they are compared."""

    def __init__(self, rows: "DataFrame", names: Sequence[str]) -> None:
        """Raises ValueError if one of them is not there, or is of a type whose order databases do not agree on."""
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
        """Them, as columns."""
        from pyspark.sql import functions as F

        return [F.col(f"`{name.replace('`', '``')}`") for name in self._names]

    def between(self, low: Mark | None, high: Mark | None) -> "Column":
        """Whether a row comes after ``low``, and not after ``high``."""
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
        """Whether a row is at least that old, by the first of the columns that is a time.

        Raises:
            ValueError: none of them is.
        """
        from pyspark.sql import functions as F

        for column, kind in zip(self.columns(), self._types, strict=True):
            if kind.startswith("timestamp"):
                return column <= F.current_timestamp() - F.make_dt_interval(secs=F.lit(seconds))
        raise ValueError(f"delay_seconds needs a time in increasing, but {self._names[0]!r} is {self._types[0]}")

    def bounds(self, rows: "DataFrame", count: int) -> list[Bound]:
        """Where batches of about ``count`` rows end, in one pass over the growing columns; the last is the last row."""
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
                bounds.pop()  # rows that share a mark stay together
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
