"""The tutorial about the pipeline, typed as it stands, in a clean directory with a broker of its own."""

import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.running import Running
from compat_tests.test_documents import ROOT, Reader, blocks, commands

pytestmark = pytest.mark.xdist_group("spark")


def test_the_tutorial_of_the_pipeline(
    own_broker: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("SPARK_MASTER", "local[2]")
    reader = Reader(tmp_path, own_broker(), timeout=150)
    for kind, body in blocks("docs/tutorial/pipeline.md"):
        if kind == "python":
            reader.paste(body)
        else:
            for command, printed in commands(body):
                reader.type(command, printed)
    width, height = struct.unpack(">II", (tmp_path / "takings.png").read_bytes()[16:24])
    assert (width, height) == (1080, 480)
