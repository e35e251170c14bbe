"""``barnabas transactions``: transactions are listed and described, hanging ones are found and aborted."""

import pytest
from kafka.errors import CoordinatorNotAvailableError, NotCoordinatorError

from barnabas.cli import main
from barnabas.cli.hanging import describe_transaction
from barnabas.clock import ManualClock
from barnabas.errors import KafkaError
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from tests.owner import HOUR_MS, Owner
from tests.raw import Client

STRANGER = 987_654
"""A producer id without a transactional id."""


@pytest.fixture
def client(broker):
    broker.create_topic("t", partitions=2)
    broker.create_topic("u")
    with Client(broker.port) as client:
        yield client


def leave_open(
    broker: Broker, partition: int, producer_id: int, epoch: int = 0, topic: str = "t", ago_ms: int = HOUR_MS
):
    """Writes an open transaction that only the log has, as an old bug did; returns its first offset."""

    def append() -> int:
        node = broker._server.broker
        now_ms = node.clock.time_ms()
        batch = build_batch(
            [(b"k", b"v", now_ms - ago_ms)], producer_id=producer_id, producer_epoch=epoch, base_sequence=0,
            is_transactional=True,
        )  # fmt: skip
        partition_ = node.partition(topic, partition)
        return partition_.append(RecordBatch.parse(batch), now_ms, by_coordinator=True).base_offset

    return broker._call(append)


def rows(outcome, *names):
    return [tuple(row[name] for name in names) for row in outcome.json]


def test_list(barnabas, client):
    assert barnabas("transactions", "list").out == "No transactions\n"
    one, other = Owner(client, "one"), Owner(client, "other")
    one.begin("t", [0])

    def listed(*options):
        return rows(barnabas("transactions", "list", *options, "--json"), "transactional_id", "transaction_state")

    assert listed() == [("one", "Ongoing"), ("other", "Empty")]
    assert listed("--state", "ongoing") == [("one", "Ongoing")]
    assert listed("--state", "Empty", "--state", "Dead") == [("other", "Empty")]
    assert listed("--producer-id", str(other.id)) == [("other", "Empty")]
    assert listed("--transactional-id-pattern", "o.e") == [("one", "Ongoing")]
    assert listed("--transactional-id-pattern", "o") == []
    assert ("one", "Ongoing") not in listed("--duration-filter", "600000")
    assert listed("--duration-filter", "-1") == [("one", "Ongoing"), ("other", "Empty")]
    table = barnabas("transactions", "list").lines
    assert table[0].split() == ["TRANSACTIONAL", "ID", "COORDINATOR", "ID", "PRODUCER", "ID", "TRANSACTION", "STATE"]
    assert table[2].split() == ["one", "1", str(one.id), "Ongoing"]
    bad = barnabas("transactions", "list", "--transactional-id-pattern", "(")
    assert (bad.code, bad.out) == (1, "")
    assert bad.err == "Error: InvalidRegularExpression: The regular expression is not valid.\n"


def test_describe(barnabas, client):
    owner = Owner(client, "one")
    owner.begin("t", [1, 0])
    owner.begin("u", [0])
    (shown,) = barnabas("transactions", "describe", "--transactional-id", "one", "--json").json
    duration, start = shown.pop("transaction_duration_ms"), shown.pop("transaction_start_time_ms")
    assert 0 <= duration < HOUR_MS
    assert start > 1_600_000_000_000
    assert shown == {
        "coordinator_id": 1,
        "transactional_id": "one",
        "producer_id": owner.id,
        "producer_epoch": owner.epoch,
        "transaction_state": "Ongoing",
        "transaction_timeout_ms": 600_000,
        "topic_partitions": ["t-0", "t-1", "u-0"],
    }
    unknown = barnabas("transactions", "describe", "--transactional-id", "nobody")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith("Error: TransactionalIdNotFound: ")


