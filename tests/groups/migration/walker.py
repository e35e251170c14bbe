"""Random members of both protocols in one group, which then behave correctly.

Knows nothing of how a group changes its protocol. The invariants are those of each protocol: no two members own the
same partition, a replay of the log gives the same state, and the group becomes stable, with every partition assigned,
with either protocol.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.errors import (
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    NotEnoughReplicas,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.messages import Join, JoinedMember, JoinResult, LeavingMember, Sync, SyncResult
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from tests.groups.consumer.machine import Machine
from tests.groups.consumer.walker import GROUP, REBALANCE_S, ROUND_S, SESSION_S, Consumer, Hand
from tests.groups.consumer.walker import Walker as ConsumerWalker

ROUNDS = 80
"""The number of rounds within which a group has to become stable: classic rebalances wait for dead members, and there
may be several."""

EAGER, COOPERATIVE = "range", "cooperative-sticky"
SUBSCRIPTIONS = (["t"], ["t", "u"])
TAKEN_AWAY = (UnknownMemberId, IllegalGeneration)
"""The errors after which a member owns nothing in the view of the others."""


class NewConsumer(Consumer):
    """A member of the consumer protocol. The group may have become classic while it was not a member."""

    def refused(self, error: KafkaError) -> None:
        if isinstance(error, GroupIdNotFound):
            self.give_up()
        else:
            super().refused(error)


class ClassicConsumer:
    """A client of the classic protocol, with the methods of the other kind."""

    def __init__(self, machine: Machine, name: str, protocol: str, instance: str | None = None) -> None:
        self.machine = machine
        self.name = name
        self.protocol = protocol
        self.instance = instance
        self.topics = SUBSCRIPTIONS[0]
        self.give_up_for_good()

    def start(self) -> None:
        """Starts a new process, without partitions and id."""
        self.is_alive = True
        self.member_id = ""
        self.give_up()
        self.waiting: list[Callable[[], object]] | None = None

    def give_up(self) -> None:
        self.hand: Hand = set()
        self.wanted: Hand = set()
        self.generation = -1
        self.next = "join"
        self.members: Sequence[JoinedMember] = ()
        self.seen: Any = None

    def give_up_for_good(self) -> None:
        self.start()
        self.is_alive = False

    # ------------------------------------------------------------------- ask

    def beat(self) -> None:
        """Sends the next request. The response is handled later, or never."""
        if not self.is_alive or self.waiting is not None:
            return
        if self.next == "heartbeat" and self.members and self.seen is not self.machine.image.topics_by_name:
            self.next = "join"  # the leader reacts to changes of topics
        self.waiting = answers = []
        getattr(self, f"ask_{self.next}")(answers)

    def ask_join(self, answers: list[Callable[[], object]]) -> None:
        if self.protocol == EAGER:
            self.hand, self.wanted = set(), set()
        else:
            self.wanted &= self.hand
        kind = ConsumerProtocolSubscription.TopicPartition
        names = {topic.id: topic.name for topic in self.machine.image.topics_by_name.values()}
        owned: dict[str, list[int]] = {}
        for topic_id, partition in sorted(self.hand):
            if topic_id in names:
                owned.setdefault(names[topic_id], []).append(partition)
        said = ConsumerProtocolSubscription(
            topics=self.topics,
            owned_partitions=[kind(topic=topic, partitions=partitions) for topic, partitions in owned.items()],
        )
        join = Join(
            GROUP,
            self.member_id,
            self.instance,
            self.name,
            "/127.0.0.1",
            SESSION_S * 1000,
            REBALANCE_S * 1000,
            "consumer",
            ((self.protocol, said.encode_prefixed(1)),),
        )
        self.machine.coordinator.join(join, lambda result: answers.append(lambda: self.joined(result)))

    def joined(self, result: JoinResult) -> None:
        if result.error:
            if isinstance(result.error, MemberIdRequired):
                self.member_id = result.member_id
            self.refused(result.error)
            return
        self.member_id, self.generation = result.member_id, result.generation_id
        self.members = () if result.skip_assignment else result.members
        self.seen = self.machine.image.topics_by_name
        self.next = "sync"

    def ask_sync(self, answers: list[Callable[[], object]]) -> None:
        brought = assign(self.machine, self.members, self.protocol)
        sync = Sync(
            GROUP, self.generation, self.member_id, self.instance, "consumer", self.protocol, list(brought.items())
        )
        self.machine.coordinator.sync(sync, lambda result: answers.append(lambda: self.synced(result)))

    def synced(self, result: SyncResult) -> None:
        if result.error:
            self.refused(result.error)
            return
        topics = self.machine.image.topics_by_name
        found = (
            ConsumerProtocolAssignment.decode_prefixed(result.assignment).assigned_partitions
            if result.assignment
            else ()
        )
        self.wanted = {
            (topics[each.topic].id, index) for each in found if each.topic in topics for index in each.partitions
        }
        self.next = "heartbeat"

    def ask_heartbeat(self, answers: list[Callable[[], object]]) -> None:
        try:
            self.machine.coordinator.heartbeat(GROUP, self.member_id, self.instance, self.generation)
        except KafkaError as error:
            answers.append(partial(self.refused, error))
        else:
            answers.append(lambda: None)

    def refused(self, error: KafkaError) -> None:
        self.next = "join"
        if isinstance(error, FencedInstanceId):
            self.give_up_for_good()
        elif isinstance(error, TAKEN_AWAY):
            member_id = "" if isinstance(error, UnknownMemberId) else self.member_id
            self.give_up()
            self.member_id = member_id
        else:
            known = (RebalanceInProgress, MemberIdRequired, NotEnoughReplicas, InconsistentGroupProtocol)
            assert isinstance(error, known), error

    def hear(self) -> None:
        if self.waiting:
            (answer,) = self.waiting
            self.waiting = None
            answer()

    def lost(self) -> None:
        """Loses the response: it rejoins."""
        self.waiting = None
        self.next = "join"

    # ---------------------------------------------------------------- between

    def revoke(self, *, how_many: int) -> None:
        for each in sorted(self.hand - self.wanted)[:how_many]:
            self.hand.discard(each)

    def finish(self) -> None:
        """Takes its assignment. If it has to revoke partitions, others wait until it rejoins."""
        if self.next == "heartbeat" and self.waiting is None:
            if self.hand - self.wanted:
                self.next = "join"
            self.hand = set(self.wanted)

    def go(self, _: int) -> None:
        if self.is_alive and self.member_id:
            leaver = LeavingMember(self.member_id, self.instance)
            self.give_up_for_good()
            self.machine.coordinator.leave(GROUP, [leaver])

    has_to_say = wants_all = False
    subscription: Any = None
    assignor: Any = None


def assign(machine: Machine, members: Sequence[JoinedMember], protocol: str) -> dict[str, bytes]:
    """Returns the leader's assignment: balanced, and in a cooperative group without partitions that another member
    owns."""
    said = {each.member_id: ConsumerProtocolSubscription.decode_prefixed(each.metadata) for each in members}
    owners = {
        (each.topic, index): member_id
        for member_id, subscription in said.items()
        for each in subscription.owned_partitions
        for index in each.partitions
    }
    shares: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in said}
    at = 0
    for name, topic in sorted(machine.image.topics_by_name.items()):
        readers = sorted(member_id for member_id, subscription in said.items() if name in subscription.topics)
        for index in topic.partitions if readers else ():
            reader = readers[at % len(readers)]
            at += 1
            if protocol == EAGER or owners.get((name, index), reader) == reader:
                shares[reader].setdefault(name, []).append(index)
    kind = ConsumerProtocolAssignment.TopicPartition
    return {
        member_id: ConsumerProtocolAssignment(
            assigned_partitions=[kind(topic=name, partitions=indexes) for name, indexes in share.items()]
        ).encode_prefixed(1)
        for member_id, share in shares.items()
    }


class Walker(ConsumerWalker):
    """Two members of the consumer protocol and three of the classic one, which are all eager or all cooperative."""

    def __init__(self, protocol: str, policy: str, interval_ms: int) -> None:
        super().__init__(interval_ms)
        settings = {
            "group.consumer.migration.policy": policy,
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
        }
        self.machine.configure(settings)
        self.machine.restart()
        classic = [
            ClassicConsumer(self.machine, name, protocol, instance)
            for name, instance in (("x", None), ("y", None), ("z", "i"))
        ]
        new = [NewConsumer(self.machine, "a", None, 0), NewConsumer(self.machine, "c", "i", 0)]
        self.consumers: list[Any] = [*new, *classic]
        self.zombies: set[str] = set()

    @property
    def group(self) -> ConsumerGroup | ClassicGroup | None:
        return self.machine.runtime.only._groups.get(GROUP)

    def change(self, consumer: Any) -> None:
        if isinstance(consumer, Consumer):
            super().change(consumer)
        else:
            consumer.topics = SUBSCRIPTIONS[consumer.topics is SUBSCRIPTIONS[0]]
            consumer.next = "join" if consumer.next == "heartbeat" else consumer.next

    # ----------------------------------------------------------------- checks

    def check(self) -> None:
        """Checks that no partition has two owners. Members that are not in the group do not count."""
        group = self.group
        members = group.members if group is not None else {}
        in_hand: dict[tuple[bytes, int], str] = {}
        for consumer in self.consumers:
            if not consumer.hand:
                self.zombies.discard(consumer.name)
            elif consumer.member_id not in members:
                self.zombies.add(consumer.name)
            if consumer.name in self.zombies:
                continue
            for each in consumer.hand:
                former = in_hand.setdefault(each, consumer.name)
                assert former == consumer.name, f"{each} is in the hands of {former} and {consumer.name}"
        if isinstance(group, ConsumerGroup):
            theirs: dict[tuple[bytes, int], str] = {}
            for member in group.members.values():
                for topic_id, partitions in (*member.assigned.items(), *member.revoking.items()):
                    for partition in partitions:
                        former = theirs.setdefault((topic_id, partition), member.member_id)
                        assert former == member.member_id, f"{partition} is of {former} and of {member.member_id}"

    def settle(self, living: list[Any]) -> None:
        """Kills all but these members, lets these behave correctly, and checks that every partition is assigned.

        Of two members with the same instance id only one may live, or they would fence each other for ever.
        """
        instances = {each.instance: each for each in living if each.instance is not None}
        living = [each for each in living if each.instance is None or instances[each.instance] is each]
        self.machine.is_broken = False
        self.release(0)
        for consumer in self.consumers:
            if consumer not in living:
                consumer.give_up_for_good()
        for consumer in living:
            consumer.lost()
        for _ in range(ROUNDS):
            self.advance(ROUND_S)
            for consumer in living:
                self.run(consumer)
                self.check()
            if self.is_at_rest(living):
                break
        else:
            raise AssertionError(f"no rest: {self.group and self.group.state_name} {[vars(each) for each in living]}")
        before = len(self.machine.log)
        for consumer in living:
            self.run(consumer)
        assert len(self.machine.log) == before, "there is rest, and yet something is written"
        self.restart(len(living))

    def run(self, consumer: Any) -> None:
        if isinstance(consumer, ClassicConsumer) and not consumer.is_alive:
            consumer.start()
        super().run(consumer)

    def is_at_rest(self, living: list[Any]) -> bool:
        group = self.group
        alive = [each for each in living if each.is_alive]
        if group is None or group.state_name != "Stable" or group.members.keys() != {each.member_id for each in alive}:
            return False
        if len(alive) < len(living):
            return False
        for consumer in alive:
            if consumer.waiting is not None or consumer.wants_all or consumer.hand != consumer.wanted:
                return False
            if isinstance(consumer, ClassicConsumer) and consumer.next != "heartbeat":
                return False
        return set().union(*(consumer.hand for consumer in alive)) == self.everything(group)

    def everything(self, group: ConsumerGroup | ClassicGroup) -> Hand:
        topics = self.machine.image.topics_by_name
        names = group.topics if isinstance(group, ConsumerGroup) else group.subscribed_topics or ()
        return {(topics[name].id, index) for name in names if name in topics for index in topics[name].partitions}
