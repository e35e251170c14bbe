"""The state of share partitions: both brokers write the same records for the same requests, and read each other's.

Must not read files: the content of ``__share_group_state`` is fetched from the running broker.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .batches import contents
from .hand_over import apache_on, barnabas_on, complaints, running
from .play import Play, Step, error_codes
from .share_state_steps import delete, found, initialize, read, summary, write
from .steps import create, fetch

pytestmark = pytest.mark.xdist_group("hand_over")

SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "4",
}
KEPT_IN = range(3)
GROUPS, PLACES = ("~g", "~h"), [("~t", 0), ("~t", 1), ("~u", 1)]

SNAPSHOT, UPDATE = 0, 1
TIMES = slice(22, 38)
"""The times in a snapshot's value: of its creation, and of its last write."""

REFUSALS = (
    r"(ERROR|WARN) org\.apache\.kafka\.coordinator\.share\.ShareCoordinatorShard",
    r"Auto topic creation failed for __share_group_state .* already exists",
)
"""Its log lines about each refused request, and about the second creation of the topic."""

Row = tuple[int, str, bytes, bytes | None]
"""A record without what differs from run to run: its type, its share partition, and its value."""


def steps(seed: int, count: int) -> list[Step]:
    """Returns requests of all kinds, by leaders and in states of growing epochs, some of which are outdated."""
    chance = Random(seed)
    made = []
    for _ in range(count):
        group, place = chance.choice(GROUPS), chance.choice(PLACES)
        leader, state = (chance.choice((-1, *range(seed, seed + 3))) for _ in range(2))
        what = chance.randrange(12)
        if what == 0:
            made.append(initialize(place, group=group, state=state, start=chance.randrange(-1, 50), v=0))
        elif what == 1:
            made.append(delete(place, group=group, v=0) if chance.random() < 0.3 else summary(place, group=group, v=1))
        elif what < 4:
            made.append(read(place, group=group, leader=leader, v=0))
        else:
            start = chance.choice((-1, chance.randrange(60)))
            more = {"start": start, "done": chance.randrange(-1, 9), "batches": batches(chance)}
            made.append(write(place, group=group, state=state, leader=leader, v=chance.randrange(2), **more))
    return made


def batches(chance: Random) -> list[tuple[int, int, int, int]]:
    found = []
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        first = chance.randrange(60)
        found.append((first, first + chance.randrange(12), chance.choice((0, 2, 4)), chance.randrange(1, 4)))
    return found


def everything() -> list[Step]:
    return [
        make(place, group=group, v=version)
        for group in GROUPS
        for place in PLACES
        for make, version in ((read, 0), (summary, 1))
    ]


class Client:
    """Plays steps; the topics' ids stay the same when the broker changes."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}

    def play(self, bootstrap: str, requests: Sequence[Step]) -> list[Any]:
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "", {"FindCoordinator": 6})
        run.saved = self.saved
        run.run(requests)
        return [self.without_ids(answer) for _, _, answer in run.transcript]

    def without_ids(self, answer: Any) -> Any:
        """Returns the response by the names of topics, and without the messages of errors."""
        names = {topic_id: name for name, topic_id in self.saved.items()}
        if isinstance(answer, dict):
            return {name: self.without_ids(each) for name, each in answer.items() if name != "ErrorMessage"}
        if isinstance(answer, list):
            return [self.without_ids(each) for each in answer]
        return names.get(answer, answer) if isinstance(answer, bytes) else answer

    def records(self, bootstrap: str) -> dict[str, list[Row]]:
        """Returns the records of each share partition in the log, in order."""
        requests = [
            fetch("__share_group_state", 0, partition=index, v=12, PartitionMaxBytes=1 << 24) for index in KEPT_IN
        ]
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "", {})
        run.run(requests)
        shown: dict[str, list[Row]] = {}
        for _, _, answer in run.transcript:
            assert error_codes(answer) == {0}
            for key, value in contents(answer["Responses"][0]["Partitions"][0]["Records"] or b""):
                assert key is not None
                kind, size = struct.unpack_from(">hh", key)
                group, topic_id = key[4 : 4 + size].decode(), key[4 + size : 20 + size]
                whose = f"{group} {self.without_ids(topic_id)} {key[20 + size :].hex()}"
                if kind == SNAPSHOT and value is not None:
                    value = value[: TIMES.start] + value[TIMES.stop :]
                shown.setdefault(whose, []).append((kind, whose, key[:2], value))
        return shown


def test_both_write_the_same_and_read_each_others(kafka_jars: Path, tmp_path: Path) -> None:
    """Both run the same steps; then each continues on the other's directory, which may not have been closed."""
    homes = [tmp_path / "one", tmp_path / "other"]
    clients = [Client(), Client()]
    brokers: list[Any] = [apache_on(homes[0], SETTINGS), barnabas_on(homes[1], SETTINGS)]
    known: list[Any] = [None, None]
    for turn in range(2):
        first = [create("~t", 2), create("~u", 2), found()] if turn == 0 else []
        walk = [*flat(first), *steps(seed=turn, count=150)]
        seen = []
        for at in (0, 1):
            with running(brokers[at], kill=turn == 0 and isinstance(brokers[at], BarnabasProcess)) as bootstrap:
                client = clients[at]
                if turn:
                    assert client.play(bootstrap, everything()) == known[at]
                answers = client.play(bootstrap, walk)
                known[at] = client.play(bootstrap, everything())
                seen.append((answers, known[at], client.records(bootstrap)))
        assert seen[0] == seen[1]
        assert {kind for entry in seen[0][2].values() for kind, *_ in entry} == {SNAPSHOT, UPDATE}
        logs = [each.log for each in brokers if isinstance(each, ApacheKafka)]
        assert [line for log in logs for line in complaints(log, REFUSALS)] == []
        of_apache = 0 if isinstance(brokers[0], ApacheKafka) else 1
        brokers[1 - of_apache], brokers[of_apache] = (
            apache_on(homes[1 - of_apache], SETTINGS),
            barnabas_on(homes[of_apache], SETTINGS),
        )


def flat(requests: Sequence[Any]) -> list[Step]:
    return [each for some in requests for each in (some if isinstance(some, list) else [some])]