def test_describe_producers(barnabas, client, broker):
    assert barnabas("transactions", "describe-producers", "--topic", "t", "--partition", "0").out == "No producers\n"
    leave_open(broker, 0, STRANGER, epoch=3)
    (shown,) = barnabas("transactions", "describe-producers", "--topic", "t", "--partition", "0", "--json").json
    assert shown.pop("last_timestamp") > 1_600_000_000_000
    assert shown == {
        "producer_id": STRANGER,
        "producer_epoch": 3,
        "latest_coordinator_epoch": -1,
        "last_sequence": 0,
        "current_transaction_start_offset": 0,
    }
    nowhere = barnabas("transactions", "describe-producers", "--topic", "t", "--partition", "7")
    assert (nowhere.code, nowhere.out) == (1, "")
    assert nowhere.err.startswith("Error: UnknownTopicOrPartition: ")


def found(barnabas, *options):
    outcome = barnabas("transactions", "find-hanging", *options, "--json")
    return rows(outcome, "topic", "partition", "producer_id", "start_offset", "duration_minutes")


def test_what_hangs_is_found(barnabas, client, broker):
    assert barnabas("transactions", "find-hanging", "--topic", "t").out == "No hanging transactions\n"
    leave_open(broker, 0, STRANGER)
    leave_open(broker, 0, STRANGER + 1, ago_ms=60_000)
    leave_open(broker, 0, STRANGER + 2, topic="u")
    hanging = ("t", 0, STRANGER, 0, 60)
    assert found(barnabas, "--topic", "t") == [hanging]
    assert found(barnabas, "--topic", "t", "--partition", "0") == [hanging]
    assert found(barnabas, "--topic", "t", "--partition", "1") == []
    assert found(barnabas, "--broker-id", "1") == [hanging, ("u", 0, STRANGER + 2, 0, 60)]
    assert found(barnabas, "--broker-id", "1", "--topic", "u") == [("u", 0, STRANGER + 2, 0, 60)]
    assert found(barnabas, "--topic", "t", "--max-transaction-timeout", "61") == []
    assert [row[2] for row in found(barnabas, "--topic", "t", "--max-transaction-timeout", "0")] == [
        STRANGER,
        STRANGER + 1,
    ]
    nowhere = barnabas("transactions", "find-hanging", "--topic", "nope")
    assert nowhere == (1, "", "Error: There is no topic nope\n")


def test_what_a_coordinator_will_end_does_not_hang(barnabas, client, broker):
    owner = Owner(client, "one")
    owner.begin("t", [0])
    for partition in (0, 1):
        leave_open(broker, partition, owner.id, owner.epoch)
    assert found(barnabas, "--topic", "t") == [("t", 1, owner.id, 0, 60)]
    assert owner.end(committed=True) == 0


@pytest.mark.parametrize("by", ["offset", "producer"])
def test_what_hangs_is_ended(barnabas, client, broker, by):
    leave_open(broker, 0, STRANGER + 1, ago_ms=0)
    start = leave_open(broker, 0, STRANGER, epoch=3)
    which = {
        "offset": ["--start-offset", str(start)],
        "producer": ["--producer-id", str(STRANGER), "--producer-epoch", "3", "--coordinator-epoch", "-1"],
    }[by]
    assert start == 1
    ended = barnabas("transactions", "abort", "--topic", "t", "--partition", "0", *which)
    assert ended == (0, f"Aborted the transaction of producer {STRANGER} on t-0\n", "")
    assert found(barnabas, "--topic", "t") == []
    producers = barnabas("transactions", "describe-producers", "--topic", "t", "--partition", "0", "--json")
    assert sorted(rows(producers, "producer_id", "current_transaction_start_offset", "latest_coordinator_epoch")) == [
        (STRANGER, None, 0),
        (STRANGER + 1, 0, -1),
    ]
    again = barnabas("transactions", "abort", "--topic", "t", "--partition", "0", "--start-offset", str(start))
    assert again == (
        1,
        "",
        f"Error: Could not find any open transactions starting at offset {start} on partition t-0\n",
    )


