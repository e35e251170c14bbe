"""The properties of every assignment of tasks. compat_tests compares each with Apache Kafka's own assignor."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.streams.configuring import ConfiguredSubtopology, InternalTopic
from barnabas.groups.streams.sticky import MemberSpec, assign
from barnabas.groups.streams.tasks import NO_TARGET

CHANGELOG = {"c": InternalTopic("c", 1, 1, ())}

subtopologies = st.dictionaries(st.sampled_from("0123"), st.tuples(st.integers(1, 9), st.booleans()), min_size=1)
members = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.sampled_from("pqr"), min_size=1, max_size=12)


def configured(outcomes):
    return {
        each: ConfiguredSubtopology(tasks, frozenset(), {}, frozenset(), CHANGELOG if is_stateful else {})
        for each, (tasks, is_stateful) in sorted(outcomes.items())
    }


def tasks(role):
    return [(subtopology, each) for subtopology, partitions in role.items() for each in partitions]


@given(subtopologies, members, members, st.integers(0, 2))
def test_every_task_is_run_once_and_no_process_has_two_copies(expected, former, now, standbys):
    topology = configured(expected)
    before = assign({each: MemberSpec(process, NO_TARGET) for each, process in former.items()}, topology, standbys)
    specs = {each: MemberSpec(process, before.get(each, NO_TARGET)) for each, process in now.items()}
    found = assign(specs, topology, standbys)
    assert found.keys() == now.keys()
    every = {(each, at) for each, (count, _) in expected.items() for at in range(count)}
    assert Counter(task for target in found.values() for task in tasks(target.active)) == Counter(every)
    of_process = Counter((now[each], task) for each, target in found.items() for role in target for task in tasks(role))
    assert set(of_process.values()) <= {1}
    copies = Counter(task for target in found.values() for task in tasks(target.standby))
    wanted = min(standbys, len(set(now.values())) - 1)
    stateful = {(each, at) for each, (count, is_stateful) in expected.items() if is_stateful for at in range(count)}
    assert copies == Counter(dict.fromkeys(stateful, wanted) if wanted else {})


@given(subtopologies, members, st.integers(0, 2))
def test_what_is_as_it_was_stays_as_it_was(expected, now, standbys):
    topology = configured(expected)
    first = assign({each: MemberSpec(process, NO_TARGET) for each, process in now.items()}, topology, standbys)
    active = {each: target.active for each, target in first.items()}
    again = assign({each: MemberSpec(process, first[each]) for each, process in now.items()}, topology, standbys)
    assert {each: target.active for each, target in again.items()} == active
