"""An independent decoder of the batch header, batches of real programs, and malformed batches."""

import pathlib
from collections.abc import Callable

import pytest
from construct import GreedyBytes, Struct

from barnabas.cli.layouts.batches import BATCH

GOLDEN = pathlib.Path(__file__).parent / "golden"

LAYOUT = Struct(*BATCH.subcons, "body" / GreedyBytes)


@pytest.fixture(scope="session")
def layout() -> Struct:
    """The layout of a batch, for construct."""
    return LAYOUT


@pytest.fixture(scope="session")
def golden() -> Callable[[str], bytes]:
    """Returns the bytes of a golden file, by its name."""

    def read(name: str) -> bytes:
        lines = (GOLDEN / f"{name}.hex").read_text().splitlines()
        return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))

    return read


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "golden_name" in metafunc.fixturenames:
        metafunc.parametrize("golden_name", sorted(path.stem for path in GOLDEN.glob("*.hex")))
