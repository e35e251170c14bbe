"""The properties of every assignment: complete, only of subscribed topics, balanced, and as close to the last as
possible.

compat_tests compares each with Apache Kafka's own assignors.
"""

import math
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.assigning import ASSIGNORS, Subscriber
from barnabas.groups.assigning.simple import assign_simply

ALL = {**ASSIGNORS, "simple": assign_simply}


def topics_of(sizes):
    """Returns topics by id, 1 for the first, so that names and ids sort differently."""
    return {
        bytes(15) + bytes([index]): SimpleNamespace(name=f"topic-{index * 7 % 10}-{index}", partitions=range(size))
        for index, size in enumerate(sizes, 1)
    }


def counts(assignment):
    return sorted(sum(map(len, mine.values())) for mine in assignment.values())


def moved(before, after):
    """Returns how many partitions have another member than before."""
    return sum(
        len(partitions.difference(before[member_id].get(topic_id, ())))
        for member_id, mine in after.items()
        for topic_id, partitions in mine.items()
        if member_id in before
    )


def again(assign, members, topics, assignment):
    """Assigns to the same members again, with this assignment as their current one."""
    return assign(
        {member_id: members[member_id]._replace(assigned=mine) for member_id, mine in assignment.items()}, topics
    )


@st.composite
def groups(draw, *, same_topics=False):
    """Draws topics, members, and an assignment of other members."""
    topics = topics_of(draw(st.lists(st.integers(0, 12), min_size=1, max_size=6)))
    some = st.sets(st.sampled_from(sorted(topics)))
    common = draw(some)
    chance = draw(st.randoms(use_true_random=False))
    names = chance.sample([f"member-{index}" for index in range(30)], draw(st.integers(1, 9)))
    members = {name: Subscriber(frozenset(common if same_topics else draw(some))) for name in names}
    for topic_id, topic in topics.items():
        for partition in topic.partitions:
            if chance.random() < 0.6:
                member = members[(name := chance.choice(names))]
                kept = member.assigned.get(topic_id, frozenset()) | {partition}
                members[name] = member._replace(assigned={**member.assigned, topic_id: kept})
    return topics, members


@pytest.mark.parametrize("name", sorted(ALL))
@given(group=groups())
def test_complete_and_only_what_is_subscribed(name, group):
    topics, members = group
    found = ALL[name](members, topics)
    assert found.keys() == members.keys()
    owners = {}
    for member_id, mine in found.items():
        assert mine.keys() <= members[member_id].topic_ids
        assert all(mine.values())
        for topic_id, partitions in mine.items():
            for partition in partitions:
                owners.setdefault((topic_id, partition), []).append(member_id)
    read = frozenset().union(*(member.topic_ids for member in members.values()))
    assert owners.keys() == {(topic_id, each) for topic_id in read for each in topics[topic_id].partitions}
    if name != "simple":
        assert all(len(each) == 1 for each in owners.values())


@given(group=groups(same_topics=True))
def test_uniform_gives_everybody_as_much_and_moves_no_more_than_it_must(group):
    topics, members = group
    found = ASSIGNORS["uniform"](members, topics)
    shares = counts(found)
    assert shares[-1] - shares[0] <= 1
    most = shares[-1]
    read = next(iter(members.values())).topic_ids
    for member_id, mine in found.items():
        before = {each: frozenset(mine) for each, mine in members[member_id].assigned.items() if each in read}
        lost = sum(len(had - mine.get(each, frozenset())) for each, had in before.items())
        assert lost == max(0, sum(map(len, before.values())) - sum(map(len, mine.values())))
        assert lost == 0 or sum(map(len, mine.values())) >= most - 1


@pytest.mark.parametrize("name", sorted(ALL))
@given(group=groups())
def test_what_is_settled_stays(name, group):
    topics, members = group
    assign = ALL[name]
    found = assign(members, topics)
    for _ in range(3):  # a very unbalanced group may need more than one assignment
        found = again(assign, members, topics, found)
    assert again(assign, members, topics, found) == found


@given(group=groups())
def test_uniform_among_members_with_different_topics_leaves_nobody_who_could_take_two_fewer(group):
    topics, members = group
    found = ASSIGNORS["uniform"](members, topics)
    loads = {member_id: sum(map(len, mine.values())) for member_id, mine in found.items()}
    for giver, mine in found.items():
        for topic_id in mine:
            for taker, member in members.items():
                if topic_id in member.topic_ids:
                    assert loads[giver] - loads[taker] <= 1


@given(group=groups(same_topics=True))
def test_simple_shares_each_partition_among_as_many(group):
    topics, members = group
    found = assign_simply(members, topics)
    owners = {}
    for member_id, mine in found.items():
        for topic_id, partitions in mine.items():
            for partition in partitions:
                owners.setdefault((topic_id, partition), []).append(member_id)
    if owners:
        assert max(map(len, owners.values())) <= -(-len(members) // len(owners))
        if len(members) <= len(owners):
            # Apache Kafka counts in floats: to it 29 / 7 * 7 is more than 29, so one member may have to do without.
            lacking = math.ceil(len(owners) / len(members) * len(members)) - len(owners)
            shares = counts(found)
            assert shares[-1] - shares[0] <= 1 + lacking


def test_ranges_stand_side_by_side_and_static_members_come_first():
    topics = topics_of([5, 5])
    read = frozenset(topics)
    found = ASSIGNORS["range"]({"a": Subscriber(read), "z": Subscriber(read, instance_id="static")}, topics)
    assert found == {
        "z": dict.fromkeys(topics, frozenset({0, 1, 2})),
        "a": dict.fromkeys(topics, frozenset({3, 4})),
    }


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_more_members_than_partitions(name):
    topics = topics_of([2])
    found = ALL[name]({member_id: Subscriber(frozenset(topics)) for member_id in "abc"}, topics)
    assert counts(found) == [0, 1, 1]


def test_simple_has_all_members_read():
    topics = topics_of([2])
    found = assign_simply({member_id: Subscriber(frozenset(topics)) for member_id in "abcd"}, topics)
    assert counts(found) == [1, 1, 1, 1]


def test_who_leaves_takes_nothing_from_the_others():
    topics = topics_of([12])
    members = {f"m{index}": Subscriber(frozenset(topics)) for index in range(4)}
    before = ASSIGNORS["uniform"](members, topics)
    del members["m2"]
    after = again(ASSIGNORS["uniform"], members, topics, {each: before[each] for each in members})
    assert counts(after) == [4, 4, 4]
    assert moved(before, after) == 3


@pytest.mark.parametrize("name", sorted(ALL))
def test_nobody_and_nothing(name):
    assert ALL[name]({}, topics_of([3])) == {}
    assert ALL[name]({"a": Subscriber(frozenset())}, topics_of([3])) == {"a": {}}


def test_ranges_do_not_depend_on_the_order_in_which_members_are_told():
    topics = topics_of([7, 3, 9])
    members = [(f"member-{index}", Subscriber(frozenset(topics))) for index in range(40)]
    found = ASSIGNORS["range"](dict(members), topics)
    random.Random(1).shuffle(members)
    assert ASSIGNORS["range"](dict(members), topics) == found
