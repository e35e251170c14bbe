"""CRC-32C with known results, and the cost of its import."""

import subprocess
import sys

import pytest

from barnabas.records.checksum import crc32c


@pytest.mark.parametrize(
    ("data", "checksum"),  # RFC 3720, B.4, and the check value of the CRC catalogues
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_known_answers(data: bytes, checksum: int) -> None:
    assert crc32c(data) == crc32c(bytearray(data)) == crc32c(memoryview(data)) == checksum


def test_the_package_around_it_is_not_loaded() -> None:
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys, barnabas.records.batch; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert "barnabas.records.checksum" in loaded
    assert not {"importlib.metadata", "email", "zstandard", "lz4", "snappy"} & set(loaded)
