"""Commits, transactional commits of several producers, ends and restarts in random order, compared with a model."""

from hypothesis import given
from hypothesis import strategies as st

from tests.groups.offsets_model import Model
from tests.stable_offsets import stable_offsets

GROUPS, PARTITIONS, PRODUCERS = ("g", "h"), (0, 1), (1, 2)

groups, partitions, producers = map(st.sampled_from, (GROUPS, PARTITIONS, PRODUCERS))
actions = st.one_of(
    st.tuples(st.just("commit"), groups, partitions),
    st.tuples(st.just("commit by"), groups, partitions, producers),
    st.tuples(st.just("commit by"), groups, partitions, producers),
    st.tuples(st.just("commit by"), groups, partitions, producers),
    st.tuples(st.just("end"), producers, st.just(True)),
    st.tuples(st.just("end"), producers, st.booleans()),
    st.tuples(st.just("forget"), groups, partitions),
    st.tuples(st.just("delete"), groups),
    st.tuples(st.sampled_from(("restart", "hold", "release"))),
)


class Comparison:
    """The coordinator and the model, which get the same commands."""

    def __init__(self, world):
        self.world = world
        self.model = Model()
        self.values = 0
        self.is_held = False

    def do(self, action):
        verb, *arguments = action
        getattr(self, verb.replace(" ", "_"))(*arguments)
        if not self.is_held:
            self.compare()

    def compare(self):
        coordinator = self.world.coordinator
        for group in GROUPS:
            committed, pending = stable_offsets(coordinator, group)
            found = committed.get("t", {})
            assert {partition: each.offset for partition, each in found.items()} == self.model.committed(group)
            assert {partition for _, partition in pending} == self.model.unstable(group)
            if found or self.model.unstable(group):
                assert group in [each.group_id for each in coordinator.list_groups()]

    def commit(self, group, partition):
        self.values += 1
        self.world.command(f"commit group={group} t-{partition}={self.values}")
        self.model.write(group, partition, self.values)

    def commit_by(self, group, partition, producer):
        self.values += 1
        self.world.command(f"commit by={producer} group={group} t-{partition}={self.values}")
        self.model.write(group, partition, self.values, producer)

    def end(self, producer, is_commit):
        self.world.command(f"end {producer} {'commit' if is_commit else 'abort'}")
        self.model.end(producer, is_commit)

    def forget(self, group, partition):
        if not self.is_held and self.world.command(f"forget group={group} t-{partition}") != "GROUP_ID_NOT_FOUND":
            self.model.forget(group, partition)

    def delete(self, group):
        if not self.is_held and self.world.command(f"delete {group}") != "GROUP_ID_NOT_FOUND":
            self.model.forget(group)

    def restart(self):
        self.release()
        self.world.command("restart")

    def hold(self):
        if not self.is_held:
            self.world.command("hold")
            self.is_held = True

    def release(self):
        if self.is_held:
            self.world.command("release")
            self.is_held = False


@given(st.lists(actions, min_size=12, max_size=40))
def test_the_log_alone_decides(new_world, expected):
    beside = Comparison(new_world())
    for action in expected:
        beside.do(action)
    beside.restart()
    beside.compare()
