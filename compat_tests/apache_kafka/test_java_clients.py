"""The Java clients, this release's and the last of the line before, do on Barnabas what they do on Apache Kafka.

The program is ``java/Clients.java``; this module has only its expected results.
"""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .apache import CURRENT, PREVIOUS, KafkaUnavailable, jars, run_java

PROGRAM = Path(__file__).parent / "java" / "Clients.java"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
numbers = itertools.count(1)


def run(version: str, bootstrap: str, prefix: str) -> list[dict[str, Any]]:
    """Returns the lines of a run, as Python values."""
    done = run_java(version, str(PROGRAM), bootstrap, prefix, timeout=110)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("version", [CURRENT, PREVIOUS])
def test_java_clients(apache_kafka: Any, beside: Any, version: str) -> None:
    try:
        jars(version)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    prefix = f"java-{next(numbers)}-"
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(lambda broker: run(version, broker.bootstrap, prefix), (apache_kafka, beside))
    assert ours == theirs

    said = {line.pop("what"): line for line in ours}
    for codec in CODECS:
        assert said[f"sent {codec}"] == {"first": 0, "last": 52, "timestamp": 1_700_000_000_007}
        assert said[f"read {codec}"]["records"][0] == {
            "offset": 0,
            "timestamp": 1_700_000_000_000,
            "key": "key 0",
            "value": "value 0",
            "headers": {"number": "0", "nothing": None},
        }
        assert said[f"read {codec}"]["large"] == 100_000
    assert said["acknowledged"]["values"] == ["acks 0", "acks 1", "acks all"]
    for name in ("range", "cooperative"):
        assert said[f"shared {name}"] == {"evenly": True}
        assert said[f"left {name}"] == {"partitions": 4}
        assert said[f"committed {name}"]["nothing more"] is True
    assert said["deleted records"] == {"low watermark": 10, "earliest": 10}
    assert said["too large"] == {"error": "RecordTooLargeException"}