@pytest.mark.parametrize("name", ["force-terminate", "forceTerminateTransaction"])
def test_a_transaction_is_terminated_by_force(barnabas, client, name):
    owner = Owner(client, "one")
    owner.begin("t", [0])
    assert barnabas("transactions", name, "--transactional-id", "one") == (0, "Terminated the transaction of one\n", "")
    (shown,) = barnabas("transactions", "describe", "--transactional-id", "one", "--json").json
    assert (shown["producer_epoch"] > owner.epoch, shown["transaction_state"], shown["topic_partitions"]) == (
        True,
        "Empty",
        [],
    )
    assert KafkaError.by_code[owner.end(committed=True)].__name__ == "ProducerFenced"
    unknown = barnabas("transactions", name, "--transactional-id", "nobody")
    assert (unknown.code, unknown.out) == (1, "")
    assert rows(barnabas("transactions", "list", "--json"), "transactional_id") == [("one",)]


def test_the_broker_is_named_before_or_after_the_command(barnabas, client, broker, monkeypatch):
    assert main(["transactions", "list", "--bootstrap-server", broker.bootstrap_servers]) == 0
    nobody = ["--bootstrap-server", "127.0.0.1:1"]
    assert main(["transactions", *nobody, "list", "--bootstrap-server", broker.bootstrap_servers]) == 0
    monkeypatch.setattr("barnabas.cli.client.BOOTSTRAP_TIMEOUT_MS", 300)  # no broker allows such a short one
    assert main(["transactions", "--bootstrap-server", broker.bootstrap_servers, "list", *nobody]) == 1


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["nope"], "barnabas transactions"),
        (["list", "--state", "nope"], "barnabas transactions list"),
        (["describe"], "barnabas transactions describe"),
        (["find-hanging"], "barnabas transactions find-hanging"),
        (["find-hanging", "--broker-id", "1", "--partition", "0"], "barnabas transactions find-hanging"),
        (["abort", "--topic", "t", "--partition", "0"], "barnabas transactions abort"),
        (["abort", "--topic", "t", "--partition", "0", "--producer-id", "1"], "barnabas transactions abort"),
        (["abort", "--topic", "t", "--start-offset", "0"], "barnabas transactions abort"),
        (["force-terminate"], "barnabas transactions force-terminate"),
    ],
)
def test_mistakes(barnabas, arguments, hint):
    outcome = barnabas("transactions", *arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.endswith(f"(see {hint} --help)\n")


def test_a_broker_without_the_api_is_reported_in_a_line(capsys):
    with Broker(compatible_with="2.4") as old:
        assert main(["transactions", "--bootstrap-server", old.bootstrap_servers, "list"]) == 1
    assert capsys.readouterr().err.startswith("Error: IncompatibleBrokerVersion: Kafka broker does not support ")


class ComingUp:
    """An admin client whose coordinator responds to the request of that number; each request takes two seconds."""

    def __init__(self, answers_at: int) -> None:
        self.answers_at, self.clock, self.requests = answers_at, ManualClock(), 0

    def describe_transactions(self, transactional_ids):
        self.requests += 1
        self.clock.advance(2)
        if self.requests < self.answers_at:
            raise (CoordinatorNotAvailableError if self.requests == 1 else NotCoordinatorError)("soon")
        return dict.fromkeys(transactional_ids, "told")


def test_a_coordinator_that_comes_up_is_waited_for(monkeypatch):
    monkeypatch.setattr("barnabas.cli.hanging.PAUSE_S", 0)
    soon, late = ComingUp(4), ComingUp(99)
    assert describe_transaction(soon, "one", clock=soon.clock) == "told"
    with pytest.raises(NotCoordinatorError):
        describe_transaction(late, "one", clock=late.clock)
    assert (soon.requests, late.requests) == (4, 6)
