"""Streams groups on both brokers: each continues from the other's records, and writes the same afterwards.

Must not read files: the content of ``__consumer_offsets`` is fetched from the running broker.
"""

import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .batches import contents
from .hand_over import SETTINGS as HAND_OVER
from .hand_over import apache_on, barnabas_on, complaints, running
from .play import Play, error_codes
from .scenarios.streams import BEAT, SHOWN, beat, enter, internal, listed, shown, subtopology
from .steps import ask, create, fetch, flat, ready

pytestmark = pytest.mark.xdist_group("hand_over")

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
KEPT_IN = range(3)
MEMBERS = {"a": "~p", "b": "~p", "c": "~q", "d": "~r"}
"""Members, and their processes."""

TOPOLOGY = [
    subtopology(RepartitionSinkTopics=["~r"], StateChangelogTopics=[internal("~c", cleanup_policy="compact")]),
    subtopology("1", [], RepartitionSourceTopics=[internal("~r")]),
]

GROUP, TARGETS = 17, 20
"""Records with values that differ between brokers: the hash of topics with their ids, and the time of an assignment."""
OWN_BYTES = {GROUP: slice(6, 14), TARGETS: slice(-8, None)}

UNSUPPORTED_VERSION = 35

REFUSALS = (
    r"\[GroupCoordinator id=1\]",
    r"Auto topic creation failed for __consumer_offsets .* already exists",
    r"There is not enough available capacity",
)
"""Warnings of Apache Kafka: refused heartbeats, and standby tasks for which there are too few processes."""


class Client:
    """Sends heartbeats; keeps the members' state over a change of brokers."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}
        self.owned: dict[str, dict[str, Any]] = {}

    def ask(self, bootstrap: str, *requests: Any) -> list[Any]:
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "", {BEAT: 0, SHOWN: 0})
        run.saved = self.saved
        run.run(list(flat(requests)))
        return [answer for _, _, answer in run.transcript]

    def turn(self, bootstrap: str, name: str, what: int) -> Any:
        """Plays one step of a member."""
        member = f"~{name}"
        if what == 0 or f"${member}.epoch" not in self.saved:
            self.owned.pop(name, None)
            step = enter(member, *TOPOLOGY, ProcessId=MEMBERS[name])
        elif what == 1:
            step = beat(member, -1)
        elif what < 8 and name in self.owned:
            step = beat(member, **self.owned[name])
        else:
            step = beat(member)
        (answer,) = self.ask(bootstrap, step)
        if answer["ErrorCode"] or what == 1:
            self.saved.pop(f"${member}.epoch", None)
        elif answer["ActiveTasks"] is not None:
            self.owned[name] = {each: answer[each] for each in ("ActiveTasks", "StandbyTasks", "WarmupTasks")}
        return {name: each for name, each in answer.items() if name != "ErrorMessage"}

    def everything(self, bootstrap: str) -> Any:
        """Returns the description of the group, without its topology, whose partition counts are known after a
        heartbeat.
        """
        described, groups = self.ask(bootstrap, shown("~g"), listed())
        for group in described["Groups"]:
            group.pop("Topology")
            group["Members"].sort(key=lambda member: member["MemberId"])
        return described, groups

    def records(self, bootstrap: str) -> list[list[tuple[str, str | None]]]:
        """Returns the records of each partition of the log, in order, without what differs between brokers."""
        requests = [fetch("__consumer_offsets", 0, partition=at, v=12, PartitionMaxBytes=1 << 24) for at in KEPT_IN]
        results = []
        for answer in self.ask(bootstrap, *requests):
            assert error_codes(answer) == {0}
            records = []
            for key, value in contents(answer["Responses"][0]["Partitions"][0]["Records"] or b""):
                assert key is not None
                (kind,) = struct.unpack_from(">h", key)
                if value is not None and kind in OWN_BYTES:
                    blanked = bytearray(value)
                    blanked[OWN_BYTES[kind]] = bytes(8)
                    value = bytes(blanked)
                records.append((key.hex(), None if value is None else value.hex()))
            results.append(records)
        return results


def first(client: Client, bootstrap: str) -> None:
    """Makes topics, and a member that waits for the internal ones, and leaves."""
    client.ask(
        bootstrap,
        ask("FindCoordinator", v=4, KeyType=0, CoordinatorKeys=["~g"]),
        create("~t", 5),
        enter("~first", *TOPOLOGY),
        ready("~r", 5),
        ready("~c", 5),
        beat("~first", until=("Status", [])),
        beat("~first", -1),
    )


def test_both_write_the_same_and_continue_each_others(kafka_jars: Path, tmp_path: Path) -> None:
    """Both run the same steps; then each continues on the other's directory."""
    homes = [tmp_path / "one", tmp_path / "other"]
    clients = [Client(), Client()]
    brokers: list[Any] = [apache_on(homes[0], SETTINGS), barnabas_on(homes[1], SETTINGS)]
    known: list[Any] = [None, None]
    for turn in range(2):
        seen = []
        for at in (0, 1):
            with running(brokers[at], kill=turn == 0 and isinstance(brokers[at], BarnabasProcess)) as bootstrap:
                client, chance = clients[at], Random(turn)
                if turn:
                    assert client.everything(bootstrap) == known[at]
                else:
                    first(client, bootstrap)
                answers = []
                for _ in range(100):
                    name, what = chance.choice(list(MEMBERS)), chance.randrange(12)
                    answers.append((name, what, client.turn(bootstrap, name, what)))
                known[at] = client.everything(bootstrap)
                seen.append((answers, known[at], client.records(bootstrap)))
        for one, other in zip(seen[0][0], seen[1][0], strict=True):
            assert one == other
        assert seen[0][1] == seen[1][1]
        assert seen[0][2] == seen[1][2]
        logs = [each.log for each in brokers if isinstance(each, ApacheKafka)]
        assert [line for log in logs for line in complaints(log, REFUSALS)] == []
        brokers = [barnabas_on(homes[0], SETTINGS), apache_on(homes[1], SETTINGS)]


def test_where_they_are_not_served(kafka_jars: Path, tmp_path: Path) -> None:
    levels = {"streams.version": 0}
    theirs = apache_on(tmp_path / "apache", features=levels)
    ours = BarnabasProcess(tmp_path / "ours", HAND_OVER, levels)
    results = []
    for broker in (theirs, ours):
        with running(broker) as bootstrap:
            results.append(Client().ask(bootstrap, enter("~a"), beat("~a", -1), beat("~a", 1), shown("~g"), shown("")))
    assert results[0] == results[1]
    assert {code for answer in results[0] for code in error_codes(answer)} == {UNSUPPORTED_VERSION}
