"""Decodes and encodes values in columns of a Spark DataFrame.

Knows nothing of topics, except that an error names the record if its columns are in the DataFrame.

Spark's own functions convert JSON and text; Arrow functions in Python workers convert Avro and Protobuf.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructField, StructType

from barnabas.pipelines.values.formats import Avro, Format, Json, Protobuf, Raw, Utf8
from barnabas.pipelines.values.framing import HEADER_BYTES, header
from barnabas.pipelines.values.json_schemas import is_json_schema, is_sparks, json_schema, spark_type
from barnabas.pipelines.values.registry import Found
from barnabas.pipelines.values.rows import Decoded

CORRUPT = "_corrupt_json"
SHOWN = 100
"""The maximum length of a value, and of a schema, in an error, in characters."""

ERROR = "error"
PLACE = ("topic", "partition", "offset")


class Split(NamedTuple):
    """The rows whose values were decoded, and the others, unchanged and with a column ``error``."""

    good: DataFrame
    bad: DataFrame


class _Decoder(Protocol):
    @property
    def type(self) -> pa.DataType: ...

    def __call__(self, column: pa.Array) -> Decoded: ...


def decode_value(
    df: DataFrame, column: str, format: Format, *, bad: Literal["fail", "null"] = "fail", into: str | None = None
) -> DataFrame:
    """Returns the DataFrame with the decoded column in its place, or as column `into`.

    :param bad: "fail": a bad value fails the query, with its topic, partition and offset if the DataFrame has these
        columns. "null": it becomes null. `split` returns the bad rows themselves.
    :raises ValueError: the format needs a schema, or Spark has no type for its schema.
    """
    if bad not in ("fail", "null"):
        raise ValueError(f"bad is {bad!r}, but must be fail or null; split() returns the bad rows themselves")
    if isinstance(format, Raw):  # nothing can be wrong with it
        return df.withColumn(into or column, F.col(column).cast(BinaryType()))
    mark = f"__decoded_{column}"
    both = F.col(mark)
    value = both["value"]
    if bad == "fail":
        failed = F.raise_error(F.concat(_place(df, column), both[ERROR]))
        value = F.when(both[ERROR].isNotNull(), failed).otherwise(value)
    return _with_decoded(df, column, format, mark).withColumn(into or column, value).drop(mark)


def split(df: DataFrame, formats: Mapping[str, Format]) -> Split:
    """Decodes these columns, and separates the rows with a bad value, for a dead letter topic."""
    marks = {name: f"__decoded_{name}" for name in formats}
    marked = df
    for name, format in formats.items():
        marked = _with_decoded(marked, name, format, marks[name])
    wrong = reduce(Column.__or__, [F.col(mark)[ERROR].isNotNull() for mark in marks.values()], F.lit(False))
    texts = [
        F.when(F.col(mark)[ERROR].isNotNull(), F.concat(F.lit(f"{name}: "), F.col(mark)[ERROR]))
        for name, mark in marks.items()
    ]
    good = marked.where(~wrong).withColumns({name: F.col(mark)["value"] for name, mark in marks.items()})
    bad = marked.where(wrong).withColumn(ERROR, F.concat_ws("; ", *texts))
    return Split(good.drop(*marks.values()), bad.drop(*marks.values()))


def encode_value(df: DataFrame, column: str, format: Format, *, into: str | None = None) -> DataFrame:
    """Returns the DataFrame with the encoded column in its place, or as column `into`. Null stays null.

    With a registry the schema is registered under the format's subject now, so that workers do not use the registry. A
    row that the schema does not allow fails the query.

    :raises ValueError: the schema does not match the column.
    """
    return df.withColumn(into or column, encoded(df[column], df.schema[column].dataType, format))


def _with_decoded(df: DataFrame, column: str, format: Format, mark: str) -> DataFrame:
    """Adds a column `mark`: a struct of ``value`` and ``error``, at least one of which is null; both are null if the
    column is null.
    """
    source = F.col(column).cast(BinaryType())
    match format:
        case Raw():
            return df.withColumn(mark, _both(source, F.lit(None).cast(StringType())))
        case Utf8():
            text = source.cast(StringType())
            wrong = source.isNotNull() & ~F.is_valid_utf8(text)
            return df.withColumn(mark, _both(F.when(~wrong, text), F.when(wrong, F.lit("it is not UTF-8"))))
        case Json():
            return _with_decoded_json(df, source, format, mark)
        case Avro():
            return _once(df, mark, _in_workers(_avro_decoder(format), source))
        case Protobuf():
            return _once(df, mark, _in_workers(_protobuf_decoder(format), source))


def _once(df: DataFrame, name: str, column: Column) -> DataFrame:
    """Adds this column, computed once for each row: a generator prevents Spark's optimizer from computing it again in
    each filter and projection that uses it.
    """
    return df.select("*", F.inline(F.array(F.struct(column.alias(name)))))


def encoded(column: Column, type: DataType, format: Format) -> Column:
    """Returns the column, which has this type, as bytes."""
    match format:
        case Raw() | Utf8():
            if isinstance(type, StructType | ArrayType | MapType):
                raise ValueError(f"a column of {type.simpleString()} is not binary: encode it as json or avro")
            is_bytes = isinstance(type, BinaryType)
            return column if is_bytes else column.cast(StringType()).cast(BinaryType())
        case Json():
            return _encoded_json(column, type, format)
        case Avro():
            from barnabas.pipelines.values.avro import AvroEncoder, check_fits, schema_for

            arrow = to_arrow_type(type, timezone="UTC")
            text = format.text()
            texts = schema_for(arrow) if text is None else (text,)
            check_fits(texts, arrow)
            return _encoded_in_workers(AvroEncoder(texts, _registered(format, texts[-1], "AVRO")), column)
        case Protobuf():
            return _encoded_protobuf(column, type, format)


def _place(df: DataFrame, column: str) -> Column:
    if set(PLACE) <= _columns_of(df):
        topic, partition, offset = (df[name] for name in PLACE)
        return F.concat(F.lit(f"{column} of "), topic, F.lit("-"), partition, F.lit(" at offset "), offset, F.lit(": "))
    return F.lit(f"{column}: ")


def _columns_of(df: DataFrame) -> set[str]:
    """Returns the DataFrame's columns; none in functions of declarative pipelines, which must not call Spark."""
    try:
        return set(df.columns)
    except AnalysisException as error:
        if error.getCondition() != "ATTEMPT_ANALYSIS_IN_PIPELINE_QUERY_FUNCTION":
            raise
        return set()


