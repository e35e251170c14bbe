"""The formats of records' values: text, JSON, Avro and Protobuf, with a schema registry or without.

Knows nothing of topics and offsets: converts columns to columns.
"""

from typing import TYPE_CHECKING, Any

from barnabas.pipelines.values.formats import Avro, Format, Json, Protobuf, Raw, Utf8, format_named, parse_format
from barnabas.pipelines.values.registry import Registry

if TYPE_CHECKING:
    from barnabas.pipelines.values.columns import Split, decode_value, encode_value, split

__all__ = [
    "Avro",
    "Format",
    "Json",
    "Protobuf",
    "Raw",
    "Registry",
    "Split",
    "Utf8",
    "decode_value",
    "encode_value",
    "format_named",
    "parse_format",
    "split",
]


def __getattr__(name: str) -> Any:
    """Imports the modules that need Spark at their first use: the command line only reads the formats' names."""
    if name not in ("Split", "decode_value", "encode_value", "split"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from barnabas.pipelines.values import columns

    return getattr(columns, name)
