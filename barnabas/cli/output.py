"""The output of commands: tables for people, JSON for programs.

Knows nothing of the contents.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

Row = Mapping[str, Any]

WIDE_ENOUGH = 1000
"""The width in characters of a table that is not printed to a terminal, so that programs find each row on one line."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def show_json(value: Any) -> None:
    """Prints a value as JSON, indented by two spaces."""
    click.echo(json.dumps(value, indent=2, default=str))


def show_table(
    rows: Sequence[Row], columns: Sequence[str], *, title: str | None = None, empty: str = "Nothing"
) -> None:
    """Prints a table with a column for each of these keys; without rows, the text ``empty``."""
    if not rows:
        click.echo(f"{title}: none" if title else empty)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        numbers = all(type(row.get(column)) in (int, type(None)) for row in rows)
        table.add_column(column.replace("_", " ").upper(), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDE_ENOUGH).print(table)


def show_padded(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows as Kafka's ``ToolsUtils.prettyPrintTable``: cells as wide as their column, and a tab after each."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        click.echo("".join(f"{cell:<{width}}\t" for cell, width in zip(row, widths, strict=True)))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
