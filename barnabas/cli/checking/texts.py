"""The small text files: checkpoints, properties and JSON, read as strictly as they are written.

Knows nothing of what their numbers should be. A byte that no writer would have written is damage, even where a lenient
reader would make the same of it.
"""

import base64
import json
from pathlib import Path
from typing import Any

from barnabas.cli.checking.findings import Findings


def read_checkpoint(path: Path, columns: int, findings: Findings) -> list[list[str]] | None:
    """The lines of a checkpoint, in words; None when there is no such file, or it cannot be read as one."""
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
        findings.error("checkpoint", str(path), "it is no UTF-8", error.start)
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
        findings.error("checkpoint", str(path), "it is cut off", position)
        return None
    if lines[0] != "0" or int(lines[1]) != len(entries):
        what = f"version {lines[0]} with {lines[1]} entries are announced, and {len(entries)} are there"
        findings.error("checkpoint", str(path), what, 0)
        return None
    return entries


def _is_number(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(word)) == word


def read_offsets(path: Path, findings: Findings) -> dict[tuple[str, int], int] | None:
    """An offset for each partition; None when there is no such file, or it cannot be read as one."""
    entries = read_checkpoint(path, 3, findings)
    if entries is None:
        return None
    offsets = {(topic, int(partition)): int(offset) for topic, partition, offset in entries}
    if len(offsets) < len(entries):
        findings.error("checkpoint", str(path), "a partition is there twice")
    for (topic, partition), offset in offsets.items():
        if offset < 0 or partition < 0:
            findings.error("checkpoint", str(path), f"{topic}-{partition} has the offset {offset}")
    return offsets


def read_properties(path: Path, separator: str, wanted: tuple[str, ...], findings: Findings) -> dict[str, str] | None:
    """Names and values, a pair a line, of just these names; None when the file cannot be read so."""
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
    """The one object in the file, empty if the file is; None when it cannot be read so."""
    data = path.read_bytes()
    if not data:
        return {}
    try:
        found = json.loads(data)
        is_as_written = isinstance(found, dict) and json.dumps(found, separators=(",", ":")).encode() == data
    except ValueError as error:
        findings.error("json", str(path), f"it is no JSON: {error}", getattr(error, "pos", None))
        return None
    if not is_as_written:
        findings.error("json", str(path), f"it is not as it was written: {data[:200]!r}")
        return None
    return dict(found)


def uuid_of(text: str) -> bytes | None:
    """Sixteen bytes of URL-safe base64 without padding; None when the text is not what is made of any."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except ValueError:
        return None
    return value if len(value) == 16 and base64.urlsafe_b64encode(value).decode().rstrip("=") == text else None
