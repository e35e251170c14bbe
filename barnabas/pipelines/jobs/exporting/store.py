"""Adds each micro-batch to a directory exactly once, even after crashes, and shows readers only whole files.

A visible file is never changed or deleted. The files of a batch are held back, hidden, until they are large or old
enough. Then they are merged, and the result becomes visible by one rename. A file that has the target size by itself is
not merged. So at no moment does a reader find a record twice, or miss one that it found before. Knows nothing of Spark
and of formats: the functions that write and merge files are passed in.

The process may be killed after each of these steps. The last column is the recovery at the next start:

    a batch    1 write its files to staging              drops them: Spark repeats the batch
               2 write batches/N.json, which lists them  the batch is committed: moves the rest of its files, and
               3 move each to held                       ignores the batch when Spark repeats it
    a merge    1 write the merged file to staging        drops it: the parts are still held
               2 write merges/X.json                     the merge is committed
               3 move the merged file to its place       moves it, if it is still in staging
               4 delete the parts                        deletes those that are left
               5 delete merges/X.json
"""

import json
import time
from collections.abc import Callable, Sequence

from barnabas.pipelines.jobs.exporting.files import Files
from barnabas.pipelines.jobs.exporting.layout import Layout, Part, fingerprint, leaf_of
from barnabas.pipelines.jobs.exporting.merging import Limits, due

Stage = Callable[[str], str]
"""Writes a batch's files below a directory, in the subdirectories where they belong; returns their schema."""

Merge = Callable[[Sequence[str], str, str], str]
"""Merges files into one below a directory; the third argument is the schema that `Stage` returned. Returns its path."""


class Store:
    """The files of one export. Used by one thread of one process at a time, which Spark's checkpoint ensures."""

    def __init__(
        self,
        files: Files,
        layout: Layout,
        limits: Limits,
        merge: Merge,
        *,
        merges_one: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        """:param merges_one: a single part goes through `merge` too, as its format needs that."""
        self._files, self._layout, self._limits, self._merge = files, layout, limits, merge
        self._merges_one, self._now = merges_one, now
        self._is_clean = False  # no step is half done

    def add(self, batch: int, stage: Stage) -> bool:
        """Adds this batch; returns False if it is in the export already.

        :raises ValueError: a later batch is in the export, so the checkpoint is an old copy.
        """
        self._recover()
        newest = self._newest()
        if newest is not None and newest > batch:
            raise ValueError(
                f"cannot export batch {batch} to {self._files.uri('')}: batch {newest} is there already, so the "
                "checkpoint is older than the export; continue with the newest checkpoint, or export to another "
                "directory"
            )
        if newest == batch:
            return False
        self._is_clean = False
        self._files.delete(self._layout.staging)
        below = f"{self._layout.staging}/{batch}"  # so that no name in batches/N.json matches another batch's file
        schema = self._known(stage(below))
        moves = {
            entry.path: self._layout.part(Part(leaf_of(entry.path, below), batch, number, schema, 0, 0.0))
            for number, entry in enumerate(self._files.list(below))
        }
        self._files.write(self._layout.batch(batch), json.dumps(moves, indent=1))
        self._move(moves)
        if newest is not None:
            self._files.delete(self._layout.batch(newest))
        self._is_clean = True
        return True

    def publish(self, *, all_of_them: bool = False) -> int:
        """Makes visible what is due, or everything; returns the number of files that became visible."""
        self._recover()
        groups = due(self.held(), self._limits, now=self._now(), all_of_them=all_of_them)
        self._is_clean = not groups
        for group in groups:
            if len(group) > 1 or self._merges_one:
                self._publish_merged(group)
            else:
                self._files.move(self._layout.part(group[0]), self._layout.published(group[0]))
        if groups:
            self._files.delete(self._layout.staging)
        self._is_clean = True
        return len(groups)

    def held(self) -> list[Part]:
        """Returns the parts that are not visible yet."""
        found = (self._layout.parse_part(*entry) for entry in self._files.list(self._layout.held))
        return [part for part in found if part is not None]

    def _known(self, schema: str) -> str:
        """Stores the schema for later merges; returns its fingerprint."""
        name = fingerprint(schema)
        if self._files.read(self._layout.schema(name)) is None:
            self._files.write(self._layout.schema(name), schema)
        return name

    def _publish_merged(self, group: list[Part]) -> None:
        self._files.delete(self._layout.staging)
        parts = [self._layout.part(part) for part in group]
        note = self._layout.merge(group[0])
        schema = self._files.read(self._layout.schema(group[0].schema)) or ""
        staged = self._merge(parts, f"{self._layout.staging}/merged", schema)
        self._files.write(
            note,
            json.dumps({"staged": staged, "published": self._layout.published(group[0]), "parts": parts}, indent=1),
        )
        self._finish_merge(note)

    def _finish_merge(self, note: str) -> None:
        merge = json.loads(self._files.read(note) or "{}")
        self._move({merge["staged"]: merge["published"]})
        for part in merge["parts"]:
            self._files.delete(part)
        self._files.delete(note)

    def _recover(self) -> None:
        """Finishes what was committed before an earlier run was killed, or before this one failed."""
        if self._is_clean:
            return
        for entry in self._files.list(self._layout.merges):
            self._finish_merge(entry.path)
        newest = self._newest()
        if newest is not None:
            self._move(json.loads(self._files.read(self._layout.batch(newest)) or "{}"))
        self._is_clean = True

    def _move(self, moves: dict[str, str]) -> None:
        """Moves the files that have not been moved yet."""
        there = {entry.path for entry in self._files.list(self._layout.staging)}
        for source, target in moves.items():
            if source in there:
                self._files.move(source, target)

    def _newest(self) -> int | None:
        """Returns the number of the newest committed batch, or None if there is none."""
        names = [entry.path.rpartition("/")[2] for entry in self._files.list(self._layout.batches)]
        return max((int(name.removesuffix(".json")) for name in names), default=None)
