"""Rows of a dump, from bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.dumping import logs
from barnabas.cli.dumping.files import kind_of, rows
from barnabas.cli.dumping.rows import Row, Source


@pytest.fixture
def dumped(tmp_path: Path) -> Callable[..., list[Row]]:
    """Returns the rows of a file with that name and those bytes."""

    def dump(name: str, data: bytes, **options: object) -> list[Row]:
        path = tmp_path / name
        path.write_bytes(data)
        given = logs.Options(**{"deep": True, "print_data": True, **options})
        with Source(path) as source:
            return list(rows(source, kind_of(path), given))

    return dump
