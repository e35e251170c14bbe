"""How a micro-batch comes into a directory once, whatever is killed when; and how readers see whole files only.

A file that readers see is never touched again. What a batch wrote is held back, hidden, until there is enough of it
(or until it is old enough), then merged, and the result made visible by one rename: at no moment does a reader find a
record twice, or miss one that it found before. Knows nothing of Spark and of formats: who writes and who merges is
passed in.

Steps, each of which may be the last before a kill, and what the next start makes of it:

    a batch    1 write its files to staging              forgotten: Spark asks for the batch again
               2 write batches/N.json, which names them  decided: from here on the batch is in the export
               3 move each to held                       the rest is moved; Spark's asking again changes nothing
    a merge    1 write the merged file to staging        forgotten: the parts are still held
               2 write merges/X.json                     decided
               3 move the merged file to its place       moved, if it is still in staging
               4 delete the parts                        deleted, those that are still there
               5 delete merges/X.json
"""

import json
import time
from collections.abc import Callable, Sequence

from barnabas.pipelines.jobs.exporting.files import Files
from barnabas.pipelines.jobs.exporting.layout import Layout, Part, fingerprint, leaf_of
from barnabas.pipelines.jobs.exporting.merging import Limits, due

Stage = Callable[[str], str]
"""Writes the files of a batch below a directory, in the directories that they are to be in; returns their schema."""

Merge = Callable[[Sequence[str], str, str], str]
"""Makes one file of these, below a directory; the third is their schema, as they were staged with. Returns its path."""


class Store:
    """The files of one export. For one thread at a time, of one process: Spark's checkpoint sees to that."""

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
        """`merges_one`: a single part, too, goes through `merge` before it is what readers expect."""
        self._files, self._layout, self._limits, self._merge = files, layout, limits, merge
        self._merges_one, self._now = merges_one, now
        self._is_clean = False  # nothing is half done

    def add(self, batch: int, stage: Stage) -> bool:
        """Have this batch in the export; False if it was there already.

        Raises:
            ValueError: a later batch is there: the checkpoint is an old copy.
        """
        self._recover()
        newest = self._newest()
        if newest is not None and newest > batch:
            raise ValueError(
                f"batch {batch} is to be exported to {self._files.uri('')}, where batch {newest} has been already: "
                "the checkpoint is older than the export; go on with the newest checkpoint, or export to another place"
            )
        if newest == batch:
            return False
        self._is_clean = False
        self._files.delete(self._layout.staging)
        below = f"{self._layout.staging}/{batch}"  # of its own: this batch's names must not stand for an earlier one's
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
        """Make visible what is due, or all that is held; returns how many files that made."""
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
        """What readers do not see yet."""
        found = (self._layout.parse_part(*entry) for entry in self._files.list(self._layout.held))
        return [part for part in found if part is not None]

    def _known(self, schema: str) -> str:
        """The fingerprint of a schema that `merge` will ask for."""
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
        """Finish what was decided, and was not done when an earlier run was killed, or this one failed."""
        if self._is_clean:
            return
        for entry in self._files.list(self._layout.merges):
            self._finish_merge(entry.path)
        newest = self._newest()
        if newest is not None:
            self._move(json.loads(self._files.read(self._layout.batch(newest)) or "{}"))
        self._is_clean = True

    def _move(self, moves: dict[str, str]) -> None:
        """Move those that have not been moved yet."""
        there = {entry.path for entry in self._files.list(self._layout.staging)}
        for source, target in moves.items():
            if source in there:
                self._files.move(source, target)

    def _newest(self) -> int | None:
        names = [entry.path.rpartition("/")[2] for entry in self._files.list(self._layout.batches)]
        return max((int(name.removesuffix(".json")) for name in names), default=None)
