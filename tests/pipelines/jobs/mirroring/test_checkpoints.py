"""MirrorMaker's records of translated offsets, byte by byte."""

from barnabas.pipelines.jobs.mirroring.checkpoints import Checkpoint
from tests.pipelines.jobs.mirroring.conftest import read_checkpoint


def test_layout() -> None:
    checkpoint = Checkpoint("shop", "prague.orders", 7, 1000, 990, "ü")
    key, value = checkpoint.encode()
    assert key == b"\x00\x04shop" + b"\x00\x0dprague.orders" + b"\x00\x00\x00\x07"
    assert value == bytes(2) + (1000).to_bytes(8) + (990).to_bytes(8) + b"\x00\x02" + "ü".encode()
    assert read_checkpoint(key, value) == checkpoint
