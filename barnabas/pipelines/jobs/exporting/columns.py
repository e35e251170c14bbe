"""Turns a topic's columns into an export's: which are kept, which are flattened, which directory a row belongs to.

Knows nothing of where they go. Times are in UTC whatever the session's time zone is.
"""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from barnabas.pipelines.jobs.texts import AS_JSON, IN_UTC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

METADATA = ("topic", "partition", "offset", "timestamp", "timestampType", "headers")
"""A record's columns besides its key and its value."""

PLACE = ("partition", "offset")
"""What the rows of a file are sorted by when they are merged."""

DAY_MICROSECONDS = 86_400_000_000
PERIODS = {"date": ("date",), "hour": ("date", "hour"), "none": ()}


class Shape(NamedTuple):
    """The columns of an export's rows."""

    metadata: bool  #: include the key and the columns of METADATA
    prefix: str  #: of the names of those columns
    flatten: bool  #: a value that is a struct becomes a column for each field
    plain: bool  #: nested columns become JSON, and bytes Base64: for CSV and for tables
    plain_bytes: bool  #: with `plain`, bytes stay bytes
    period: str  #: one of PERIODS
    by_topic: bool  #: each topic has its own directory

    @property
    def directories(self) -> tuple[str, ...]:
        """The columns that name directories, outermost first."""
        return (*(("topic",) if self.by_topic else ()), *PERIODS[self.period])


def shaped(df: "DataFrame", shape: Shape) -> "DataFrame":
    """Returns the rows of a topic, with decoded keys and values, as they are exported. Keeps their order.

    :raises ValueError: two columns would have the same name; the message says which, and what to do.
    """
    from pyspark.sql import functions as F

    columns = [*_kept(df, shape), *_directories(shape)]
    twice = [name for name, count in Counter(name.lower() for _, name in columns).items() if count > 1]
    if twice:
        raise ValueError(
            f"two columns would be called {', '.join(twice)}: a field of the value and a column of the record. Set "
            "metadata_prefix (such as kafka_) for the record's columns, or do not flatten the value"
        )
    made = df.select([column.alias(name) for column, name in columns])
    if shape.plain:
        made = made.select(
            [_plain(F.col(_quoted(field.name)), field.dataType, shape).alias(field.name) for field in made.schema]
        )
    return made


def _kept(df: "DataFrame", shape: Shape) -> list[tuple["Column", str]]:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    value = df.schema["value"].dataType
    if shape.flatten and isinstance(value, StructType):
        values = [(F.col(f"value.{_quoted(name)}"), name) for name in value.names]
    else:
        values = [(F.col("value"), "value")]
    if not shape.metadata:
        return values
    metadata = [
        (F.col(name), shape.prefix + name) for name in METADATA if name in df.columns and name not in shape.directories
    ]
    return [(F.col("key"), f"{shape.prefix}key"), *values, *metadata]


def _directories(shape: Shape) -> list[tuple["Column", str]]:
    from pyspark.sql import functions as F

    micros = F.unix_micros("timestamp")
    made = {
        "topic": F.col("topic"),
        "date": F.date_from_unix_date(F.floor(micros / F.lit(DAY_MICROSECONDS)).cast("int")),
        "hour": F.lpad(F.floor(F.pmod(micros, F.lit(DAY_MICROSECONDS)) / F.lit(3_600_000_000)).cast("string"), 2, "0"),
    }
    return [(made[name], name) for name in shape.directories]


def _plain(column: "Column", type: "DataType", shape: Shape) -> "Column":
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType, VariantType

    if isinstance(type, ArrayType | MapType | StructType | VariantType):
        return F.to_json(column, AS_JSON | IN_UTC)
    if isinstance(type, BinaryType) and not shape.plain_bytes:
        return F.translate(F.base64(column), "\r\n", "")  # Spark breaks lines as in mails
    return column


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
