"""``barnabas storage`` beside kafka-storage.sh: each broker runs on directories that the other tool formatted."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import commands
from barnabas.cluster.quorum.snapshots import decode_snapshot
from barnabas.testing import Broker

from .apache import CURRENT, ApacheKafka, KafkaUnavailable, jars, run_java

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
USERS = (
    "SCRAM-SHA-256=[name=alice,password=secret]",
    'SCRAM-SHA-512=[name=bob,iterations=8192,salt="MWYz",saltedpassword="dGhlIHBhc3N3b3JkIGlzIHNhbHRlZA=="]',
)
PROPERTIES = """
process.roles=broker,controller
node.id=7
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:9093
"""


@pytest.fixture(scope="module", autouse=True)
def kafka() -> None:
    try:
        jars()
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))


def by_ours(*arguments: str) -> tuple[int, str]:
    ran: Result = CliRunner().invoke(commands.barnabas, ["storage", *arguments])
    return ran.exit_code, ran.output


def by_theirs(*arguments: str) -> tuple[int, str]:
    ran = run_java(CURRENT, "kafka.tools.StorageTool", *arguments)
    return ran.returncode, ran.stdout + ran.stderr


def node(home: Path, *, standalone: bool) -> ApacheKafka:
    """An Apache Kafka whose directory is not formatted yet, and its properties file."""
    kafka = ApacheKafka(home, standalone=standalone)
    home.mkdir(exist_ok=True)
    (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in kafka.properties.items()))
    return kafka


def json_of(bootstrap: str, *arguments: str) -> Any:
    ran = CliRunner().invoke(
        commands.barnabas, [arguments[0], "--bootstrap-server", bootstrap, *arguments[1:], "--json"]
    )
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.mark.parametrize("standalone", [False, True])
def test_apache_kafka_serves_directories_that_barnabas_formatted(tmp_path: Path, standalone: bool) -> None:
    kafka = node(tmp_path / "node", standalone=standalone)
    config = str(tmp_path / "node" / "server.properties")
    words = ["-c", config, "-t", CLUSTER, "--feature", "transaction.version=1", *["--standalone"][:standalone]]
    code, output = by_ours("format", *words, *(word for user in USERS for word in ("--add-scram", user)))
    kind = "dynamic metadata voter" if standalone else "metadata"
    assert (code, output) == (0, f"Formatting {kind} directory {tmp_path}/node/data with metadata.version 4.3-IV0.\n")
    assert by_theirs("info", "-c", config)[0] == 0
    with kafka:
        assert [
            (row["entity"], row["configs"])
            for row in json_of(kafka.bootstrap, "configs", "--describe", "--entity-type", "users")
        ] == [
            ({"user": "alice"}, {"SCRAM-SHA-256": "iterations=4096"}),
            ({"user": "bob"}, {"SCRAM-SHA-512": "iterations=8192"}),
        ]
        features = {row["feature"]: row["finalized"] for row in json_of(kafka.bootstrap, "features", "describe")}
        assert features["transaction.version"] == 1
        assert features.get("kraft.version", 0) == int(standalone)


@pytest.mark.parametrize("standalone", [False, True])
def test_barnabas_serves_directories_that_apache_kafka_formatted(tmp_path: Path, standalone: bool) -> None:
    node(tmp_path / "node", standalone=standalone)
    config = str(tmp_path / "node" / "server.properties")
    words = ["-c", config, "-t", CLUSTER, *["--standalone"][:standalone], "--add-scram", USERS[0]]
    assert by_theirs("format", *words)[0] == 0
    assert by_ours("info", "-c", config)[0] == 0
    serves(tmp_path / "node" / "data", standalone)


@pytest.mark.parametrize("standalone", [False, True])
def test_barnabas_serves_directories_that_barnabas_formatted(tmp_path: Path, standalone: bool) -> None:
    node(tmp_path / "node", standalone=standalone)
    config = str(tmp_path / "node" / "server.properties")
    words = ["-c", config, "-t", CLUSTER, *["--standalone"][:standalone], "--add-scram", USERS[0]]
    assert by_ours("format", *words)[0] == 0
    serves(tmp_path / "node" / "data", standalone)


def serves(data: Path, standalone: bool) -> None:
    with Broker({"log.dirs": str(data), "node.id": 1}, on_disk=True) as broker:
        assert broker._server.broker.cluster_id == CLUSTER
        assert broker._server.broker.quorum.kraft.version == int(standalone)
        (key,) = broker._call(lambda: list(broker._server.broker.image.credentials))
        assert key == ("alice", 1)
        broker.create_topic("t")


def test_the_files_are_the_same(tmp_path: Path) -> None:
    """Returns the records without random values; of the directory's own record only the directory differs."""
    found = []
    for name, tool in (("ours", by_ours), ("theirs", by_theirs)):
        (tmp_path / name).mkdir()
        config = tmp_path / name / "server.properties"
        config.write_text(PROPERTIES + f"log.dirs={tmp_path}/{name}/a,{tmp_path}/{name}/b\n")
        words = ["-c", str(config), "-t", CLUSTER, "-s", "-S", USERS[1], "-r", "4.1"]
        code, output = tool("format", *words)
        assert code == 0, output
        files = sorted(
            str(each.relative_to(tmp_path / name)) for each in (tmp_path / name).rglob("*") if each.is_file()
        )
        bootstraps = [decode_snapshot((tmp_path / name / each / "bootstrap.checkpoint").read_bytes()) for each in "ab"]
        voters = decode_snapshot((tmp_path / name / files[0]).read_bytes())
        assert voters.kraft.voters is not None
        voters.kraft.voters.voters[0].voter_directory_id = bytes(16)
        found.append((files, [each.records for each in bootstraps], voters.kraft, voters.records))
    ours, theirs = found
    assert ours == theirs


