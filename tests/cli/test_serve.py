"""``barnabas serve``: its options, and its process."""

import ast
import gc
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from barnabas.cli import main
from barnabas.cli.serve import SNIPPET, Options, feature_levels, merged_properties, read
from barnabas.config import ConfigError

WAIT_S = 30


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], Options()),
        (["server.properties"], Options("server.properties")),
        (["--config", "a"], Options("a")),
        (["--config=a"], Options("a")),
        (["a", "--override", "b=c", "--override=d=e"], Options("a", ("b=c", "d=e"))),
        (["--dev", "--log-dir", "d", "--port", "0"], Options(dev=True, log_dirs="d", port="0")),
        (["--feature", "a=1", "--feature=b=2"], Options(feature=("a=1", "b=2"))),
        (["--release-version", "3.9"], Options(release_version="3.9")),
        (["--log-dirs=d,e", "--log-level", "debug"], Options(log_dirs="d,e", log_level="debug")),
    ],
)
def test_options(arguments, options):
    assert read(arguments) == options


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--dev=yes"], ["--nope"], ["--override"], ["a", "b"]])
def test_what_click_is_left_with(arguments):
    assert read(arguments) is None


def test_an_override_goes_before_the_environment_and_that_before_the_file(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=1\nlog.retention.ms=1\nlog.segment.bytes=1\nlog.dirs=/file\n")
    options = Options(str(file), ("num.partitions=3", "listeners=PLAINTEXT://:1"), log_dirs="/short", port="2")
    assert merged_properties(options, {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_LOG_RETENTION_MS": "2", "HOME": "/"}) == {
        "num.partitions": "3",
        "log.retention.ms": "2",
        "log.segment.bytes": "1",
        "log.dirs": "/short",
        "listeners": "PLAINTEXT://:1",
    }


def test_a_port_is_one_of_this_machine_alone():
    assert merged_properties(Options(port="9999"), {})["listeners"] == "PLAINTEXT://127.0.0.1:9999"


def test_an_override_that_cannot_be_read():
    with pytest.raises(ConfigError, match=r"^--override is 'a', but must be key=value$"):
        merged_properties(Options(override=("a",)), {})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--override", "num.partitions=many"], r"Invalid value many for configuration num\.partitions: Not a number"),
        (
            ["--override", "listeners=X://:1"],
            r"listeners is 'X://:1', but must be made of names that listener\.security",
        ),
        (["--override", "nonsense"], r"--override is 'nonsense', but must be key=value"),
        (["no/such/server.properties"], r"\[Errno 2\] No such file or directory"),
        (["--feature", "nope=1"], r"--feature is 'nope', but must be a feature: eligible\.leader\.replicas\.version, "),
        (["--feature", "group.version"], r"--feature is 'group\.version', but must be a feature and its level, like "),
        (["--feature", "group.version=x"], r"--feature is 'group\.version=x', but must be a feature and its level, "),
        (["--feature", "group.version=2"], r"--feature group\.version is '2', but must be a level from 0 to 1"),
        (["--release-version", "2.8"], r"--release-version is '2\.8', but must be one of 3\.3-IV3, "),
        (
            ["--release-version", "3.9", "--feature", "metadata.version=21"],
            r"--release-version is '3\.9', but must be given without --feature metadata\.version",
        ),
        (
            ["--release-version", "3.9", "--feature", "eligible.leader.replicas.version=1"],
            r"eligible\.leader\.replicas\.version could not be set to 1 because it depends on metadata\.version level",
        ),
        (["--dev", "--parent-pid", "me"], r"--parent-pid is 'me', but must be the id of a process"),
        (["--log-level", "loud"], r"--log-level is 'loud', but must be one of DEBUG"),
    ],
)
def test_a_mistake_stops_the_start_with_one_line(capsys, arguments, said):
    assert main(["serve", *arguments]) == 1
    captured = capsys.readouterr()
    assert re.fullmatch(rf"Error: {said}.*\n", captured.err)
    assert captured.out == ""


@pytest.mark.parametrize("argument", ["--help", "--log-level=loud", "--no-such-option"])
def test_the_garbage_collector_is_on_after_a_command_that_started_no_broker(capsys, argument):
    main(["serve", argument])
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (Options(), {}),
        (Options(feature=("transaction.version=1", "group.version=0")), {"transaction.version": 1, "group.version": 0}),
        (Options(feature=("transaction.version=1", "transaction.version=2")), {"transaction.version": 2}),
        (Options(release_version="3.9"), {"metadata.version": 21}),
        (
            Options(feature=("transaction.version=2",), release_version="3.9"),
            {"metadata.version": 21, "transaction.version": 2},
        ),
    ],
)
def test_levels_of_features(options, found):
    assert feature_levels(options) == found


def test_the_snippet_has_six_lines_and_compiles():
    text = SNIPPET.format(address="127.0.0.1:9092")
    assert text.count("\n") == 6
    compile(text, "snippet", "exec")


def test_the_readme_shows_the_snippet_in_its_own_lines():
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    block = readme.partition("```python\n")[2].partition("```")[0]
    assert ast.dump(ast.parse(block)) == ast.dump(ast.parse(SNIPPET.format(address="127.0.0.1:9092")))


