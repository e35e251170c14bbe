"""Reads checkpoints, properties and JSON files strictly.

Knows nothing of what their numbers should be. A byte that no writer writes is damage, even if a lenient reader would
accept it.
"""

import base64
import json
from pathlib import Path
from typing import Any

from barnabas.cli.checking.findings import Findings


def read_checkpoint(path: Path, columns: int, findings: Findings) -> list[list[str]] | None:
    """Returns the lines of a checkpoint, each split at blanks; None if the file is missing or malformed."""
    if not path.exists():
        return None
    data = path.read_bytes()
    if not data:
        return []
    entries = []
    position = 0
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        findings.error("checkpoint", str(path), "it is not UTF-8", error.start)
        return None
    for number, line in enumerate(lines[:-1]):
        words = line.split(" ")
        good = len(words) == (1 if number < 2 else columns) and all(
            map(_is_number, words[-2:] if number > 1 else words)
        )
        if not good or (number > 1 and not words[0]):
            findings.error("checkpoint", str(path), f"line {number + 1} is {line!r}", position)
            return None
        if number > 1:
            entries.append(words)
        position += len(line.encode()) + 1
    if lines[-1] or len(lines) < 3:
        findings.error("checkpoint", str(path), "it is truncated", position)
        return None
    if lines[0] != "0" or int(lines[1]) != len(entries):
        what = f"it has version {lines[0]} and {lines[1]} entries in its header, but it has {len(entries)}"
        findings.error("checkpoint", str(path), what, 0)
        return None
    return entries


def _is_number(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(word)) == word


def read_offsets(path: Path, findings: Findings) -> dict[tuple[str, int], int] | None:
    """Returns the offset of each partition in a checkpoint; None if the file is missing or malformed."""
    entries = read_checkpoint(path, 3, findings)
    if entries is None:
        return None
    offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    if len(offsets) < len(entries):
        findings.error("checkpoint", str(path), "it has two lines for a partition")
    for (topic, partition), offset in offsets.items():
        if offset < 0 or partition < 0:
            findings.error("checkpoint", str(path), f"{topic}-{partition} has the offset {offset}")
    return offsets


def read_properties(path: Path, separator: str, wanted: tuple[str, ...], findings: Findings) -> dict[str, str] | None:
    """Returns the values of exactly these names; None if the file has others, lacks one, or is malformed."""
    found: dict[str, str] = {}
    position = 0
    for line in path.read_bytes().decode("latin-1").split("\n"):
        name, mark, value = line.partition(separator)
        is_comment = line.startswith("#") and separator == "="
        if line and not is_comment:
            value = value.replace("\\:", ":").replace("\\=", "=")
            if not mark or name not in wanted or name in found:
                findings.error("properties", str(path), f"the line {line!r} is none of {', '.join(wanted)}", position)
                return None
            found[name] = value
        position += len(line) + 1
    missing = [name for name in wanted if name not in found]
    if missing:
        findings.error("properties", str(path), f"{', '.join(missing)} is missing")
        return None
    return found


def read_json(path: Path, findings: Findings) -> dict[str, Any] | None:
    """Returns the JSON object in the file, an empty one if the file is empty; None if it is malformed."""
    data = path.read_bytes()
    if not data:
        return {}
    try:
        found = json.loads(data)
        is_as_written = isinstance(found, dict) and json.dumps(found, separators=(",", ":")).encode() == data
    except ValueError as error:
        findings.error("json", str(path), f"it is not JSON: {error}", getattr(error, "pos", None))
        return None
    if not is_as_written:
        findings.error("json", str(path), f"it is not in the form that a broker writes: {data[:200]!r}")
        return None
    return dict(found)


def uuid_of(text: str) -> bytes | None:
    """Decodes an id from URL-safe base64 without padding; returns None if it is not canonical."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return value if len(value) == 16 and base64.urlsafe_b64encode(value).decode().rstrip("=") == text else None
