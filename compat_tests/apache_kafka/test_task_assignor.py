"""Our task assignor computes the same assignment as Apache Kafka's for the same members, tasks and previous tasks.

``java/StickyTasks.java`` calls Apache Kafka's classes. This module makes the groups; each assignment is part of the
next.
"""

import json
import random
from collections.abc import Mapping
from typing import Any

from barnabas.groups.streams.configuring import ConfiguredSubtopology, InternalTopic
from barnabas.groups.streams.sticky import MemberSpec, assign
from barnabas.groups.streams.tasks import Target, tasks_of

from .apache import JavaProgram

PROGRAM = "StickyTasks.java"

Listed = Mapping[str, list[int]]


def listed(tasks: Mapping[str, frozenset[int]]) -> Listed:
    return {each: sorted(tasks[each]) for each in sorted(tasks)}


class RandomGroup:
    """A random group: members and tasks are added and removed between two assignments."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.standbys = self.random.choice((0, 0, 1, 1, 2, 5))
        self.subtopologies = {str(each): self.subtopology() for each in range(self.random.randint(1, 5))}
        self.processes = [f"process-{self.random.randrange(10_000)}" for _ in range(self.random.randint(1, 8))]
        self.members: dict[str, dict[str, Any]] = {}
        for _ in range(self.random.choice((1, 2, 3, 5, 13, 30))):
            self.join()

    def subtopology(self) -> dict[str, Any]:
        return {"tasks": self.random.choice((1, 2, 3, 4, 7, 20)), "stateful": self.random.random() < 0.6}

    def join(self) -> None:
        member = {"process": self.random.choice(self.processes), "active": {}, "standby": {}}
        self.members[self.random.randbytes(8).hex()] = member

    def change(self) -> None:
        for member_id in [each for each in self.members if self.random.random() < 0.25][: len(self.members) - 1]:
            del self.members[member_id]
        for _ in range(self.random.randint(0, 4)):
            self.join()
        if self.random.random() < 0.2:
            self.subtopologies[self.random.choice(sorted(self.subtopologies))] = self.subtopology()
        if self.random.random() < 0.2:
            self.standbys = self.random.randint(0, 3)

    def question(self) -> dict[str, Any]:
        members = [{"id": member_id, **member} for member_id, member in self.members.items()]
        return {"standbys": self.standbys, "subtopologies": self.subtopologies, "members": members}

    def ours(self) -> dict[str, list[Listed]]:
        changelog = {"c": InternalTopic("c", 1, 1, ())}
        subtopologies = {
            each: ConfiguredSubtopology(
                found["tasks"], frozenset(), {}, frozenset(), changelog if found["stateful"] else {}
            )
            for each, found in sorted(self.subtopologies.items())
        }
        specs = {
            member_id: MemberSpec(
                member["process"], Target(tasks_of(member["active"].items()), tasks_of(member["standby"].items()))
            )
            for member_id, member in self.members.items()
        }
        found = assign(specs, subtopologies, self.standbys)
        return {member_id: [listed(target.active), listed(target.standby)] for member_id, target in found.items()}


def test_the_same_tasks(java_program: JavaProgram) -> None:
    for seed in range(150):
        group = RandomGroup(seed)
        for _ in range(6):
            found = json.loads(java_program.ask(json.dumps(group.question())))
            assert group.ours() == found, (seed, group.question())
            for member_id, (active, standby) in found.items():
                group.members[member_id] |= {"active": active, "standby": standby}
            group.change()
