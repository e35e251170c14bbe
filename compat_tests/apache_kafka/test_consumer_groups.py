"""Consumer groups: both brokers write the same records for the same heartbeats, and continue each other's groups.

Must not read files: the content of ``__consumer_offsets`` is fetched from the running broker.
"""

import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compat_tests.running import BarnabasProcess

from . import compare
from .apache import ApacheKafka
from .batches import contents
from .hand_over import SETTINGS as HAND_OVER
from .hand_over import apache_on, barnabas_on, complaints, running
from .play import Play, Step, error_codes
from .scenarios.consumer_groups import beat, enter, leave, listed, shown
from .steps import ask, commit, create, fetch, published

pytestmark = pytest.mark.xdist_group("hand_over")

SETTINGS = {"group.consumer.assignment.interval.ms": "0"}
KEPT_IN = range(3)
MEMBERS = {"a": None, "b": None, "c": "i", "d": "j"}
"""Members, and their instance ids."""

EPOCH, TARGETS, REGEX = 3, 6, 16
"""Records with a hash of topic ids or with times: the number of bytes at the end that differ between brokers."""
OWN_BYTES = {EPOCH: 8, TARGETS: 8, REGEX: 17}

UNORDERED = frozenset().union(
    *(compare.UNORDERED[api] for api in ("ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "JoinGroup", "ListGroups"))
)
"""The arrays of these tests' responses whose order is undefined."""

UNSUPPORTED_VERSION = 35

REFUSALS = (r"\[GroupCoordinator id=1\]", r"Auto topic creation failed for __consumer_offsets .* already exists")


class Client:
    """Sends heartbeats; keeps topic ids and the members' state over a change of brokers."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}
        self.owned: dict[str, Any] = {}

    def ask(self, bootstrap: str, *requests: Any) -> list[Any]:
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "", {"ConsumerGroupHeartbeat": 1, "OffsetCommit": 9})
        run.saved = self.saved
        run.run([each for some in requests for each in (some if isinstance(some, list) else [some])])
        return [answer for _, _, answer in run.transcript]

    def turn(self, bootstrap: str, name: str, what: int) -> Any:
        """Plays one step of a member."""
        member, instance = f"~{name}", {"InstanceId": MEMBERS[name]} if MEMBERS[name] else {}
        step: Step
        if what == 0 or f"${member}.epoch" not in self.saved:
            self.owned.pop(name, None)
            step = enter(member, **instance)
        elif what == 1:
            self.owned.pop(name, None)
            step = leave(member, -2 if instance else -1, **instance)
        elif what < 6:
            step = beat(member, TopicPartitions=self.owned.get(name, []), **instance)
        else:
            step = beat(member, **instance)
        (answer,) = self.ask(bootstrap, step)
        if answer["ErrorCode"]:
            self.saved.pop(f"${member}.epoch", None)
        elif answer["Assignment"] is not None:
            self.owned[name] = answer["Assignment"]["TopicPartitions"]
        return self.without_ids(answer)

    def without_ids(self, answer: Any) -> Any:
        """Returns the answer with names instead of topic ids, without error messages, and with sorted arrays.

        Only the arrays whose order means nothing are sorted.
        """
        names = {topic_id: name for name, topic_id in self.saved.items() if isinstance(topic_id, bytes)}
        if isinstance(answer, dict):
            found = {name: self.without_ids(each) for name, each in answer.items() if name != "ErrorMessage"}
            return {
                name: sorted(each, key=repr) if name in UNORDERED and each else each for name, each in found.items()
            }
        if isinstance(answer, list):
            return [self.without_ids(each) for each in answer]
        return names.get(answer, answer) if isinstance(answer, bytes) else answer

    def everything(self, bootstrap: str) -> Any:
        """Returns the descriptions of the groups."""
        return self.without_ids(self.ask(bootstrap, shown("~g", "~h", "~p"), listed()))

    def records(self, bootstrap: str) -> list[list[tuple[str, str | None]]]:
        """Returns the records of each partition of the log, in order, without what differs between brokers."""
        requests = [fetch("__consumer_offsets", 0, partition=at, v=12, PartitionMaxBytes=1 << 24) for at in KEPT_IN]
        names = {topic_id: name.encode() for name, topic_id in self.saved.items() if isinstance(topic_id, bytes)}
        results = []
        for answer in self.ask(bootstrap, *requests):
            assert error_codes(answer) == {0}
            records = []
            for key, value in contents(answer["Responses"][0]["Partitions"][0]["Records"] or b""):
                assert key is not None
                (kind,) = struct.unpack_from(">h", key)
                if value is not None and kind in OWN_BYTES and len(value) > 12:
                    value = value[: -OWN_BYTES[kind]]
                if value is not None and kind == 1:
                    continue  # offsets, whose records hold times
                for topic_id, name in names.items():
                    value = None if value is None else value.replace(topic_id, name)
                records.append((key.hex(), None if value is None else value.hex()))
            results.append(records)
        return results


def first(client: Client, bootstrap: str) -> list[Any]:
    """Makes topics, a group that stays unchanged, and one that subscribes by a pattern."""
    client.ask(bootstrap, ask("FindCoordinator", v=4, KeyType=0, CoordinatorKeys=["~g"]))
    client.ask(bootstrap, create("~t", 5), create("~u", 2), published())
    found = client.ask(bootstrap, commit(GroupId="~h"), enter("~h", "~u", GroupId="~h", ServerAssignor="range"))
    found += client.ask(bootstrap, enter("~p", SubscribedTopicRegex="~u.*", GroupId="~p"))
    # Apache Kafka resolves a pattern in the background.
    found += client.ask(bootstrap, beat("~p", GroupId="~p", until=("Assignment.TopicPartitions.0.Partitions", [0, 1])))
    return [client.without_ids(answer) for answer in found]


def test_both_write_the_same_and_continue_each_others(kafka_jars: Path, tmp_path: Path) -> None:
    """Both run the same steps; then each continues on the other's directory, twice."""
    homes = [tmp_path / "one", tmp_path / "other"]
    clients = [Client(), Client()]
    brokers: list[Any] = [apache_on(homes[0], SETTINGS), barnabas_on(homes[1], SETTINGS)]
    known: list[Any] = [None, None]
    for turn in range(2):
        seen = []
        for at in (0, 1):
            with running(brokers[at], kill=turn == 0 and isinstance(brokers[at], BarnabasProcess)) as bootstrap:
                client, chance = clients[at], Random(turn)
                answers = first(client, bootstrap) if turn == 0 else []
                if turn:
                    assert client.everything(bootstrap) == known[at]
                for _ in range(60):
                    name, what = chance.choice(list(MEMBERS)), chance.randrange(12)
                    answers.append((name, what, client.turn(bootstrap, name, what)))
                known[at] = client.everything(bootstrap)
                seen.append((answers, known[at], client.records(bootstrap)))
        assert seen[0][0] == seen[1][0]
        assert seen[0][1:] == seen[1][1:]
        logs = [each.log for each in brokers if isinstance(each, ApacheKafka)]
        assert [line for log in logs for line in complaints(log, REFUSALS)] == []
        of_apache = 0 if isinstance(brokers[0], ApacheKafka) else 1
        brokers[1 - of_apache], brokers[of_apache] = (
            apache_on(homes[1 - of_apache], SETTINGS),
            barnabas_on(homes[of_apache], SETTINGS),
        )


@pytest.mark.parametrize(
    ("settings", "levels"),
    [({}, {"group.version": 0}), ({"group.coordinator.rebalance.protocols": "classic"}, {})],
    ids=["by the feature's level", "by a config"],
)
def test_where_they_are_not_served(
    kafka_jars: Path, tmp_path: Path, settings: dict[str, str], levels: dict[str, int]
) -> None:
    theirs = apache_on(tmp_path / "apache", settings, features=levels)
    ours = BarnabasProcess(tmp_path / "ours", {**HAND_OVER, **settings}, levels)
    results = []
    for broker in (theirs, ours):
        with running(broker) as bootstrap:
            found = ask("FindCoordinator", v=4, quiet=True, KeyType=0, CoordinatorKeys=["~g"])
            results.append(Client().ask(bootstrap, found, enter("~a"), leave("~a"), leave(""), shown("~g", "")))
    assert results[0] == results[1]
    assert {code for answer in results[0] for code in error_codes(answer)} == {UNSUPPORTED_VERSION}