ROLES = {
    "broker": "process.roles=broker\nlisteners=PLAINTEXT://127.0.0.1:9092\n",
    "controller": "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:9093\n",
}
STATIC, DYNAMIC = "controller.quorum.voters={}@127.0.0.1:9093\n", "controller.quorum.bootstrap.servers=127.0.0.1:9093\n"
OTHER = "8@example.org:8083:MvDxzVmcRsaTz33bUuRU6A"
VOTERS = f"{OTHER},7@example.com:8082:JEXY6aqzQY-32P5TStzaFg"


@pytest.mark.parametrize(
    ("role", "quorum", "words"),
    [
        ("broker", STATIC.format(1), []),
        ("broker", DYNAMIC, []),
        ("broker", DYNAMIC, ["-N"]),
        ("broker", DYNAMIC, ["-s"]),
        ("broker", DYNAMIC, ["-I", OTHER]),
        ("broker", DYNAMIC, ["-f", "kraft.version=0"]),
        ("controller", STATIC.format(7), []),
        ("controller", STATIC.format(7), ["-I", VOTERS]),
        ("controller", STATIC.format(7), ["-f", "kraft.version=1"]),
        ("controller", DYNAMIC, []),
        ("controller", DYNAMIC, ["-s"]),
        ("controller", DYNAMIC, ["-N"]),
        ("controller", DYNAMIC, ["-I", VOTERS]),
        ("controller", DYNAMIC, ["-I", OTHER]),
        ("controller", DYNAMIC, ["-I", f"{OTHER},{OTHER}"]),
        ("controller", DYNAMIC, ["-I", "7@a:1:b"]),
    ],
)
def test_each_role_is_formatted_alike(tmp_path: Path, role: str, quorum: str, words: list[str]) -> None:
    """Compares files, kinds of directories, voters, and errors."""
    found = []
    for tool in (by_ours, by_theirs):
        home = tmp_path / tool.__name__
        home.mkdir()
        (home / "config").write_text(
            f"node.id=7\ncontroller.listener.names=CONTROLLER\n{ROLES[role]}{quorum}log.dirs={home}/a,{home}/b\n"
        )
        code, output = tool("format", "-c", str(home / "config"), "-t", CLUSTER, *words)
        files = sorted(str(each.relative_to(home)) for each in home.rglob("*") if each.is_file())
        voters = [decode_snapshot((home / each).read_bytes()).kraft for each in files if "cluster_metadata" in each]
        for each in voters:
            assert each.voters is not None
            each.voters.voters.sort(key=lambda voter: voter.voter_id)  # theirs have the order of a hash table
            if "-s" in words:
                each.voters.voters[0].voter_directory_id = bytes(16)  # a random one
        kinds = sorted(re.findall(r"^Formatting .* directory ", output.replace(str(home), ""), re.MULTILINE))
        why = re.search(r"^(?:Exception.*Exception: |Error: )?([A-Z].*?\.)$", output, re.MULTILINE) if code else None
        own = home / "a" / "meta.properties"
        is_own = own.exists() and "directory.id=JEXY6aqzQY-32P5TStzaFg" in own.read_text()
        found.append((code, files, voters, kinds, why and why[1], is_own))
    ours, theirs = found
    assert ours == theirs


def test_the_same_is_refused(tmp_path: Path) -> None:
    node(tmp_path / "node", standalone=True)
    config = str(tmp_path / "node" / "server.properties")
    node(tmp_path / "static", standalone=False)
    static = str(tmp_path / "static" / "server.properties")
    cases = [
        ["format", "-c", config, "-t", CLUSTER],
        ["format", "-c", static, "-t", CLUSTER, "-s"],
        ["format", "-c", config, "-t", CLUSTER, "-s", "-f", "no.such=1"],
        ["format", "-c", config, "-t", CLUSTER, "-s", "-S", "SCRAM-SHA-1=[name=a,password=secret]"],
        ["format", "-c", config, "-t", CLUSTER, "-s", "-S", "SCRAM-SHA-256=[name=a,iterations=1,password=secret]"],
        ["format", "-c", config, "-t", CLUSTER, "-s", "-S", "SCRAM-SHA-256=[name=a]"],
        ["info", "-c", config],
    ]
    for words in cases:
        (code, output), (their_code, _) = by_ours(*words), by_theirs(*words)
        assert code and their_code, (words, output)
        assert "secret" not in output
    assert not (tmp_path / "node" / "data").exists()
    assert by_ours("format", "-c", config, "-t", CLUSTER, "-s") == (
        0, f"Formatting dynamic metadata voter directory {tmp_path}/node/data with metadata.version 4.3-IV0.\n",
    )  # fmt: skip
    again = ["format", "-c", config, "-t", CLUSTER, "-s"]
    refusal = f"Log directory {tmp_path}/node/data is already formatted. Use --ignore-formatted to ignore"
    assert refusal in by_ours(*again)[1] and refusal in by_theirs(*again)[1]
    assert by_ours(*again, "-g") == (0, "All of the log directories are already formatted.\n")
    other = ["format", "-c", config, "-t", "other", "-s", "-g"]
    refusal = f"Invalid cluster.id in: {tmp_path}/node/data/meta.properties. Expected other, but read {CLUSTER}"
    assert refusal in by_ours(*other)[1] and refusal in by_theirs(*other)[1]
    ours, theirs = by_ours("info", "-c", config), by_theirs("info", "-c", config)
    assert (ours[0], ours[1].split()) == (theirs[0], theirs[1].split())


def test_a_random_uuid() -> None:
    code, output = by_ours("random-uuid")
    assert code == 0 and re.fullmatch(r"[\w-]{22}\n", output) and not output.startswith("-")
