"""An independent reading of the batch header, batches that real programs wrote, and lies to tell about batches."""

import pathlib
from collections.abc import Callable

import pytest
from construct import (
    BitsInteger,
    BitStruct,
    Const,
    Flag,
    GreedyBytes,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Padding,
    Struct,
)

GOLDEN = pathlib.Path(__file__).parent / "golden"

LAYOUT = Struct(
    "base_offset" / Int64sb,
    "batch_length" / Int32sb,
    "partition_leader_epoch" / Int32sb,
    "magic" / Const(b"\x02"),
    "crc" / Int32ub,
    "attributes"
    / BitStruct(
        Padding(9),
        "has_delete_horizon" / Flag,
        "is_control" / Flag,
        "is_transactional" / Flag,
        "is_log_append_time" / Flag,
        "codec" / BitsInteger(3),
    ),
    "last_offset_delta" / Int32sb,
    "base_timestamp" / Int64sb,
    "max_timestamp" / Int64sb,
    "producer_id" / Int64sb,
    "producer_epoch" / Int16sb,
    "base_sequence" / Int32sb,
    "count" / Int32sb,
    "body" / GreedyBytes,
)


@pytest.fixture(scope="session")
def layout() -> Struct:
    """The layout of a batch, for construct."""
    return LAYOUT


@pytest.fixture(scope="session")
def golden() -> Callable[[str], bytes]:
    """The bytes of a golden file, by its name."""

    def read(name: str) -> bytes:
        lines = (GOLDEN / f"{name}.hex").read_text().splitlines()
        return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))

    return read


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "golden_name" in metafunc.fixturenames:
        metafunc.parametrize("golden_name", sorted(path.stem for path in GOLDEN.glob("*.hex")))