def _both(value: Column, error: Column) -> Column:
    return F.struct(value.alias("value"), error.alias(ERROR))


def _in_workers(decoder: _Decoder, column: Column) -> Column:
    result = StructType([StructField("value", from_arrow_type(decoder.type)), StructField(ERROR, StringType())])

    def decode(values: pa.Array) -> pa.Array:
        made = decoder(values)
        return pa.StructArray.from_arrays([made.values, made.errors], names=["value", ERROR])

    return _arrow_function(decode, result, column)


def _encoded_in_workers(encoder: Any, column: Column) -> Column:
    def encode(values: pa.Array) -> pa.Array:
        return encoder(values)

    return _arrow_function(encode, BinaryType(), column)


def _arrow_function(function: Callable[[pa.Array], pa.Array], result: DataType, column: Column) -> Column:
    """Returns the result of the function for the column; Spark takes its types from its annotations."""
    made: Column = arrow_udf(function, result)(column)  # type: ignore[call-overload]
    return made


def _newest(format: Json | Avro | Protobuf, kind: str) -> Found:
    """Returns the subject's newest schema as default for reading."""
    if format.registry is None or format.subject is None:
        need = "subject" if format.registry is not None else "schema, or a registry and a subject"
        raise ValueError(f"{kind.lower()} needs a {need}")
    found = format.registry.latest(format.subject, serialized=kind == "PROTOBUF")
    if found.kind != kind:
        raise ValueError(f"the schema of subject {format.subject} is {found.kind}, not {kind}")
    return found


def _registered(format: Json | Avro | Protobuf, schema: str, kind: str) -> int | None:
    """Registers the schema, and returns its id."""
    if not format.is_framed:
        return None
    if format.registry is None or format.subject is None:
        raise ValueError("values with a schema registry's header are written with registry and subject")
    return format.registry.register(format.subject, schema, kind)


def _avro_decoder(format: Avro) -> _Decoder:
    from barnabas.pipelines.values.avro import AvroDecoder

    text = format.text()
    texts = tuple(each for _, each in _newest(format, "AVRO").texts) if text is None else (text,)
    return AvroDecoder(texts, format.registry, format.is_framed)


def _protobuf_schema(format: Protobuf) -> bytes | None:
    from barnabas.pipelines.values.protobuf_schemas import from_file, from_text

    file = format.file()
    if file is not None:
        return from_file(file)
    return None if format.schema is None else from_text(format.schema)


def _protobuf_decoder(format: Protobuf) -> _Decoder:
    from barnabas.pipelines.values.protobuf import ProtobufDecoder
    from barnabas.pipelines.values.protobuf_schemas import from_registry, message_of

    descriptors = _protobuf_schema(format) or from_registry(_newest(format, "PROTOBUF"))
    name = message_of(descriptors, format.message).full_name
    return ProtobufDecoder(descriptors, name, format.registry, format.is_framed)


