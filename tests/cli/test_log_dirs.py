"""``barnabas log-dirs``, against a broker of two directories."""

import pytest
from kafka import KafkaAdminClient

from barnabas.testing import Broker

THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture(scope="module")
def two_directories():
    with Broker(log_dirs="/one,/two") as broker:
        yield broker


@pytest.fixture
def broker(two_directories):
    two_directories.reset()
    two_directories.create_topic("orders", partitions=2)
    two_directories.create_topic("users")
    return two_directories


def in_directories(barnabas, *arguments):
    """Returns the content of each directory, by the command."""
    found = barnabas("log-dirs", "--describe", "--json", *arguments).json
    assert {(each["broker"], each["error"]) for each in found} == {(1, None)}
    return {
        each["log_dir"]: [(partition["topic"], partition["partition"]) for partition in each["partitions"]]
        for each in found
    }


def test_describe(barnabas):
    described = barnabas("log-dirs", "--describe")
    assert (described.code, described.err) == (0, "")
    assert described.lines[0].startswith("Broker 1  /one")
    assert described.lines[1].split() == ["TOPIC", "PARTITION", "SIZE", "OFFSET", "LAG", "FUTURE"]
    assert described.lines[3].split() == ["orders", "0", "0", "0", "no"]


def test_only_some(barnabas):
    assert in_directories(barnabas) == {"/one": [("orders", 0), ("users", 0)], "/two": [("orders", 1)]}
    assert in_directories(barnabas, "--topic", "users,nope") == {"/one": [("users", 0)], "/two": []}
    assert in_directories(barnabas, "--topic", "orders", "--partition", "1") == {"/one": [], "/two": [("orders", 1)]}
    assert in_directories(barnabas, "--broker", "1")["/two"] == [("orders", 1)]


def test_move(barnabas):
    moved = barnabas("log-dirs", "--move", "--topic", "orders", "--to", "/two", "--wait")
    assert moved == (0, "orders-0 on broker 1 is in /two\norders-1 on broker 1 is in /two\n", "")
    assert in_directories(barnabas) == {"/one": [("users", 0)], "/two": [("orders", 0), ("orders", 1)]}


def test_move_one(barnabas):
    moved = barnabas("log-dirs", "--move", "--topic", "orders", "--partition", "1", "--to", "/one", "--json", "--wait")
    assert moved.json == [{"topic": "orders", "partition": 1, "broker": 1}]
    assert in_directories(barnabas)["/one"] == [("orders", 0), ("orders", 1), ("users", 0)]


def test_without_waiting(barnabas):
    moved = barnabas("log-dirs", "--move", "--topic", "users", "--to", "/one")
    assert moved == (0, "users-0 on broker 1 is being moved to /one\n", "")


def test_a_move_that_is_called_off_is_not_waited_for(barnabas, broker, monkeypatch):
    """Another client has cancelled the move."""
    moved = KafkaAdminClient.alter_replica_log_dirs

    def called_off(admin, wishes):
        answer = moved(admin, wishes)
        moved(admin, dict.fromkeys(wishes, "/one"))
        return answer

    monkeypatch.setattr(KafkaAdminClient, "alter_replica_log_dirs", called_off)
    barnabas("configs", "--alter", "--broker", "1", "--add-config", f"{THROTTLE}=0")
    outcome = barnabas("log-dirs", "--move", "--topic", "users", "--to", "/two", "--wait")
    assert outcome == (1, "", "Error: users-0 on broker 1 is no longer being moved to /two\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "One of --describe and --move must be given"),
        (["--move", "--topic", "orders"], "--move needs --topic and --to"),
        (["--move", "--to", "/two"], "--move needs --topic and --to"),
        (["--describe", "--partition", "1"], "--partition needs one --topic"),
        (["--move", "--topic", "nope", "--to", "/two"], "There are no such partitions"),
        (["--move", "--topic", "orders", "--to", "/three"], "LogDirNotFound"),
    ],
)
def test_mistakes(barnabas, arguments, said):
    outcome = barnabas("log-dirs", *arguments)
    assert outcome.code != 0
    assert said in outcome.err
    assert outcome.err.count("\n") == 1
