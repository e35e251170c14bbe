"""Exports batches to a Delta table: Spark writes the files, the deltalake library commits them. Needs no jar.

A batch and its number are one commit of the table's log (a `txn` action: application id and version). So a batch that
Spark repeats changes nothing, and readers see all of it or none. The files of a batch that was killed before its commit
are replaced when it is written again, or left for VACUUM. Knows nothing of topics.
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from barnabas.pipelines.jobs.exporting.columns import Shape
from barnabas.pipelines.jobs.exporting.files import LocalFiles
from barnabas.pipelines.jobs.exporting.layout import Layout, Part, leaf_of
from barnabas.pipelines.jobs.exporting.merging import Limits, due
from barnabas.pipelines.jobs.exporting.to_files import Format, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class DeltaTarget:
    """A Delta table in a directory of this machine, as the target of one export."""

    def __init__(
        self,
        files: LocalFiles,
        export: str,
        compression: str,
        shape: Shape,
        limits: Limits,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._now = now
        self._files, self._export, self._shape, self._limits = files, export, shape, limits
        self._format = Format("parquet", compression)
        self._layout = Layout(export, self._format.suffix)

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Adds the batch unless it is in the table, and merges small files that are due; returns whether it was added.

        :raises ValueError: a later batch is in the table, or a column has another type than in the table.
        """
        from deltalake import CommitProperties, Transaction

        table = self._table(df.schema)
        newest = table.transaction_version(self._export)
        if newest is not None and newest > batch:
            raise ValueError(
                f"cannot export batch {batch} to the table {self._files.root}: batch {newest} is there already, so "
                "the checkpoint is older than the export; continue with the newest checkpoint"
            )
        if newest == batch:
            return False
        table.create_write_transaction(
            self._written(df, batch),
            "append",
            table.schema(),
            partition_by=list(self._shape.directories),
            commit_properties=CommitProperties(app_transactions=[Transaction(self._export, batch)]),
        )
        self.publish()
        return True

    def publish(self) -> None:
        """Merges small files that are due. All files are visible."""
        self._merge()

    def close(self) -> None:
        """Merges all small files."""
        self._merge(all_of_them=True)

    def _table(self, schema: "StructType") -> Any:
        """Returns the table; creates it, or adds the columns that it lacks."""
        from deltalake import DeltaTable, Schema
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = Schema.from_arrow(to_arrow_schema(schema, timezone="UTC"))
        where, directories = str(self._files.root), list(self._shape.directories)
        table = DeltaTable.create(where, wanted, mode="ignore", partition_by=directories)
        if table.metadata().partition_columns != directories:
            raise ValueError(
                f"the table {where} is partitioned by {', '.join(table.metadata().partition_columns) or 'nothing'}, "
                f"but the export by {', '.join(directories) or 'nothing'}: set partition_by"
            )
        there = {field.name: field.type for field in table.schema().fields}
        for field in wanted.fields:
            if there.get(field.name, field.type) != field.type:
                raise ValueError(
                    f"column {field.name} of the table {where} has type {there[field.name]}, but the export writes "
                    f"{field.type}: export to another table, or with the previous schema"
                )
        new = [field for field in wanted.fields if field.name not in there]
        if new:
            table.alter.add_columns(new)
            table = DeltaTable(where)
        return table

    def _written(self, df: "DataFrame", batch: int) -> list[Any]:
        """Writes the batch's files to their places; returns the actions that add them to the table."""
        below = f"{self._layout.staging}/{batch}"
        self._files.delete(self._layout.staging)
        write(df, self._files, below, self._format, self._shape.directories)
        added = []
        for number, entry in enumerate(self._files.list(below)):
            path = self._layout.published(Part(leaf_of(entry.path, below), batch, number, "", 0, 0.0))
            self._files.delete(path)
            self._files.move(entry.path, path)
            added.append(self._add_action(path, entry.size, entry.modified))
        self._files.delete(self._layout.staging)
        return added

    def _add_action(self, path: str, size: int, modified: float) -> Any:
        from deltalake.transaction import AddAction

        values = dict(part.split("=", 1) for part in path.split("/")[:-1])
        stats = statistics(str(self._files.root / path))
        return AddAction(
            quote(path, safe="/="),
            size,
            {k: unquote(v) for k, v in values.items()},
            int(modified * 1000),
            True,
            json.dumps(stats),
        )

    def _merge(self, *, all_of_them: bool = False) -> None:
        """Merges the small files of each directory where a merge is due, each directory in one commit."""
        from deltalake import DeltaTable

        where = str(self._files.root)
        if not DeltaTable.is_deltatable(where):
            return
        groups = due(self._small(DeltaTable(where)), self._limits, now=self._now(), all_of_them=all_of_them)
        for leaf in sorted({group[0].leaf for group in groups if len(group) > 1}):
            filters = [(name, "=", unquote(value)) for name, value in (part.split("=", 1) for part in _parts(leaf))]
            DeltaTable(where).optimize.compact(partition_filters=filters or None, target_size=self._limits.target_bytes)

    def _small(self, table: Any) -> list[Part]:
        import pyarrow as pa

        columns = pa.table(table.get_add_actions()).select(["path", "size_bytes", "modification_time"])
        return [
            Part(unquote(path).rpartition("/")[0], 0, number, "", size, modified / 1000)
            for number, (path, size, modified) in enumerate(zip(*columns.to_pydict().values(), strict=True))
            if size < self._limits.target_bytes
        ]


def statistics(path: str) -> dict[str, Any]:
    """Returns a file's statistics for Delta's log, by which readers skip files: the number of rows, and the minimum and
    maximum of each integer column."""
    import pyarrow.parquet

    about = pyarrow.parquet.read_metadata(path)
    spans: dict[str, list[int]] = {}
    for group in (about.row_group(number) for number in range(about.num_row_groups)):
        for column in (group.column(number) for number in range(group.num_columns)):
            found = column.statistics
            if _is_integer(column) and found is not None and found.has_min_max:
                spans.setdefault(column.path_in_schema, []).extend((found.min, found.max))
    return {
        "numRecords": about.num_rows,
        "minValues": {name: min(values) for name, values in spans.items()},
        "maxValues": {name: max(values) for name, values in spans.items()},
        "nullCount": {},
    }


def _is_integer(column: Any) -> bool:
    return (
        column.physical_type in ("INT32", "INT64")
        and "." not in column.path_in_schema
        and isinstance(getattr(column.statistics, "min", None), int)
    )


def _parts(leaf: str) -> Sequence[str]:
    return [part for part in leaf.split("/") if part]
