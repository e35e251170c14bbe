"""The tutorial about the pipeline, typed as it is, in an empty directory with its own broker."""

import io
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from compat_tests.running import Running
from compat_tests.test_documents import ROOT, Reader, blocks, commands

pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.long]


def test_the_tutorial_of_the_pipeline(
    own_broker: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    reader = Reader(tmp_path, own_broker(), timeout=240)
    for kind, body in blocks("docs/tutorial/pipeline.md"):
        if kind == "python":
            reader.paste(body)
        else:
            for command, printed in commands(body):
                reader.type(command, printed)
    check_takings(tmp_path)
    width, height = struct.unpack(">II", (tmp_path / "takings.png").read_bytes()[16:24])
    assert (width, height) == (1080, 480)


def check_takings(home: Path) -> None:
    """The export is equal to the same computation in pandas; only the last hours may be missing."""
    orders = pandas.concat(pandas.read_json(each, lines=True) for each in sorted((home / "cafe/orders").iterdir()))
    lines = (home / "cafe/payments.txt").read_text("utf-8").splitlines()
    payments = pandas.read_json(io.StringIO("\n".join(line.partition("\t")[2] for line in lines)), lines=True)
    payments["paid_at"] = pandas.to_datetime(payments["paid_at"], utc=True)
    orders["at"] = pandas.to_datetime(orders["at"], utc=True)
    both = orders.merge(payments, left_on="id", right_on="order_id")
    both = both[both["paid_at"] <= both["at"] + pandas.Timedelta(hours=1)]
    both["hour"] = both["at"].dt.floor("h")
    sums = both.groupby(["product", "hour"])["amount"].agg(["count", "sum"]).round(2)
    wanted = {key: tuple(values) for key, *values in sums.itertuples()}

    exported = pandas.read_parquet(home / "lake/takings")
    found = {(row.product, row.hour): (row.paid_orders, row.takings) for row in exported.itertuples()}
    assert len(found) == len(exported) > 50
    last = max(hour for _, hour in found)
    assert found == {key: value for key, value in wanted.items() if key[1] <= last}
    assert max(hour for _, hour in wanted) - last <= pandas.Timedelta(hours=3)