def _encoded_protobuf(column: Column, type: DataType, format: Protobuf) -> Column:
    from barnabas.pipelines.values.protobuf import ProtobufEncoder, check_fits
    from barnabas.pipelines.values.protobuf_schemas import message_of, registered

    descriptors = _protobuf_schema(format)
    if descriptors is None:
        raise ValueError("protobuf needs a schema to write: a column does not have field numbers")
    name = message_of(descriptors, format.message).full_name
    check_fits(descriptors, name, to_arrow_type(type, timezone="UTC"))
    schema_id = None
    if format.is_framed:
        if format.registry is None or format.subject is None:
            raise ValueError("values with a schema registry's header are written with registry and subject")
        schema_id = registered(format.registry, format.subject, descriptors, name)
    return _encoded_in_workers(ProtobufEncoder(descriptors, name, schema_id), column)


class _JsonSchema(NamedTuple):
    """The schema for `from_json`, a struct with a field for errors (CORRUPT), and its text for messages."""

    schema: StructType | ArrayType | MapType | str
    is_struct: bool
    shown: str


def _json_schema(format: Json) -> _JsonSchema:
    """Does not call Spark: the functions of declarative pipelines must not."""
    text = format.text()
    if text is None:
        text = _newest(format, "JSON").text
    if is_json_schema(text) or is_sparks(text):
        type = _of_sparks_json(spark_type(text) if is_json_schema(text) else json.loads(text))
        shown = type.simpleString()
        if isinstance(type, StructType):
            return _JsonSchema(StructType([*type.fields, StructField(CORRUPT, StringType())]), True, shown)
        if isinstance(type, ArrayType | MapType):
            return _JsonSchema(type, False, shown)
        raise _no_json(shown)
    ddl = " ".join(text.split())
    if re.match(r"(ARRAY|MAP)\s*<", ddl, re.IGNORECASE):
        return _JsonSchema(ddl, False, ddl)
    if re.match(r"STRUCT\s*<", ddl, re.IGNORECASE):
        return _JsonSchema(f"{ddl[:-1]}, {CORRUPT}: STRING>", True, ddl)
    if " " not in re.sub(r"\(.*\)", "", ddl):
        raise _no_json(ddl)
    return _JsonSchema(f"{ddl}, {CORRUPT} STRING", True, ddl)


def _no_json(shown: str) -> ValueError:
    return ValueError(f"json needs a schema of an object or an array, and this is {shown}")


def _of_sparks_json(type: Any) -> DataType:
    """Returns any type from Spark's JSON; `StructType` only reads structs."""
    held = {"type": "struct", "fields": [{"name": "it", "type": type, "nullable": True, "metadata": {}}]}
    return StructType.fromJson(held).fields[0].dataType


def _with_decoded_json(df: DataFrame, source: Column, format: Json, mark: str) -> DataFrame:
    schema, is_struct, shown = _json_schema(format)
    body, error = source, F.lit(None).cast(StringType())
    if format.is_framed:
        missing = (F.octet_length(source) < HEADER_BYTES) | (F.substring(source, 1, 1) != F.lit(b"\0"))
        error = F.when(missing, F.lit("it lacks the five-byte header of a schema registry"))
        body = F.when(~missing, F.substring(source, HEADER_BYTES + 1, 1 << 30))
    text = body.cast(StringType())
    read = F.from_json(text, schema, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT})
    whole = F.col(f"{mark}_json")
    corrupt = whole[CORRUPT].isNotNull() if is_struct else F.lit(False)
    value = whole.dropFields(CORRUPT) if is_struct else whole
    nothing = F.trim(text) == F.lit("null")
    wrong = text.isNotNull() & ~nothing & (corrupt | whole.isNull())
    start = F.when(F.length(text) > SHOWN, F.concat(F.substring(text, 1, SHOWN), F.lit(" ..."))).otherwise(text)
    mismatch = F.concat(
        F.lit(f"it is not JSON of the schema {shown[:SHOWN]}{' ...' if len(shown) > SHOWN else ''}: "), start
    )
    there = ~wrong & whole.isNotNull() & ~nothing
    both = _both(F.when(there, value), F.coalesce(error, F.when(wrong, mismatch)))
    return _once(df, f"{mark}_json", read).withColumn(mark, both).drop(f"{mark}_json")


def _encoded_json(column: Column, type: DataType, format: Json) -> Column:
    if not isinstance(type, StructType | ArrayType | MapType):
        raise ValueError(f"json needs a struct, an array or a map, but the column is {type.simpleString()}")
    body = F.to_json(column).cast(BinaryType())
    text = format.text()
    if not format.is_framed:
        return body
    document = text if text is not None and is_json_schema(text) else json.dumps(json_schema(type.jsonValue()))
    schema_id = _registered(format, document, "JSON")
    assert schema_id is not None
    return F.concat(F.lit(header(schema_id)), body)
