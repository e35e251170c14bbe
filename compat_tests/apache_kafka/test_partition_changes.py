"""Our builder of partition changes and our replica placer give the same results as Apache Kafka's.

``java/PartitionChanges.java`` calls Apache Kafka's classes; this module has the random inputs.
"""

import json
import random
from typing import Any

import pytest

from barnabas.cluster.controller.partition_changes import PartitionChange, Terms
from barnabas.cluster.controller.placement import place
from barnabas.cluster.image.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from barnabas.errors import InvalidReplicationFactor

from .apache import JavaProgram

PROGRAM = "PartitionChanges.java"

ELECTIONS = ("PREFERRED", "ONLINE", "UNCLEAN")

Question = dict[str, Any]


def ask(program: JavaProgram, question: Question) -> Any:
    return json.loads(program.ask(json.dumps(question)))


# ---------------------------------------------------------------- changes of partitions


class Fixed(Terms):
    """Terms from the test case, instead of registrations and configs."""

    def __init__(self, question: Question) -> None:
        self.image = MetadataImage(features={"metadata.version": question["level"]})
        self.keeps_eligible = question["keeps_eligible"]
        self._question = question

    def min_insync_replicas(self, topic: TopicImage) -> int:
        found: int = self._question["min_isr"]
        return found

    def may_lead(self, replica: int, partition: PartitionImage) -> bool:
        return replica in self._question["acceptable"]


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def ours(question: Question) -> Question | None:
    found, wanted = question["partition"], question["wanted"]
    partition = PartitionImage(
        tuple(found["replicas"]), tuple(found["isr"]), tuple(found["removing"]), tuple(found["adding"]),
        found["leader"], 5, 7, tuple(map(uuid, found["directories"])), tuple(found["elr"]),
        tuple(found["last_known_elr"]), found["leader_recovery_state"],
    )  # fmt: skip
    change = PartitionChange(TopicImage("orders", bytes(16), {3: partition}), 3, Fixed(question))
    for name, value in wanted.items():
        setattr(change, name, ELECTIONS.index(value) if name == "election" else value)
    record = change.record()
    if record is None:
        return None
    shown = {
        name: getattr(record, name)
        for name in (
            "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state",
            "eligible_leader_replicas", "last_known_elr",
        )
    }  # fmt: skip
    directories = record.directories
    shown["directories"] = None if directories is None else [int.from_bytes(each, "big") for each in directories]
    return shown


def some(chance: random.Random, of: list[int]) -> list[int]:
    return chance.sample(of, chance.randint(0, len(of)))


def a_change(chance: random.Random) -> Question:
    """Returns a partition in any state that Apache Kafka's controller can produce, and a change that it can make."""
    replicas = chance.sample(range(1, 8), chance.randint(1, 5))
    isr = some(chance, replicas)
    keeps_eligible = chance.random() < 0.7
    elr = sorted(some(chance, [each for each in replicas if each not in isr])) if keeps_eligible else []
    moves = chance.random() < 0.3
    removing = sorted(some(chance, replicas[1:])) if moves else []
    adding = sorted(some(chance, [each for each in replicas if each not in removing])) if moves else []
    partition = {
        "replicas": replicas,
        "directories": [chance.choice((0, 1, 500, 501)) for _ in replicas],
        "isr": isr,
        "removing": removing,
        "adding": adding,
        "elr": elr,
        "last_known_elr": [chance.choice(replicas)] if keeps_eligible and chance.random() < 0.4 else [],
        "leader": chance.choice([*(isr or replicas), -1]),
        "leader_recovery_state": int(chance.random() < 0.2),
    }
    return {
        "partition": partition,
        "wanted": wanted(chance, partition),
        "acceptable": some(chance, list(range(1, 8))),
        "level": chance.choice((7, 11, 12, 16, 17, 23, 30)),
        "min_isr": chance.randint(1, 3),
        "keeps_eligible": keeps_eligible,
    }


