"""``barnabas dump-log`` beside Apache Kafka's DumpLogSegments, over directories that either filled: the output is
equal.

And ``barnabas check-log`` over both, which finds nothing wrong there.
"""

import base64
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from barnabas.cli import commands, main
from barnabas.cli.dumping.files import kind_of, rows
from barnabas.cli.dumping.logs import Options
from barnabas.cli.dumping.rows import Source
from barnabas.cli.layouts.coordinators import TRANSACTION_STATES

from .hand_over import CODECS, TOPIC, admin_of, alter, apache_on, barnabas_on, commit, play, running, wait
from .hand_over import write as produce
from .play import error_codes
from .share_state_steps import delete, found, initialize, read, write
from .steps import create
from .test_console_tools import Tools

Fields = dict[str, Any]
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
UNCLOSED = "unclosed"


@pytest.fixture(scope="module", params=["apache", "barnabas"])
def data(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with something of every kind, closed, and a copy from before it was closed."""
    home = tmp_path_factory.mktemp(request.param)
    with running(apache_on(home, SETTINGS) if request.param == "apache" else barnabas_on(home, SETTINGS)) as bootstrap:
        fill(bootstrap)
        transact(bootstrap)
        share(bootstrap)
        # As after a kill: nothing is written any more, except periodic checkpoints.
        shutil.copytree(home / "data", home / UNCLOSED, ignore=shutil.ignore_patterns("*.tmp"))
    return home / "data"


def fill(bootstrap: str) -> None:
    """Produces batches of every codec, with both kinds of timestamps, in several segments; deletes records; makes a
    group.
    """
    admin = admin_of(bootstrap)
    topics = [
        NewTopic("orders", 2, 1, config={"segment.bytes": "1048576"}),
        NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("trimmed", 2, 1),
        *(NewTopic(f"codec_{codec}", 2, 1) for codec in CODECS),
    ]
    wait(admin.create_topics(topics))
    for codec in CODECS:
        produce(bootstrap, f"codec_{codec}", 40, compression_type=codec)
    produce(bootstrap, "orders", 40, size=100_000, batch_num_messages=1)
    produce(bootstrap, "stamped", 5)
    produce(bootstrap, "trimmed", 50)
    wait(admin.delete_records([TopicPartition("trimmed", 0, 11)]))
    alter(bootstrap, TOPIC, "orders", "max.message.bytes", "2000000")
    for group in ("settled", "billing", "other"):
        commit(bootstrap, group, {("orders", index): 3 + index for index in range(2)})


def transact(bootstrap: str) -> None:
    """Runs transactions of two producers, every other one aborted."""
    for name in ("one", "two"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name, "log_level": 2})
        producer.init_transactions(60)
        for turn in range(4):
            producer.begin_transaction()
            for number in range(5):
                producer.produce("trimmed", b"%d" % number, partition=number % 2)
            producer.flush(60)
            (producer.commit_transaction if turn % 2 else producer.abort_transaction)(60)


def share(bootstrap: str) -> None:
    """Makes share group state: snapshots, updates and a tombstone."""
    steps = [
        found(),
        initialize(("~shared", 0), start=5, v=0),
        read(("~shared", 0), leader=1, v=0),
        write(("~shared", 0), start=6, done=1, batches=[(6, 8, 0, 1), (9, 9, 2, 2)], v=1),
        initialize(("~shared", 0), state=2, start=-1, v=0),
        delete(("~shared", 0), v=0),
    ]
    answers = play(bootstrap, *create("~shared"), *steps)
    assert set().union(*map(error_codes, answers)) == {0}


@pytest.fixture(scope="module")
def theirs(kafka_jars: Path) -> Iterator[Callable[..., str]]:
    """Returns the output of DumpLogSegments for files."""
    tools = Tools("")

    def run(files: list[Path], *options: str) -> str:
        names = ",".join(map(str, files))
        status, output, complaints = tools.run("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)
        assert status == 0, complaints
        return output

    yield run
    assert tools.process.stdin is not None
    tools.process.stdin.close()
    assert tools.process.wait(10) == 0


def ours(files: list[Path], *kinds: str, decoder: str | None = None) -> list[Fields]:
    """Returns our rows of these kinds."""
    found = []
    for path in files:
        kind = kind_of(path)
        assert kind is not None
        with Source(path) as source:
            for row in rows(source, kind, Options(deep=True, print_data=True, decoder=decoder)):
                assert not row.is_damage, (path, row)
                if row.kind in kinds:
                    found.append({"kind": row.kind, **row.fields})
    return found


def rows_of(output: str, start: str) -> list[dict[str, str]]:
    """Returns names and values of the lines with this start; of a record's line, up to the client's data."""
    lines = [line for line in output.split("\n") if line.startswith(start)]
    return [dict(re.findall(r"(\w+): (\S+)", re.split(r" (?:headerKeys|payload|key): ", line)[0])) for line in lines]


def logs_of(data: Path, *, internal: bool = False) -> list[Path]:
    return [path for path in sorted(data.glob("*-*/*.log")) if path.parent.name.startswith("__") is internal]


def test_batches_and_records(data: Path, theirs: Callable[..., str]) -> None:
    files = logs_of(data) + logs_of(data, internal=True)
    out = theirs(files, "--deep-iteration")
    batches = rows_of(out, "baseOffset:")
    expected = ours(files, "batch")
    assert len(expected) > 50
    for theirs_, mine in zip(batches, expected, strict=True):
        assert theirs_ == {
            "baseOffset": str(mine["base_offset"]),
            "lastOffset": str(mine["last_offset"]),
            "count": str(mine["count"]),
            "baseSequence": str(mine["base_sequence"]),
            "lastSequence": str(mine["last_sequence"]),
            "producerId": str(mine["producer_id"]),
            "producerEpoch": str(mine["producer_epoch"]),
            "partitionLeaderEpoch": str(mine["partition_leader_epoch"]),
            "isTransactional": str(mine["is_transactional"]).lower(),
            "isControl": str(mine["is_control"]).lower(),
            "deleteHorizonMs": optional(mine["delete_horizon_ms"]),
            "position": str(mine["position"]),
            mine["timestamp_type"]: str(mine["max_timestamp"]),
            "size": str(mine["size"]),
            "magic": str(mine["magic"]),
            "compresscodec": mine["codec"],
            "crc": str(mine["crc"]),
            "isvalid": "true",
        }
    records = rows_of(out, "| offset:")
    of_ours = ours(files, "record")
    assert len(of_ours) > 300
    for theirs_, mine in zip(records, of_ours, strict=True):
        assert theirs_["offset"] == str(mine["offset"])
        assert str(mine["timestamp"]) in (theirs_.get("CreateTime"), theirs_.get("LogAppendTime"))
        assert (theirs_["keySize"], theirs_["valueSize"]) == (str(mine["key_size"]), str(mine["value_size"]))
        assert theirs_["sequence"] == str(mine["sequence"])


def optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def test_keys_values_headers_and_markers(data: Path, theirs: Callable[..., str]) -> None:
    files = [path for path in logs_of(data) if path.parent.name.startswith(("codec_", "trimmed", "stamped"))]
    lines = [line for line in theirs(files, "--print-data-log").split("\n") if line.startswith("| offset:")]
    records = ours(files, "record")
    for line, mine in zip(lines, records, strict=True):
        if "control_type" in mine:
            assert line.endswith(f"endTxnMarker: {mine['control_type']} coordinatorEpoch: {mine['coordinator_epoch']}")
            continue
        words = f"headerKeys: [{','.join(name.decode() for name, _ in mine['headers'])}]"
        words += "" if mine["key"] is None else f" key: {mine['key'].decode()}"
        words += "" if mine["value"] is None else f" payload: {mine['value'].decode()}"
        assert line.endswith(words)
    markers = [each["control_type"] for each in records if "control_type" in each]
    assert set(markers) == {"COMMIT", "ABORT"}


def test_indexes_and_producers(data: Path, theirs: Callable[..., str]) -> None:
    def files(suffix: str) -> list[Path]:
        found = [path for path in sorted(data.glob(f"*-*/*{suffix}")) if path.stat().st_size]
        return [path for path in found if not path.parent.name.endswith("-delete")]

    found = rows_of(theirs(files(".index")), "offset:")
    assert [(each["offset"], each["position"]) for each in found] == [
        (str(each["offset"]), str(each["log_position"])) for each in ours(files(".index"), "index-entry")
    ]
    assert found
    found = rows_of(theirs(files(".timeindex")), "timestamp:")
    assert [(each["timestamp"], each["offset"]) for each in found] == [
        (str(each["timestamp"]), str(each["offset"])) for each in ours(files(".timeindex"), "timeindex-entry")
    ]
    if files(".txnindex"):
        found = rows_of(theirs(files(".txnindex")), "version:")
        assert found == [
            {camel(name): str(value) for name, value in each.items() if name not in ("kind", "position")}
            for each in ours(files(".txnindex"), "aborted-transaction")
        ]
        assert len(found) == 8
    found = rows_of(theirs(files(".snapshot")), "producerId:")
    for each, mine in zip(found, ours(files(".snapshot"), "producer"), strict=True):
        assert each["currentTxnFirstOffset"] == optional(
            None if mine["current_txn_first_offset"] < 0 else mine["current_txn_first_offset"]
        )
        for name in ("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_offset"):
            assert each.get(camel(name), "-1") == str(mine[name])
    assert found


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


DECODED = {
    "__consumer_offsets": ("offsets", "--offsets-decoder", "*.log"),
    "__transaction_state": ("transactions", "--transaction-log-decoder", "*.log"),
    "__share_group_state": ("shares", "--share-group-state-decoder", "*.log"),
    "__cluster_metadata": ("metadata", "--cluster-metadata-decoder", "*.log"),
}


@pytest.mark.parametrize("topic", DECODED)
def test_records_of_internal_topics(data: Path, theirs: Callable[..., str], topic: str) -> None:
    decoder, option, pattern = DECODED[topic]
    files = sorted(data.glob(f"{topic}-*/{pattern}"))
    lines = [line for line in theirs(files, option).split("\n") if line.startswith("| offset:")]
    records = ours(files, "record", decoder=decoder)
    assert len(records) >= 4
    for line, mine in zip(lines, records, strict=True):
        if "control_type" in mine:
            continue
        key, _, payload = line.partition("payload: ")
        if "key: {" in key:
            check_same(json.loads(key.partition("key: ")[2])["data"], mine["key"])
        if payload != "<DELETE>" and mine["value"] is not None:
            printed = json.loads(payload)
            check_same(printed["data"], mine["value"])
            assert int(printed["version"]) == mine["value"]["version"]
            if topic == "__cluster_metadata":
                assert printed["type"].replace("_", "").lower() == mine["value"]["type"].lower()


def check_same(theirs_: Any, mine: Any) -> None:
    """Checks that our JSON has all fields of Apache Kafka's, name by name."""
    if isinstance(theirs_, dict):
        by_name = {camel(name): value for name, value in mine.items()}
        for name, value in theirs_.items():
            assert name in by_name, (name, mine)
            check_same(value, by_name[name])
    elif isinstance(theirs_, list):
        for one, other in zip(theirs_, mine, strict=True):
            check_same(one, other)
    elif isinstance(mine, bytes):
        assert base64.b64decode(theirs_) == mine
    elif mine in TRANSACTION_STATES:
        assert TRANSACTION_STATES[theirs_] == mine
    else:
        assert theirs_ == mine


def test_there_are_no_findings(data: Path) -> None:
    assert errors(data) == []


def test_an_unclean_directory_has_no_errors(data: Path) -> None:
    assert errors(data.parent / UNCLOSED) == []


def errors(directory: Path) -> list[str]:
    result = CliRunner().invoke(commands.barnabas, ["check-log", str(directory)], standalone_mode=False)
    found = [line for line in result.output.splitlines() if line.startswith("error")]
    assert bool(result.return_value) is bool(found)
    assert re.search(r"(No findings\.|0 errors, \d+ warnings?)\n$", result.output) or found
    return found


@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ("*-*/*.log", ["--deep-iteration"]),
        ("[st]*-*/*.log", ["--print-data-log"]),
        ("trimmed-*/*.log", ["--print-data-log", "--skip-record-metadata"]),
        ("orders-0/*.log", ["--max-bytes", "250000"]),
        *((f"{topic}-*/{pattern}", [option]) for topic, (_, option, pattern) in DECODED.items()),
        ("__cluster_metadata-0/*.checkpoint", ["--cluster-metadata-decoder"]),
        ("bootstrap.checkpoint", ["--cluster-metadata-decoder"]),
        ("*-*/*index", []),
        ("*-*/*.snapshot", []),
    ],
)
def test_the_tool_prints_the_same(
    data: Path,
    theirs: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
    pattern: str,
    options: list[str],
) -> None:
    files = [path for path in sorted(data.glob(pattern)) if path.stat().st_size]
    assert files or pattern == "__cluster_metadata-0/*.checkpoint"
    expected = theirs(files, *options) if files else ""
    assert main(["kafka", "dump-log", "--files", ",".join(map(str, files)), *options]) == 0
    assert capsys.readouterr().out.splitlines() == (expected.splitlines() or ["Dumping "])
