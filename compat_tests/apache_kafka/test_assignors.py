"""Our assignors compute the same assignments as Apache Kafka's, and our metadata hash is equal to Apache Kafka's.

``java/Assignors.java`` calls Apache Kafka's classes. This module makes the groups; each assignment is part of the next.
"""

import json
import random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.groups.assigning import ASSIGNORS, Subscriber
from barnabas.groups.assigning.simple import assign_simply
from barnabas.groups.assigning.topic_hash import group_hash, topic_hash

from .apache import JavaProgram

PROGRAM = "Assignors.java"
ALL = {**ASSIGNORS, "simple": assign_simply}
Topics = dict[str, dict[str, Any]]
Members = dict[str, dict[str, Any]]


def ask(program: JavaProgram, **question: Any) -> Any:
    return json.loads(program.ask(json.dumps(question)))


def ours(assignor: str, topics: Topics, members: Members) -> dict[str, dict[str, list[int]]]:
    """Returns our assignor's result, in the same form."""
    ids = {topic["name"]: bytes.fromhex(topic_id) for topic_id, topic in topics.items()}
    view = {
        bytes.fromhex(topic_id): SimpleNamespace(name=topic["name"], partitions=range(len(topic["partitions"])))
        for topic_id, topic in topics.items()
    }
    subscribers = {
        member_id: Subscriber(
            frozenset(ids[name] for name in member["topics"]),
            instance_id=member["instance"],
            assigned={bytes.fromhex(each): partitions for each, partitions in member["assigned"].items()},
        )
        for member_id, member in members.items()
    }
    found = ALL[assignor](subscribers, view)
    return {
        member_id: {topic_id.hex(): sorted(partitions) for topic_id, partitions in mine.items()}
        for member_id, mine in found.items()
    }


def in_order(answer: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, list[int]]]:
    return {member: {each: sorted(partitions) for each, partitions in mine.items()} for member, mine in answer.items()}


class RandomGroup:
    """A random group: members join, leave and change subscriptions between two assignments."""

    def __init__(self, seed: int, is_homogeneous: bool) -> None:
        self.random = random.Random(seed)
        self.is_homogeneous = is_homogeneous
        self.topics: Topics = {
            self.random.randbytes(16).hex(): {
                "name": f"topic-{self.random.randrange(1000)}-{index}",
                "partitions": [[]] * self.random.choice((0, 1, 2, 3, 7, 16, 40)),
            }
            for index in range(self.random.randint(1, 9))
        }
        self.members: Members = {}
        for _ in range(self.random.choice((1, 2, 3, 8, 30))):
            self.join()

    def some_topics(self) -> list[str]:
        names = [topic["name"] for topic in self.topics.values()]
        return self.random.sample(names, self.random.randint(0, len(names)))

    def join(self) -> None:
        member_id = self.random.randbytes(8).hex()
        topics = self.some_topics()
        if self.is_homogeneous and self.members:
            topics = next(iter(self.members.values()))["topics"]
        instance = f"static-{member_id[:3]}" if self.random.random() < 0.2 else None
        self.members[member_id] = {"topics": topics, "instance": instance, "assigned": {}}

    def change(self) -> None:
        for member_id in [each for each in self.members if self.random.random() < 0.2][: len(self.members) - 1]:
            del self.members[member_id]
        for _ in range(self.random.randint(0, 3)):
            self.join()
        for topic in self.topics.values():
            if self.random.random() < 0.2:
                topic["partitions"] = topic["partitions"] + [[]] * self.random.randint(1, 5)
        topics = self.some_topics()
        for member in self.members.values():
            if self.is_homogeneous:
                member["topics"] = topics
            elif self.random.random() < 0.3:
                member["topics"] = self.some_topics()


def without_unsubscribed_topics(answer: dict[str, Any], group: RandomGroup) -> dict[str, Any]:
    """Returns the assignment without topics to which no member subscribes: ``SimpleAssignor`` fails to revoke those."""
    read = {name for member in group.members.values() for name in member["topics"]}
    return {
        member_id: {each: partitions for each, partitions in mine.items() if group.topics[each]["name"] in read}
        for member_id, mine in answer.items()
    }


@pytest.mark.parametrize("is_homogeneous", [True, False], ids=["same topics", "different topics"])
@pytest.mark.parametrize("assignor", sorted(ALL))
def test_the_same_assignments(java_program: JavaProgram, assignor: str, is_homogeneous: bool) -> None:
    for seed in range(60):
        group = RandomGroup(seed, is_homogeneous)
        for _ in range(6):
            printed = in_order(
                ask(
                    java_program,
                    assignor=assignor,
                    topics=group.topics,
                    members=[{"id": member_id, **member} for member_id, member in group.members.items()],
                )
            )
            if assignor == "simple":
                printed = without_unsubscribed_topics(printed, group)
            assert ours(assignor, group.topics, group.members) == printed, (seed, group.topics, group.members)
            for member_id, assigned in printed.items():
                group.members[member_id]["assigned"] = assigned
            group.change()


def test_the_same_rounding(java_program: JavaProgram) -> None:
    """To ``SimpleAssignor`` 29 / 7 * 7 is 29.000000000000004, so of 7 members the first and the last may have 5."""
    chance = random.Random(29)
    topic_id = chance.randbytes(16).hex()
    for size in range(1, 60):
        topics: Topics = {topic_id: {"name": "topic", "partitions": [[]] * size}}
        for count in range(1, min(size, 20) + 1):
            owners = [chance.randrange(count) if chance.random() < 0.6 else None for _ in range(size)]
            members: Members = {
                f"member-{index}": {
                    "topics": ["topic"],
                    "instance": None,
                    "assigned": {topic_id: [each for each, owner in enumerate(owners) if owner == index]},
                }
                for index in range(count)
            }
            asked = [{"id": member_id, **member} for member_id, member in members.items()]
            printed = in_order(ask(java_program, assignor="simple", topics=topics, members=asked))
            assert ours("simple", topics, members) == printed, (size, count)


def test_the_same_hashes(java_program: JavaProgram) -> None:
    chance = random.Random(1101)
    racks = {1: "a", 2: "b,c", 3: "ü-\U0001d11e", 4: "\uffee", 5: ""}
    brokers = {broker_id: SimpleNamespace(rack=rack) for broker_id, rack in {**racks, 6: None}.items()}
    for size in [0, 1, 2, 3, 8, 50, 400]:
        topics = {
            chance.randbytes(16): SimpleNamespace(
                name=name,
                partitions={
                    index: SimpleNamespace(replicas=tuple(chance.sample(range(1, 8), 3))) for index in range(size)
                },
            )
            for name in ("orders", "a" * 249, f"ü{size}")
        }
        hashed = {
            topic_id.hex(): {
                "name": topic.name,
                "partitions": [
                    [racks[broker] for broker in each.replicas if broker in racks] for each in topic.partitions.values()
                ],
            }
            for topic_id, topic in topics.items()
        }
        hashes = {}
        for topic_id, topic in topics.items():
            topic.id = topic_id
            hashes[topic.name] = topic_hash(topic, brokers)
        assert ask(java_program, topics=hashed) == {**hashes, "": group_hash(hashes)}
