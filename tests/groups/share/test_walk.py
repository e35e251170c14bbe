"""Share groups under random steps: they become stable, every partition is assigned, and the log has their state."""

import random
import string

import pytest

from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.state_metadata import StateMetadata
from tests.groups.share.share_world import World

MEMBERS = string.ascii_lowercase[:6]
TOPICS = ("t", "u", "v")
ROUNDS = 12
"""Rounds of heartbeats within which a group becomes stable."""


class Walker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = World(quiet=True)
        self.done: list[str] = []
        self.epoch = 0

    def do(self, line: str) -> None:
        self.done.append(line)
        self.world.command(line)

    def step(self) -> None:
        """Runs one random step."""
        choice = self.random.choice
        there = sorted(self.world.image.topics_by_name)
        name, topics = choice(MEMBERS), self.random.sample(TOPICS, self.random.randint(1, len(TOPICS)))
        moves = {
            f"join {name} {' '.join(topics)}": 6,
            f"beat {name}": 12,
            f"beat {name} topics={'+'.join(topics)}": 3,
            f"beat {name} epoch={self.random.randint(1, 9)}": 1,
            f"leave {name}": 3,
            f"advance {choice(('10ms', '1s', '1s', '5s', '31s', '46s'))}": 6,
            f"topic {choice(TOPICS)} {self.random.randint(1, 4)}": 3,
            f"drop {choice(there)}" if there else "beat a": 1,
            f"alter {choice(there)}-0={self.random.randint(-1, 9)}" if there else "beat a": 2,
            f"forget {choice(there)}" if there else "beat a": 1,
            "delete": 1,
            "expire": 1,
            choice(("persister fails", "persister works", "persister waits", "persister answers")): 3,
            choice(("break", "mend", "mend")): 1,
            choice(("hold", "release", "release")): 1,
            "restart": 1,
        }
        line = self.random.choices(list(moves), list(moves.values()))[0]
        verb, *words = line.split()
        if verb == "topic":
            image = self.world.image.topics_by_name
            if words[0] in image and len(image[words[0]].partitions) >= int(words[1]):
                return  # topics do not shrink
        self.do(line)

    # ---------------------------------------------------------------- what must be

    def check(self) -> None:
        group = self.world.group()
        if group is None:
            self.epoch = 0
            return
        assert group.epoch >= self.epoch, "an epoch goes back"
        self.epoch = group.epoch
        assert group.assignment_epoch <= group.epoch
        assert set(group.target) <= set(group.members)
        for member in group.members.values():
            assert member.epoch <= group.assignment_epoch
            assert set(member.assigned) <= set(self.world.names)
            names = {self.world.names[each] for each in member.assigned}
            assert names <= set(member.subscribed_topic_names), f"{member} reads what it does not want"
        if self.world.held is None and self.world.persister.held is None:
            for topic_id, topic in group.state.initialized.items():
                for index in topic.partitions:
                    assert ("g", topic_id, index) in self.world.persister.kept, f"{topic} has no state"
            assert self.forgotten_by(group) == set(), "state that nobody knows of"

    def forgotten_by(self, group: ShareGroup | None) -> set[tuple[bytes, int]]:
        """Returns the partitions with state that their group does not know of."""
        kept = {(topic_id, index) for _, topic_id, index in self.world.persister.kept}
        known = group.state if group is not None else StateMetadata()
        named = {(topic_id, index) for topic_id, indexes in known.partitions().items() for index in indexes}
        there = self.world.image.topics_by_id
        return {at for at in kept - named if at[0] in there and at[0] not in known.deleting}

    def check_replay(self) -> None:
        """Checks that a replay of the log gives the same state."""
        again = World(quiet=True)
        again.image, again.names = self.world.image, self.world.names
        again.replay(self.world.log)
        now, then = self.world.group(), again.group()
        assert (now is None) == (then is None)
        if now is not None and then is not None:
            assert state_of(now) == state_of(then)

    def settle(self) -> None:
        """Ends all failures, and sends heartbeats of all members."""
        for line in ("mend", "release", "persister works", "persister answers", "topic w"):
            self.do(line)
        silent = 0
        for _ in range(ROUNDS):
            written = len(self.world.log)
            group = self.world.group()
            for name in sorted(group.members if group is not None else ()):
                self.world.epochs["g", name] = group.members[name].epoch
                self.do(f"beat {name}")
            silent = silent + 1 if len(self.world.log) == written else 0
            if silent == 2:
                break
            self.do("advance 16s")
        assert silent == 2, "it does not come to rest"
        self.check_settled()

    def check_settled(self) -> None:
        group = self.world.group()
        if group is None or group.is_empty:
            return
        assert group.epoch == group.assignment_epoch
        assert not group.initializing_since_ms
        assert set(group.state.partitions()) <= set(self.world.image.topics_by_id)
        read: set[tuple[bytes, int]] = set()
        for name, member in group.members.items():
            assert member.epoch == group.epoch
            assert member.assigned == group.target[name]
            read.update((topic_id, index) for topic_id, indexes in member.assigned.items() for index in indexes)
        image = self.world.image
        wanted = {
            (topic.id, index)
            for name in group.subscribed_topic_names()
            if (topic := image.topics_by_name.get(name)) is not None
            for index in topic.partitions
        }
        assert read == wanted, "not all that is subscribed to is read"
        assert all(("g", *at) in self.world.persister.kept for at in wanted)

    def end(self) -> None:
        """Expires all sessions, deletes the group, and checks that its state is deleted."""
        self.do("restart")
        self.do("advance 2m")
        group = self.world.group()
        assert group is None or group.is_empty
        self.do("delete")
        assert self.world.group() is None
        assert self.forgotten_by(None) == set()


def state_of(group: ShareGroup) -> dict[str, object]:
    names = ("epoch", "metadata_hash", "assignment_epoch", "assigned_at_ms", "members", "target", "state")
    return {name: getattr(group, name) for name in names}


@pytest.mark.parametrize("seed", range(24))
def test_a_walk_settles(seed: int) -> None:
    walker = Walker(seed)
    try:
        for number in range(160):
            walker.step()
            walker.check()
            if number % 40 == 39:
                walker.check_replay()
        walker.settle()
        walker.check_replay()
        walker.end()
    except Exception as error:
        raise AssertionError(f"after {walker.done}") from error
