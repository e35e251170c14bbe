"""Parses the one-line definition of a table of the stream job: a topic or files, their formats, and a watermark.

Knows nothing of how tables are made. Imported without Spark.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.pipelines.values.formats import OPTIONS as OF_FORMATS
from barnabas.pipelines.values.formats import Format, Raw, format_named, parse_options

READS = ("stream", "batch", "latest")
SOURCES = ("topic", "files")

OPTIONS: Mapping[str, str] = {
    "topic": "the topic; by default the name of the table",
    "files": "a directory or pattern of files, instead of a topic",
    "format": "the format of values: raw (default), utf8, json, avro or protobuf; of files: parquet (default), "
    "csv, json, orc, text",
    **OF_FORMATS,
    "key.*": "the same for keys: `key.format` (raw by default), `key.schema` ...",
    "read": "`stream`: records as they arrive, the default for topics; `batch`: the records at the start of the job, "
    "the default for files; `latest`: the newest record of each key of a topic at the start of the job, without "
    "tombstones",
    "watermark": "a column with the time of an event, and the maximum delay: `_timestamp 10 minutes`",
    "headers": "`true`: adds a column `_headers`",
    "option.*": "an option of Spark's reader: of the data source (`option.failOnDataLoss=false`), or of the one for "
    "files (`option.header=true`)",
}
"""The options of a table."""


@dataclass(frozen=True)
class Table:
    """The definition of a table. Exactly one of `topic` and `files` is not None."""

    name: str
    topic: str | None
    files: str | None
    read: str
    value: Format = field(default_factory=Raw)
    key: Format = field(default_factory=Raw)
    file_format: str = "parquet"
    file_schema: str | None = None
    watermark: tuple[str, str] | None = None
    headers: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


def parse_table(text: str) -> Table:
    """Parses ``orders=topic:orders,format=json,schema=id BIGINT, at TIMESTAMP,watermark=at 10 minutes``.

    :raises ValueError: an option is wrong; the message names the table and the option.
    """
    found = re.fullmatch(r"\s*([A-Za-z]\w*)\s*(?:[=,]\s*(.*))?", text, re.DOTALL)
    if found is None:
        raise ValueError(f"table {text!r} does not begin with a name of letters, digits and underscores")
    name, rest = found[1], found[2] or ""
    try:
        return _table(name, rest)
    except ValueError as problem:
        raise ValueError(f"table {name}: {problem}") from problem


def _table(name: str, rest: str) -> Table:
    head, options = parse_options(rest, set(OPTIONS), first="topic")
    if head:
        source, colon, what = head.partition(":")
        if not colon or source not in SOURCES or not what:
            raise ValueError(f"it is made of {head!r}, but must be of topic:NAME or files:PATH")
        if {"topic", "files"} & options.keys():
            raise ValueError("it is said twice what it is made of")
        options[source] = what
    if {"topic", "files"} <= options.keys():
        raise ValueError("it is made of a topic, or of files, not of both")
    files = options.pop("files", None)
    topic = options.pop("topic", name) if files is None else None
    read = options.pop("read", "stream" if files is None else "batch")
    if read not in READS:
        raise ValueError(f"read is {read!r}, but must be one of {', '.join(READS)}")
    watermark = _watermark(options.pop("watermark", None))
    readers = {key.removeprefix("option."): options.pop(key) for key in list(options) if key.startswith("option.")}
    if topic is None:
        return _of_files(name, str(files), read, watermark, readers, options)
    headers = options.pop("headers", "false")
    if headers not in ("true", "false"):
        raise ValueError(f"headers is {headers!r}, but must be true or false")
    of_key = {key.removeprefix("key."): options.pop(key) for key in list(options) if key.startswith("key.")}
    return Table(
        name,
        topic,
        None,
        read,
        value=format_named(options.pop("format", "raw"), options, subject=f"{topic}-value"),
        key=format_named(of_key.pop("format", "raw"), of_key, subject=f"{topic}-key"),
        watermark=watermark,
        headers=headers == "true",
        options=readers,
    )


def _of_files(
    name: str,
    files: str,
    read: str,
    watermark: tuple[str, str] | None,
    readers: Mapping[str, str],
    options: dict[str, str],
) -> Table:
    file_format, schema = options.pop("format", "parquet"), options.pop("schema", None)
    if options:
        raise ValueError(f"{next(iter(options))} is for topics, not for files")
    if read == "latest":
        raise ValueError("read=latest is for topics: files have no keys")
    if read == "stream" and schema is None:
        raise ValueError("read=stream needs a schema: the columns of the files, as in schema=id BIGINT, name STRING")
    return Table(
        name, None, files, read, file_format=file_format, file_schema=schema, watermark=watermark, options=readers
    )


def _watermark(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    column, _, delay = text.strip().partition(" ")
    if not re.fullmatch(r"\s*\d+ \w+(?: \d+ \w+)*\s*", delay):
        raise ValueError(f"watermark is {text!r}, but must be a column and an interval, such as _timestamp 10 minutes")
    return column, delay.strip()
