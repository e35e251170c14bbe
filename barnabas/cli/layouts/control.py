"""The layouts of control records: transaction markers, and the control records of KRaft.

Knows nothing of batches. Sources: KIP-98, KIP-595, KIP-630, KIP-853.
"""

from typing import Any

from construct import Construct, If, Int16sb, Int16ub, Int32sb, Int64sb, Struct, this

from barnabas.cli.layouts.primitives import NO_TAGS, UUID, array, text

KEY = Struct("version" / Int16sb, "type" / Int16sb)

MARKER = Struct("version" / Int16sb, "coordinator_epoch" / Int32sb)

_VOTER = Struct("voter_id" / Int32sb, "voter_directory_id" / If(this._root.version >= 1, UUID), "tags" / NO_TAGS)
LEADER_CHANGE = Struct(
    "version" / Int16sb,
    "leader_id" / Int32sb,
    "voters" / array(_VOTER, compact=True),
    "granting_voters" / array(_VOTER, compact=True),
    "tags" / NO_TAGS,
)
SNAPSHOT_HEADER = Struct("version" / Int16sb, "last_contained_log_timestamp" / Int64sb, "tags" / NO_TAGS)
SNAPSHOT_FOOTER = Struct("version" / Int16sb, "tags" / NO_TAGS)
KRAFT_VERSION = Struct("version" / Int16sb, "kraft_version" / Int16sb, "tags" / NO_TAGS)
_ENDPOINT = Struct("name" / text(compact=True), "host" / text(compact=True), "port" / Int16ub, "tags" / NO_TAGS)
_RANGE = Struct("min_supported_version" / Int16sb, "max_supported_version" / Int16sb, "tags" / NO_TAGS)
KRAFT_VOTERS = Struct(
    "version" / Int16sb,
    "voters"
    / array(
        Struct(
            "voter_id" / Int32sb,
            "voter_directory_id" / UUID,
            "endpoints" / array(_ENDPOINT, compact=True),
            "kraft_version_feature" / _RANGE,
            "tags" / NO_TAGS,
        ),
        compact=True,
    ),
    "tags" / NO_TAGS,
)

TYPES: dict[int, tuple[str, Construct]] = {
    0: ("ABORT", MARKER),
    1: ("COMMIT", MARKER),
    2: ("LEADER_CHANGE", LEADER_CHANGE),
    3: ("SNAPSHOT_HEADER", SNAPSHOT_HEADER),
    4: ("SNAPSHOT_FOOTER", SNAPSHOT_FOOTER),
    5: ("KRAFT_VERSION", KRAFT_VERSION),
    6: ("KRAFT_VOTERS", KRAFT_VOTERS),
}


def plain(parsed: Any) -> Any:
    """Converts what construct has parsed to dictionaries and lists, and leaves out empty tagged fields."""
    if isinstance(parsed, dict):
        return {
            name: plain(value)
            for name, value in parsed.items()
            if not name.startswith("_") and not (name == "tags" and not value)
        }
    if isinstance(parsed, list):
        return [plain(value) for value in parsed]
    return parsed
