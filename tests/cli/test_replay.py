"""``barnabas replay``: traffic of clients is recorded at one broker, and replayed at another."""

import json
import subprocess
import sys

import pytest
from confluent_kafka import Producer

from barnabas.cli import main
from barnabas.testing import Broker
from tests.cli.proxying import Proxying, send
from tests.cli.traffic import TOPIC, traffic


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    file = tmp_path_factory.mktemp("recording") / "traffic.jsonl"
    with Broker() as broker, Proxying(broker.bootstrap_servers, "--record", str(file)) as proxying:
        traffic(proxying.bootstrap_servers)
        proxying.stop()
    return file


@pytest.fixture
def fresh():
    """A broker with earlier topics and producers: its ids are not those of the recording."""
    with Broker({"node.id": "7"}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
        producer.produce("another", b"record")
        assert producer.flush(30) == 0
        yield broker


def replay(capsys, file, broker, *arguments):
    code = main(["replay", str(file), "--bootstrap-server", broker.bootstrap_servers, *arguments])
    return code, capsys.readouterr().out


def test_the_same_traffic_has_the_same_answers(recording, fresh, capsys):
    code, printed = replay(capsys, recording, fresh)
    assert printed.splitlines()[1:] == []
    assert " 0 differ" in printed
    assert code == 0
    assert sorted(each.value for each in fresh.records(TOPIC, committed=True)) == [b"kept", b"milk", b"tea"]


def test_with_the_spacing_of_the_recording(fresh, capsys, tmp_path):
    file = tmp_path / "few.jsonl"
    with Broker() as broker, Proxying(broker.bootstrap_servers, "--record", str(file)) as proxying:
        send(proxying, b"tea", topic=TOPIC)
        proxying.stop()
    assert replay(capsys, file, fresh, "--spacing")[0] == 0


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"api": "Produce", "first": 1, "error": "INVALID_RECORD"}, "error_code is 87, was 0"),
        ({"api": "Produce", "first": 1, "error": "INVALID_RECORD"}, "is 'missing', was 'fetched'"),
        ({"api": "EndTxn", "first": 1, "error": "INVALID_TXN_STATE"}, "error_code is 48, was 0"),
        ({"api": "JoinGroup", "nth": 1, "cut": "before"}, "JoinGroup"),
        ({"api": "OffsetFetch", "first": 1, "error": "GROUP_AUTHORIZATION_FAILED"}, "groups[classic].error_code is 30"),
    ],
)
def test_what_differs_is_named(recording, fresh, capsys, rule, words):
    fresh.faults.add(**rule)
    code, printed = replay(capsys, recording, fresh, "--patience", "2")
    assert code == 1
    assert words in printed


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("Produce", "NOT_LEADER_OR_FOLLOWER"),
        ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),  # the recording has MEMBER_ID_REQUIRED there
    ],
)
def test_a_request_with_a_temporary_error_is_repeated(recording, fresh, capsys, api, error):
    rule = fresh.faults.add(api=api, first=2, error=error)
    assert replay(capsys, recording, fresh)[0] == 0
    assert rule.hits == 2


def test_what_a_coordinator_refused_is_not_sent(fresh, capsys, tmp_path):
    """As at a broker that has just started. Sent again, each request would have an effect that it did not have."""
    file = tmp_path / "traffic.jsonl"
    with Broker() as broker, Proxying(broker.bootstrap_servers, "--record", str(file)) as proxying:
        rules = [
            broker.faults.add(api=api, client_id="rdkafka", first=2, error=error)
            for api, error in (
                ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
                ("InitProducerId", "NOT_COORDINATOR"),
                ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
                ("ConsumerGroupHeartbeat", "NOT_COORDINATOR"),
            )
        ]
        traffic(proxying.bootstrap_servers)
        proxying.stop()
    assert [rule.hits for rule in rules] == [2, 2, 2, 2]
    code, printed = replay(capsys, file, fresh)
    assert (code, printed.splitlines()[1:]) == (0, [])
    assert f"{8 - unanswered(file)} that a coordinator had refused were not sent" in printed


def unanswered(file):
    """Returns how many of the first two FindCoordinator requests have no answer: librdkafka closes the connection to
    the bootstrap server once it has another one to that broker.
    """
    events = [json.loads(line) for line in file.read_text().splitlines()]
    wanted = [each for each in events if (each.get("api"), each.get("client_id")) == ("FindCoordinator", "rdkafka")]
    answered = {each["request"] for each in events if each.get("event") == "answer"}
    return sum(each["request"] not in answered for each in wanted[:2])


def test_what_is_ignored_is_not_compared(recording, fresh, capsys):
    fresh.faults.add(api="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
    code, printed = replay(capsys, recording, fresh, "--json")
    assert code == 1
    lines = [json.loads(line) for line in printed.splitlines()]
    assert all("OffsetCommit" in each["what"] for each in lines)
    assert {field["field"].rpartition(".")[2] for each in lines for field in each["differences"]} == {"error_code"}
    fresh.reset()
    fresh.faults.add(api="OffsetCommit", error="GROUP_AUTHORIZATION_FAILED")
    assert replay(capsys, recording, fresh, "--ignore", "OffsetCommit")[0] == 0


def test_a_name_that_no_answer_has(recording, fresh):
    assert main(["replay", str(recording), "--bootstrap-server", fresh.bootstrap_servers, "--ignore", "nothing"]) == 2


def test_a_file_that_is_no_recording(capsys, tmp_path):
    file = tmp_path / "orders.json"
    file.write_text("{}\n")
    with Broker() as broker:
        assert main(["replay", str(file), "--bootstrap-server", broker.bootstrap_servers]) == 1
    assert f"{file} is no recording" in capsys.readouterr().err


def test_a_cluster_that_cannot_be_reached(recording):
    command = [sys.executable, "-m", "barnabas", "replay", str(recording), "--bootstrap-server", "127.0.0.1:1"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "127.0.0.1" in ran.stderr
    assert "Traceback" not in ran.stderr