def wanted(chance: random.Random, partition: Question) -> Question:
    found: Question = {"election": chance.choice(ELECTIONS)}
    kind = chance.choice(("elect", "alter", "leave", "crash", "move", "cancel"))
    replicas, isr = partition["replicas"], partition["isr"]
    if kind == "alter":
        found["isr"] = some(chance, replicas) or replicas[:1]
        found["leader_recovery_state"] = 0
    elif kind in ("leave", "crash"):
        broker_id = chance.choice(replicas)
        found["isr"] = [each for each in isr if each != broker_id]
        if kind == "crash":
            found["stopped_uncleanly"] = broker_id
    elif kind == "move":
        target = chance.sample(range(1, 8), chance.randint(1, 4))
        removing = sorted(set(replicas) - set(target))
        found["replicas"] = [*target, *removing]
        found |= {"removing": removing} if removing else {}
        found |= {"adding": adding} if (adding := sorted(set(target) - set(replicas))) else {}
    elif kind == "cancel":
        found["replicas"] = [each for each in replicas if each not in partition["adding"]] or replicas
        found["isr"] = [each for each in isr if each in found["replicas"]] or found["replicas"][:1]
        found |= {"removing": [], "adding": []}
    return found


def without_removed_replicas(change: Question | None, question: Question) -> Question | None:
    """Returns a change in which no removed replica is eligible: Apache Kafka's controller leaves it in the ELR."""
    before = question["partition"]
    if change is None:
        return None
    elr = before["elr"] if change["eligible_leader_replicas"] is None else change["eligible_leader_replicas"]
    replicas = before["replicas"] if change["replicas"] is None else change["replicas"]
    kept = [each for each in elr if each in replicas]
    if kept == elr:
        return change
    return {**change, "eligible_leader_replicas": None if kept == before["elr"] else kept}


@pytest.mark.parametrize("seed", range(4))
def test_partitions_change_as_apache_kafkas_do(java_program: JavaProgram, seed: int) -> None:
    chance = random.Random(seed)
    changes = 0
    for _ in range(5000):
        question = a_change(chance)
        if question["wanted"].get("stopped_uncleanly") in question["acceptable"]:
            question["acceptable"].remove(question["wanted"]["stopped_uncleanly"])  # as the controller calls it
        theirs = ask(java_program, question)
        assert ours(question) == without_removed_replicas(theirs, question), json.dumps(question)
        changes += theirs is not None
    assert changes > 2000


# ---------------------------------------------------------------- placement


class Drawn(random.Random):
    """Draws the same number each time, within the range, so that the order of draws has no effect."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self.number % start


def a_cluster(chance: random.Random) -> Question:
    racks = chance.choice(([None], ["a", "b"], ["a", "b", "c"], [None, "a", "b"], list("abcdef")))
    ids = chance.sample(range(1, 40), chance.randint(1, 12))
    brokers = [{"id": each, "rack": chance.choice(racks), "fenced": chance.random() < 0.25} for each in ids]
    factor = chance.randint(1, min(len(ids) + 1, 5))
    return {
        "brokers": brokers, "partitions": chance.randint(1, 30), "replication_factor": factor,
        "drawn": chance.randrange(1000),
    }  # fmt: skip


def test_replicas_are_placed_as_apache_kafkas_are(java_program: JavaProgram) -> None:
    chance = random.Random(1)
    for _ in range(3000):
        question = a_cluster(chance)
        theirs = ask(java_program, question)
        brokers = {
            each["id"]: BrokerImage(each["id"], 0, bytes(16), {}, each["rack"], each["fenced"])
            for each in question["brokers"]
        }
        found: Any
        try:
            placed = place(brokers, question["partitions"], question["replication_factor"], Drawn(question["drawn"]))
            found = [list(replicas) for replicas in placed]
        except InvalidReplicationFactor as refusal:
            found = str(refusal)
        assert found == theirs, json.dumps(question)
