"""Apache Kafka's DumpLogSegments over every kind of file in a data directory of Barnabas.

``test_dump_log.py`` tests logs without a broker. Expected are the contents that clients wrote.
"""

import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.files import DiskFiles
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key

from .hand_over import CODECS, TOPIC, Counting, alter, barnabas_on, fill, running
from .test_console_tools import Tools

pytestmark = pytest.mark.xdist_group("hand_over")
PRODUCER = {"producer_id": 7, "producer_epoch": 1}
COORDINATOR_EPOCH = 3


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory with something of every kind, and with several snapshots of the metadata."""
    home = tmp_path_factory.mktemp("dumped")
    broker = barnabas_on(home, {"metadata.log.max.record.bytes.between.snapshots": "3000"})
    with running(broker) as bootstrap:
        fill(bootstrap)
        Counting(bootstrap).send(bootstrap, 4)
    with running(broker) as bootstrap:
        for segment_ms in range(3_600_000, 3_600_050):
            alter(bootstrap, TOPIC, "orders", "segment.ms", str(segment_ms))
    return home / "data"


@pytest.fixture(scope="module")
def dump(kafka_jars: Path) -> Iterator[Callable[..., str]]:
    tools = Tools("")

    def run(files: list[Path], *options: str) -> str:
        """Returns the tool's output for these files, without errors."""
        assert files
        names = ",".join(map(str, sorted(files)))
        status, output, complaints = tools.run("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
        assert status == 0, complaints
        assert not re.search(
            r"xception|[Mm]ismatch|out of order|not properly closed|isvalid: false", output + complaints
        )
        return output

    yield run
    assert tools.process.stdin is not None
    tools.process.stdin.close()
    assert tools.process.wait(10) == 0


def payloads(output: str) -> list[dict[str, Any]]:
    return [json.loads(line.partition("payload: ")[2]) for line in output.splitlines() if "payload: {" in line]


def test_records(directory: Path, dump: Callable[..., str]) -> None:
    files = [path for codec in CODECS for path in directory.glob(f"codec_{codec}-*/*.log")]
    out = dump(files, "--deep-iteration", "--print-data-log")
    assert {line.split("compresscodec: ")[1].split()[0] for line in out.splitlines() if "compresscodec" in line} == {
        *CODECS
    }
    lines = [line for line in out.splitlines() if line.startswith("| offset:")]
    assert len(lines) == 40 * len(CODECS)
    header = "| offset: 1 CreateTime: 1700000003000 keySize: 5 valueSize: 21 sequence: 1 headerKeys: [number,nothing]"
    assert f"{header} key: key 3 payload: value 3 of codec_gzip" in lines
    out = dump(list(directory.glob("orders-*/*.log")), "--deep-iteration")
    assert sum(line.startswith("| offset:") for line in out.splitlines()) == 60
    assert len(list(directory.glob("orders-0/*.log"))) == 2


def test_indexes(directory: Path, dump: Callable[..., str]) -> None:
    files = list(directory.glob("*/*.index")) + list(directory.glob("*/*.timeindex"))
    out = dump(files, "--index-sanity-check")
    assert out.count("passed sanity check") + out.count(".index is empty") == len(files)
    assert len(re.findall(r"orders-\d/\d+\.index passed", out)) == 6
    dump(files, "--verify-index-only")
    assert "offset: 19 position: " in dump(list(directory.glob("orders-0/*.index")))
    assert "timestamp: 1700000057000 offset: 19" in dump(list(directory.glob("orders-0/*.timeindex")))


def test_producers(directory: Path, dump: Callable[..., str]) -> None:
    out = dump([max(directory.glob("counted-0/*.snapshot"))])
    assert re.search(r"producerEpoch: 0 .* firstSequence: 0 lastSequence: 3 lastOffset: 3 offsetDelta: 3 ", out), out
    everybody = dump(list(directory.glob("*/*.snapshot")))
    assert everybody.count("producerId: ") > len(CODECS)


def test_groups(directory: Path, dump: Callable[..., str]) -> None:
    out = dump(list(directory.glob("__consumer_offsets-*/*.log")), "--offsets-decoder")
    keys = [line.partition(" key: ")[2].partition(" payload: ") for line in out.splitlines() if " key: {" in line]
    found = {tuple(json.loads(key)["data"].values()): json.loads(value)["data"] for key, _, value in keys}
    assert {key: value["offset"] for key, value in found.items()} == {
        ("settled", "orders", 0): 3,
        ("settled", "orders", 1): 4,
        ("settled", "orders", 2): 5,
        ("billing", "codec_gzip", 0): 2,
    }
    assert all(value["metadata"].startswith(f"note {value['offset']}") for value in found.values())


def test_metadata(directory: Path, dump: Callable[..., str]) -> None:
    log = directory / "__cluster_metadata-0"
    written = [each["type"] for each in payloads(dump(list(log.glob("*.log")), "--cluster-metadata-decoder"))]
    assert {"REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"} <= {*written}
    assert {"PARTITION_CHANGE_RECORD", "REMOVE_TOPIC_RECORD", "PRODUCER_IDS_RECORD"} <= {*written}
    assert written[-1] == "BROKER_REGISTRATION_CHANGE_RECORD"
    snapshots = sorted(log.glob("*.checkpoint"))
    assert len(snapshots) > 1
    out = dump(snapshots[-1:], "--cluster-metadata-decoder")
    last = payloads(out)
    assert {each["data"]["name"] for each in last if each["type"] == "TOPIC_RECORD"} >= {"orders", "compacted"}
    assert "SnapshotHeader" in out and "SnapshotFooter" in out
    assert payloads(dump([directory / "bootstrap.checkpoint"], "--cluster-metadata-decoder"))


def test_transactions(tmp_path: Path, dump: Callable[..., str]) -> None:
    """Runs an aborted, a committed and an open transaction."""
    clock = ManualClock()
    manager = LogManager(DiskFiles(), [str(tmp_path)], clock=clock, scheduler=clock)
    manager.start(1)
    manager.open_all(lambda topic: TopicConfig())
    log = manager.create("till", 0, bytes(range(16)), TopicConfig())

    def append(batch: bytearray) -> None:
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=clock.time_ms())

    sequence = 0
    for ending in (ControlRecordType.ABORT, ControlRecordType.COMMIT, None):
        for _ in range(2):
            records = [(b"key", b"value", clock.time_ms())]
            append(build_batch(records, base_sequence=sequence, is_transactional=True, **PRODUCER))
            sequence += 1
        if ending is not None:
            marker = struct.pack(">hi", 0, COORDINATOR_EPOCH)
            end = [(control_key(ending), marker, clock.time_ms())]
            append(build_batch(end, is_control=True, is_transactional=True, **PRODUCER))
    manager.close()
    directory = tmp_path / "till-0"
    out = dump(list(directory.glob("*.txnindex")))
    assert "version: 0 producerId: 7 firstOffset: 0 lastOffset: 2 lastStableOffset: 3" in out
    out = dump(list(directory.glob("*.log")), "--deep-iteration", "--print-data-log")
    assert f"endTxnMarker: ABORT coordinatorEpoch: {COORDINATOR_EPOCH}" in out
    assert f"endTxnMarker: COMMIT coordinatorEpoch: {COORDINATOR_EPOCH}" in out
    out = dump(list(directory.glob("*.snapshot")))
    assert "producerId: 7" in out
    assert "currentTxnFirstOffset: OptionalLong[6]" in out
    assert f"coordinatorEpoch: {COORDINATOR_EPOCH}" in out
