"""The names of an export's files and directories.

Knows nothing of file systems: paths are relative to the export's directory.

    topic=orders/date=2026-11-21/part-1f0c99aa-0000000007-0000.parquet    what readers see
    _barnabas/1f0c99aa-…/export.json                                      which topics this export writes here
                         staging/                                         files that are being written
                         schemas/5d41402a.json                            the schemas of held parts
                         batches/0000000007.json                          the files of the newest batch
                         held/topic=orders/date=2026-11-21/0000000008-0000-5d41402a.part
                         merges/part-1f0c99aa-0000000007-0000.json        a merge that is being made visible

Spark, Hive and pyarrow ignore names that begin with an underscore. A held part does not end in ``.parquet``, so that a
glob does not match it either.
"""

import hashlib
import re
from typing import NamedTuple

HOME = "_barnabas"
DIGITS = 10

_PART = re.compile(rf"(?:(?P<leaf>.+)/)?(?P<batch>\d{{{DIGITS}}})-(?P<number>\d{{4,}})-(?P<schema>[0-9a-f]{{8}})\.part")


class Part(NamedTuple):
    """A file of one micro-batch, held back until it is large or old enough to become visible."""

    leaf: str  #: the directory its records belong to, ``date=2026-11-21``; empty without such directories
    batch: int
    number: int
    schema: str  #: fingerprint of its columns; parts of two schemas are not merged
    size: int  #: bytes
    since: float  #: seconds since the epoch

    @property
    def name(self) -> str:
        return f"{self.batch:0{DIGITS}}-{self.number:04}-{self.schema}.part"


class Layout(NamedTuple):
    """The paths of one export."""

    export: str  #: Spark's id of the query, which the checkpoint keeps
    suffix: str  #: of visible files: ``.parquet``

    @property
    def home(self) -> str:
        return f"{HOME}/{self.export}"

    @property
    def staging(self) -> str:
        return f"{self.home}/staging"

    @property
    def held(self) -> str:
        return f"{self.home}/held"

    @property
    def batches(self) -> str:
        return f"{self.home}/batches"

    @property
    def merges(self) -> str:
        return f"{self.home}/merges"

    def schema(self, fingerprint: str) -> str:
        return f"{self.home}/schemas/{fingerprint}.json"

    def batch(self, number: int) -> str:
        return f"{self.batches}/{number:0{DIGITS}}.json"

    def part(self, part: Part) -> str:
        return "/".join(filter(None, (self.held, part.leaf, part.name)))

    def published(self, first: Part) -> str:
        """Returns the visible path of the file whose first part this is; unique, as a part is in one file only."""
        name = f"part-{self.export[:8]}-{first.batch:0{DIGITS}}-{first.number:04}{self.suffix}"
        return f"{first.leaf}/{name}" if first.leaf else name

    def merge(self, first: Part) -> str:
        leaf = first.leaf.replace("/", "-")
        name = f"part-{self.export[:8]}-{first.batch:0{DIGITS}}-{first.number:04}"
        return f"{self.merges}/{f'{leaf}-{name}' if leaf else name}.json"

    def parse_part(self, path: str, size: int, modified: float) -> Part | None:
        """Returns the part that a path below ``held`` names, or None if it names none."""
        found = _PART.fullmatch(path.removeprefix(f"{self.held}/"))
        if found is None:
            return None
        return Part(found["leaf"] or "", int(found["batch"]), int(found["number"]), found["schema"], size, modified)


def fingerprint(schema: str) -> str:
    """Returns eight hexadecimal digits that identify a schema, given in Spark's JSON."""
    return hashlib.sha256(schema.encode()).hexdigest()[:8]


def leaf_of(path: str, below: str) -> str:
    """Returns the directory of a staged file, relative to the staging directory."""
    return path.removeprefix(f"{below}/").rpartition("/")[0]