class Serving:
    """A broker in its own process, on a free port."""

    def __init__(self, *arguments, environment=None):
        command = [sys.executable, "-m", "barnabas", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )

    def __enter__(self):
        self.announced = self.process.stdout.readline()
        self.said = self.announced + "".join(self.process.stdout.readline() for _ in range(7))
        found = re.search(r"listens on PLAINTEXT://(127\.0\.0\.1:\d+); data in (.+)\n", self.announced)
        assert found, self.announced + self.process.stderr.read()
        self.address, self.data = found.group(1), Path(found.group(2))
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT_S)

    def stop(self, number):
        self.process.send_signal(number)
        self.process.wait(WAIT_S)
        return self.process.returncode


def test_it_says_where_it_listens_when_it_does():
    with Serving("--dev") as serving:
        host, port = serving.address.split(":")
        with socket.create_connection((host, int(port)), WAIT_S):
            pass
        assert SNIPPET.format(address=serving.address) in serving.said
        assert (serving.data / "meta.properties").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order_and_the_temporary_data_with_it(number):
    with Serving("--dev") as serving:
        assert serving.stop(number) == 0
        assert not serving.data.exists()


def test_the_snippet_works_when_it_is_pasted():
    with Serving("--dev") as serving:
        snippet = serving.said.partition("\n\n")[2]
        result = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", snippet], capture_output=True, text=True, timeout=60
        )
    assert (result.returncode, result.stdout) == (0, "greetings 0 0 b'who' b'hello from Barnabas'\n"), result.stderr


def test_data_stays_in_the_given_directory(tmp_path):
    directory = tmp_path / "data"
    with Serving("--dev", "--log-dir", str(directory)) as serving:
        assert serving.data == directory
        assert serving.stop(signal.SIGTERM) == 0
    assert (directory / ".kafka_cleanshutdown").exists()
    with Serving(f"--override=log.dirs={directory}") as again:
        assert again.stop(signal.SIGTERM) == 0


def finalized(serving):
    admin = KafkaAdminClient(bootstrap_servers=serving.address)
    found = admin.describe_features()
    admin.close()
    return {name: each["finalized"][1] for name, each in found.items() if "finalized" in each}


def test_levels_are_chosen_once_and_stay(tmp_path):
    directory = f"--log-dirs={tmp_path / 'data'}"
    chosen = ["--release-version", "4.0", "--feature", "transaction.version=1", "--feature", "kraft.version=1"]
    wanted = {"metadata.version": 25, "group.version": 1, "transaction.version": 1, "kraft.version": 1}
    with Serving(directory, *chosen) as serving:
        assert finalized(serving) == wanted
        assert serving.stop(signal.SIGTERM) == 0
    for again in ([], chosen):
        with Serving(directory, *again) as serving:
            assert finalized(serving) == wanted
            serving.stop(signal.SIGKILL)
    other = [sys.executable, "-m", "barnabas", "serve", "--port=0", directory, "--feature", "transaction.version=2"]
    refused = subprocess.run(other, capture_output=True, text=True, timeout=WAIT_S)
    assert refused.returncode == 1
    assert "transaction.version is at level 1, not 2" in refused.stderr
    assert "barnabas features upgrade" in refused.stderr


def test_all_sources_at_once(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=7\nlog.dirs={tmp_path / 'data'}\nno.such.name=1\nbroker.rack=file\n")
    environment = {"KAFKA_BROKER_RACK": "env", "KAFKA_HEAP_OPTS": "-Xmx1G", "KAFKA_NO_SUCH": "1"}
    with Serving(str(file), environment=environment) as serving:
        assert "node 7" in serving.announced
        serving.process.send_signal(signal.SIGTERM)
        _, err = serving.process.communicate(timeout=WAIT_S)
    assert "no.such.name is not a config of Apache Kafka 4.3" in err
    assert "KAFKA_NO_SUCH is ignored: no.such is not a config" in err
    assert "HEAP" not in err


def test_the_ready_file_says_where_the_broker_is(tmp_path):
    file = tmp_path / "ready.json"
    file.write_text("of another one")
    with Serving("--dev", "--ready-file", str(file)) as serving:
        deadline = time.monotonic() + WAIT_S
        while not (file.exists() and file.read_text().startswith("{")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        ready = json.loads(file.read_text())
        assert ready["bootstrap_servers"] in serving.announced
        assert ready["pid"] == serving.process.pid
        assert ready["listeners"] == {"PLAINTEXT": f"PLAINTEXT://{ready['bootstrap_servers']}"}
        KafkaAdminClient(bootstrap_servers=ready["bootstrap_servers"]).close()


def test_a_broker_ends_with_its_parent():
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with Serving("--dev", "--parent-pid", str(parent.pid)) as serving:
        parent.communicate(b"\n", WAIT_S)
        assert serving.process.wait(WAIT_S) == 0
    late = [sys.executable, "-m", "barnabas", "serve", "--dev", "--port", "0", "--parent-pid", str(parent.pid)]
    assert subprocess.run(late, capture_output=True, timeout=WAIT_S).returncode == 1
