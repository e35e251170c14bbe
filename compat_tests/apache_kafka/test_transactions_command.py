"""``barnabas transactions`` beside kafka-transactions.sh, on Apache Kafka and on Barnabas: the output is equal.

Our command ends hanging and open transactions on either. Knows only the output of the commands.
"""

import json
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import NewTopic

from barnabas.cli import commands
from tests.owner import HOUR_MS, Owner, produce
from tests.raw import Client

from .hand_over import admin_of, alter, wait
from .test_console_tools import Tools, rows

NAMES = {
    "coordinator": "coordinator_id",
    "current_transaction_start_time_ms": "transaction_start_time_ms",
    "duration(min)": "duration_minutes",
}
"""What our columns are called otherwise."""

BROKER = 4
VERIFIES = "transaction.partition.verification.enable"
"""Without it a partition takes a transaction's first batch, and nobody is asked whether it may."""

TELLS_THE_TIME = ("transaction_duration_ms", "duration_minutes")

Row = dict[str, str]


class Left(NamedTuple):
    """The open transactions, and their broker."""

    bootstrap: str
    tools: Tools
    hanging: Owner
    start_offset: int
    ongoing: Owner
    topic: str

    def ours(self, verb: str, *arguments: str) -> list[Row]:
        """Returns the output of our command, as text."""
        printed = [self._as_text(row) for row in json.loads(self.run(verb, *arguments, "--json"))]
        return sorted(printed, key=str)

    def theirs(self, verb: str, *arguments: str) -> list[Row]:
        """Returns the output of kafka-transactions, with our names."""
        found = [
            {self._name(name): value for name, value in row.items()}
            for row in rows(self.tools.transactions(verb, *arguments))
        ]
        return sorted((self._as_text(row) for row in found), key=str)

    def run(self, *arguments: str) -> str:
        ran = CliRunner().invoke(commands.barnabas, ["transactions", "--bootstrap-server", self.bootstrap, *arguments])
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    @staticmethod
    def _name(header: str) -> str:
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", header).lower()
        return NAMES.get(name, name)

    @staticmethod
    def _as_text(row: dict[str, Any]) -> Row:
        text = {
            name: ",".join(sorted(value)) if isinstance(value, list) else ",".join(sorted(str(value).split(",")))
            for name, value in row.items()
            if name not in TELLS_THE_TIME
        }
        return {name: value for name, value in text.items() if value}


def written(owner: Owner, topic: str, value: bytes) -> int:
    """Writes the record once the change of the config lets it pass. Returns its offset.

    Apache Kafka applies a new config a moment after its response. It also refuses a record that it meant to append
    unverified if the config changes before it is appended (``UnifiedLog.batchMissingRequiredVerification``).
    """
    deadline = time.monotonic() + 60
    while True:
        try:
            return owner.write(topic, 0, value, HOUR_MS)
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@pytest.fixture(params=["apache_kafka", "beside"])
def left(request: pytest.FixtureRequest, kafka_jars: Any) -> Iterator[Left]:
    """Yields a broker with a hanging and an open transaction."""
    broker = request.getfixturevalue(request.param)
    topic = f"left-on-{request.param}"
    admin = admin_of(broker.bootstrap)
    wait(admin.create_topics([NewTopic(topic, 2, 1)]))
    tools = Tools(broker.bootstrap)
    with Client(broker.port) as client:
        hanging, ongoing = Owner(client, f"{topic}-hanging"), Owner(client, f"{topic}-ongoing")
        alter(broker.bootstrap, BROKER, "1", VERIFIES, "false")
        try:
            produce(client, topic, 0, b"before")
            start_offset = written(hanging, topic, b"hangs")
        finally:
            alter(broker.bootstrap, BROKER, "1", VERIFIES, "true")
        ongoing.begin(topic, [0, 1])
        written(ongoing, topic, b"open")
        yield Left(broker.bootstrap, tools, hanging, start_offset, ongoing, topic)
    assert tools.process.stdin is not None
    tools.process.stdin.close()
    assert tools.process.wait(10) == 0


def test_descriptions_are_equal_and_open_transactions_can_be_ended(left: Left) -> None:
    def both(*words: str) -> tuple[list[Row], list[Row]]:
        return left.ours(*words), left.theirs(*words)

    pattern = ("--transactional-id-pattern", f"{left.topic}.*")
    where = ("--topic", left.topic, "--partition", "0")

    ours, theirs = both("list", *pattern)
    assert ours == theirs
    assert {row["transaction_state"] for row in ours} == {"Empty", "Ongoing"}
    ours, theirs = both("list", *pattern, "--duration-filter", "3600000")
    assert ours == theirs
    assert [row["transactional_id"] for row in ours] == [left.hanging.transactional_id]
    for owner in (left.hanging, left.ongoing):
        ours, theirs = both("describe", "--transactional-id", owner.transactional_id)
        assert ours == theirs
    assert ours[0]["topic_partitions"] == f"{left.topic}-0,{left.topic}-1"
    ours, theirs = both("describe-producers", *where)
    assert ours == theirs
    assert len(ours) == 2
    for scope in (where, ("--topic", left.topic), ("--topic", left.topic, "--broker-id", "1")):
        ours, theirs = both("find-hanging", *scope)
        assert ours == theirs
        assert [row["producer_id"] for row in ours] == [str(left.hanging.id)]

    left.run("abort", *where, "--start-offset", str(left.start_offset))
    assert both("find-hanging", *where) == ([], [])
    left.run("force-terminate", "--transactional-id", left.ongoing.transactional_id)
    ours, theirs = both("list", *pattern)
    assert ours == theirs
    assert {row["transaction_state"] for row in ours} == {"Empty"}
    ours, theirs = both("describe-producers", *where)
    assert ours == theirs
    assert {row["current_transaction_start_offset"] for row in ours} == {"None"}
