"""Members of the classic and of the consumer protocol in one group, which changes its type while it is used."""

import contextlib
from collections.abc import Sequence

import pytest
from confluent_kafka import ConsumerGroupType

from compat_tests.adapters import Record
from compat_tests.adapters.base import WAIT_S
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.waiting import poll_until

from .members import Group, Member
from .test_consumer_protocol import PARTITIONS, all_of, at_the_end, commit, fill, share_out, values_of


def kind_of(client: ConfluentClient, group: str) -> ConsumerGroupType:
    kinds: dict[str, ConsumerGroupType] = {
        each.group_id: each.type for each in client.admin.list_consumer_groups().result(WAIT_S).valid
    }
    return kinds[group]


class Round:
    """All members share partitions, read new records, and commit; ``heard`` has their records of all rounds."""

    def __init__(self, client: ConfluentClient, topic: str) -> None:
        self.client, self.topic = client, topic
        self.sent: list[bytes] = []
        self.heard: list[Record] = []

    def __call__(self, members: Sequence[Member], sizes: Sequence[int]) -> None:
        self.heard += poll_until(members, share_out(members, all_of(self.topic), sizes), f"they share as {sizes}")
        new = [b"%d" % (len(self.sent) + n) for n in range(PARTITIONS)]
        fill(self.client, self.topic, new)
        self.sent += new
        self.heard += poll_until(members, lambda: at_the_end(members, self.topic), "all is read")
        for member in members:
            commit(member)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_one_by_one_and_back(quick_client: ConfluentClient, members: Group, topic: str, assignor: str) -> None:
    quick_client.create_topic(topic, PARTITIONS)
    play = Round(quick_client, topic)
    # librdkafka's sticky assignor sends user data besides partitions, which the conversion of a group drops.
    old = [members.classic_member(name, assignor) for name in ("old 1", "old 2")[: 2 if assignor == "range" else 1]]
    for member in old:
        member.subscribe([topic])
    play(old, [6 // len(old)] * len(old))
    assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CLASSIC

    new = [members.member("new 1")]
    new[0].subscribe([topic])
    play([*old, *new], [6 // len([*old, *new])] * len([*old, *new]))
    assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CONSUMER
    if assignor != "range":
        old.append(members.classic_member("old 2", assignor))
        old[1].subscribe([topic])
        play([*old, *new], [2, 2, 2])
    old.pop().close()
    new.append(members.member("new 2"))
    new[1].subscribe([topic])
    play([*old, *new], [2, 2, 2])
    old.pop().close()
    play(new, [3, 3])
    assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CONSUMER

    old.append(members.classic_member("old 3", assignor))
    old[0].subscribe([topic])
    play([*old, *new], [2, 2, 2])
    new.pop().close()
    play([*old, *new], [3, 3])
    new.pop().close()
    play(old, [6])
    assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CLASSIC
    assert values_of(play.heard) == sorted(play.sent)
    assert members.offences == []


def test_an_empty_group_changes_at_once(quick_client: ConfluentClient, members: Group, topic: str) -> None:
    """The group's offsets are kept."""
    quick_client.create_topic(topic, PARTITIONS)
    play = Round(quick_client, topic)
    for make, kind in (
        (members.classic_member, ConsumerGroupType.CLASSIC),
        (members.member, ConsumerGroupType.CONSUMER),
        (members.classic_member, ConsumerGroupType.CLASSIC),
    ):
        with contextlib.closing(make("only")) as member:
            member.subscribe([topic])
            play([member], [PARTITIONS])
            assert kind_of(quick_client, members.group_id) == kind
        members.died("only")
    assert values_of(play.heard) == sorted(play.sent)
