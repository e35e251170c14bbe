"""kcat against the broker: produce, consume, a group, the list. Skipped without kcat."""

import json
import shutil
import subprocess

import pytest

KCAT = shutil.which("kcat") or shutil.which("kafkacat")
pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


@pytest.fixture
def kcat(bootstrap: str):
    def run(*arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            [str(KCAT), "-b", bootstrap, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_goes_in_comes_out(kcat, topic: str, codec: str) -> None:
    lines = "".join(f"key{n}:value{n}\n" for n in range(50))
    kcat("-P", "-t", topic, "-p", "0", "-K:", "-z", codec, "-H", "header=yes", stdin=lines)
    assert kcat("-C", "-t", topic, "-e", "-q", "-f", "%k:%s\n") == lines
    (last,) = kcat("-C", "-t", topic, "-p", "0", "-o", "-1", "-c", "1", "-q", "-J").splitlines()
    record = json.loads(last)
    assert (record["key"], record["payload"], record["offset"]) == ("key49", "value49", 49)
    assert record["headers"] == ["header", "yes"]
    assert record["ts"] > 0


def test_an_offset_by_time(kcat, topic: str) -> None:
    kcat("-P", "-t", topic, "-p", "0", stdin="first\nsecond\n")
    (first, _) = kcat("-C", "-t", topic, "-e", "-q", "-f", "%T\n").splitlines()
    assert kcat("-Q", "-t", f"{topic}:0:{first}").strip() == f"{topic} [0] offset 0"
    assert kcat("-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 2"


def test_the_cluster_is_listed(kcat, topic: str, bootstrap: str) -> None:
    kcat("-P", "-t", topic, stdin="value\n")
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert [broker["name"] for broker in listed["brokers"]] == [bootstrap]
    (described,) = listed["topics"]
    assert described["topic"] == topic
    assert described["partitions"][0]["leader"] == listed["brokers"][0]["id"]


def test_a_group_continues_at_its_committed_offsets(kcat, topic: str, group: str) -> None:
    kcat("-P", "-t", topic, stdin="one\ntwo\nthree\n")
    reset = ["-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"]
    assert kcat("-G", group, *reset, "-c", "2", "-q", topic) == "one\ntwo\n"
    assert kcat("-G", group, *reset, "-c", "1", "-q", topic) == "three\n"
