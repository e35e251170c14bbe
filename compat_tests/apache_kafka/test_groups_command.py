"""``barnabas groups`` beside kafka-consumer-groups.sh and kafka-share-groups.sh, on Apache Kafka and on Barnabas.

Both commands print the same about each broker, and our command changes groups on either.
"""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from barnabas.cli import commands
from barnabas.cli.requests import send_to_coordinator
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .test_console_tools import Tools, rows

Row = dict[str, str]
RECORDS = 10
numbers = itertools.count(1)

NAMES = {
    "#PARTITIONS": "partition_count",
    "CURRENT-EPOCH": "epoch",
    "CURRENT-ASSIGNMENT": "partitions",
    "TARGET-ASSIGNMENT": "target_partitions",
    "MEMBER-EPOCH": "epoch",
    "ASSIGNMENT": "partitions",
}
"""Our different names of columns."""


class Groups(NamedTuple):
    """A consumer group and a share group that have read the same topic."""

    bootstrap: str
    tools: Tools
    topic: str
    consumer: Consumer

    @property
    def consumers(self) -> str:
        return f"{self.topic}-consumers"

    @property
    def sharers(self) -> str:
        return f"{self.topic}-sharers"

    def run(self, *arguments: str) -> Any:
        """Returns our command's output."""
        ran = CliRunner().invoke(
            commands.barnabas, ["groups", "--bootstrap-server", self.bootstrap, *arguments, "--json"]
        )
        assert ran.exit_code == 0, ran.output
        return json.loads(ran.stdout)

    def share(self, epoch: int) -> Any:
        """Sends a heartbeat of the share group's only member."""
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap)
        try:
            request = ShareGroupHeartbeatRequest(
                group_id=self.sharers,
                member_id="sharer",
                member_epoch=epoch,
                subscribed_topic_names=[self.topic] if epoch == 0 else None,
            )
            return send_to_coordinator(client, self.sharers, request)
        finally:
            client.close()


def theirs(table: str) -> list[Row]:
    """Returns their table by our names."""
    found = [
        {NAMES.get(name, name.lower().replace("-", "_")): value for name, value in row.items()} for row in rows(table)
    ]
    return sorted(found, key=str)


def like(shown: list[Row], results: list[dict[str, Any]]) -> list[Row]:
    """Returns our rows as text, with their columns."""
    return sorted(({name: text_of(row[name]) for name in shown[0]} for row in results), key=str)


def text_of(value: Any) -> str:
    if isinstance(value, list):
        names = {place.rpartition("-")[0] for place in value}
        return ";".join(
            f"{name}:{','.join(place.rpartition('-')[2] for place in value if place.startswith(name))}"
            for name in sorted(names)
        )
    return "-" if value is None else str(value)


def have_read(consumer: Consumer) -> None:
    deadline, count = time.monotonic() + 60, 0
    while count < RECORDS:
        assert time.monotonic() < deadline, "the consumer was given nothing to read"
        message = consumer.poll(0.2)
        count += message is not None and message.error() is None
    consumer.commit(asynchronous=False)


@contextmanager
def groups_on(broker: Any) -> Iterator[Groups]:
    topic = f"groups-{next(numbers)}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for created in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(topic, b"x", partition=number % 2)
    assert producer.flush(60) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"{topic}-consumers",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "client.id": "reader",
        }
    )
    consumer.subscribe([topic])
    tools = Tools(broker.bootstrap)
    groups = Groups(broker.bootstrap, tools, topic, consumer)
    try:
        have_read(consumer)
        begin_to_share(groups)
        yield groups
    finally:
        consumer.close()
        tools.process.communicate()


def begin_to_share(groups: Groups) -> None:
    deadline, epoch = time.monotonic() + 60, 0
    while True:
        answer = groups.share(epoch)
        assert answer.error_code == 0, answer
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
        assert time.monotonic() < deadline, "the member of the share group was assigned nothing"
        epoch = answer.member_epoch
        time.sleep(0.05)


@pytest.fixture(params=["apache_kafka", "beside"])
def broker(request: pytest.FixtureRequest, kafka_jars: Any) -> Any:
    return request.getfixturevalue(request.param)


VIEWS = (["--offsets"], ["--offsets", "--verbose"], ["--members"], ["--members", "--verbose"])


def test_descriptions(broker: Any) -> None:
    with groups_on(broker) as found:
        for group, tool in ((found.consumers, found.tools.groups), (found.sharers, found.tools.shares)):
            for view in VIEWS:
                shown = theirs(tool("--describe", "--group", group, *view))
                assert shown == like(shown, found.run("--describe", "--group", group, *view)), view
            (state,) = found.run("--describe", "--group", group, "--state")
            words = tool("--describe", "--group", group, "--state", "--verbose").split()
            result = {state["coordinator"].split()[0], state["state"], str(state["members"]), str(state["epoch"])}
            assert result <= set(words)
        types = {row["group"]: row["type"] for row in found.run("--list") if row["group"].startswith(found.topic)}
        assert types == {found.consumers: "consumer", found.sharers: "share"}
        for option, group in (("--share", found.sharers), ("--consumer", found.consumers)):
            assert [row["group"] for row in found.run("--list", option) if row["group"] in types] == [group]


def test_what_is_changed(broker: Any) -> None:
    with groups_on(broker) as found:
        found.consumer.close()
        assert found.share(-1).error_code == 0
        for group, tool in ((found.consumers, found.tools.groups), (found.sharers, found.tools.shares)):
            reset = ("--reset-offsets", "--group", group, "--topic", found.topic, "--to-earliest")
            shown = theirs(tool(*reset, "--dry-run"))
            assert [row["new_offset"] for row in shown] == ["0", "0"]
            assert shown == like(shown, found.run(*reset, "--execute"))
            printed = found.run("--describe", "--group", group)
            assert [row.get("current_offset", row.get("start_offset")) for row in printed] == [0, 0]
        found.run("--delete-offsets", "--group", found.consumers, "--topic", f"{found.topic}:1")
        assert len(found.run("--describe", "--group", found.consumers)) == 1
        found.run("--delete-offsets", "--group", found.sharers, "--topic", found.topic)
        assert found.run("--describe", "--group", found.sharers) == []
        found.run("--delete", "--group", found.consumers, "--group", found.sharers)
        assert not {row["group"] for row in found.run("--list")} & {found.consumers, found.sharers}
