"""The benchmarks, which nothing else imports: what they use is still there."""

import importlib
from pathlib import Path

import pytest

NAMES = sorted(path.stem for path in (Path(__file__).parents[1] / "benchmarks").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")
