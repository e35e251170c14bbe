"""kafka-python with the classic protocol and confluent-kafka with the newer one, in one group."""

import contextlib
import time
from collections.abc import Sequence

import pytest
from confluent_kafka import ConsumerGroupType

from compat_tests.adapters import Consumer
from compat_tests.adapters.base import WAIT_S
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.adapters.kafka_python import KafkaPythonClient
from compat_tests.running import Running
from compat_tests.waiting import poll_all, poll_until

from .members import Group
from .test_consumer_protocol import PARTITIONS, all_of, fill, values_of
from .test_migration import kind_of


class Shared:
    """All members read new records, and commit; the group reads each record once."""

    def __init__(self, client: ConfluentClient, topic: str) -> None:
        self.client, self.topic = client, topic
        self.sent = 0
        self.heard: list[bytes] = []

    def __call__(self, members: Sequence[Consumer], sizes: Sequence[int]) -> None:
        everything = all_of(self.topic)

        def share() -> bool:
            owned = [member.assignment() for member in members]
            return sorted(map(len, owned)) == sorted(sizes) and set().union(*owned) == everything

        self.heard += values_of(poll_until(members, share, f"they share as {sizes}"))
        fill(self.client, self.topic, [b"%d" % (self.sent + n) for n in range(PARTITIONS)])
        self.sent += PARTITIONS
        wanted = {b"%d" % n for n in range(self.sent)}
        deadline = time.monotonic() + WAIT_S
        while set(self.heard) != wanted:
            assert time.monotonic() < deadline, f"not read: {wanted - set(self.heard)}"
            self.heard += [each for polled in poll_all(members) for each in values_of(polled)]
        for member in members:
            member.commit()
        assert len(self.heard) == len(wanted), "a record that was committed is read again"


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_one_library_follows_the_other_and_back(
    quick: Running, quick_client: ConfluentClient, members: Group, topic: str, assignor: str
) -> None:
    """An application changes its library by a rolling restart, and changes it back."""
    quick_client.create_topic(topic, PARTITIONS)
    play = Shared(quick_client, topic)
    with contextlib.closing(KafkaPythonClient(quick.bootstrap)) as old_client:

        def old() -> Consumer:
            member = old_client.consumer(group=members.group_id, assignor=assignor, session_ms=20_000)
            member.subscribe([topic])
            return member

        def new(name: str) -> Consumer:
            member = members.member(name)
            member.subscribe([topic])
            return member

        first = old()
        play([first], [6])
        assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CLASSIC
        second = new("second")
        play([first, second], [3, 3])
        assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CONSUMER
        first.close()
        play([second], [6])
        third = old()
        play([second, third], [3, 3])
        second.close()
        play([third], [6])
        assert kind_of(quick_client, members.group_id) == ConsumerGroupType.CLASSIC
