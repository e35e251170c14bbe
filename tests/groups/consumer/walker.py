"""Members of one consumer group that do anything at any time, and afterwards what they ought to; and what must hold.

Knows nothing of how the group gives out partitions. Whatever was done before: no two members that are in the group have
the same partition in their hands, nor by what the group says; the log says what memory says; and members that behave
come to rest, with every partition in somebody's hands.
"""

from typing import Any

from barnabas.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    KafkaError,
    NotEnoughReplicas,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.messages import JOINING, LEAVING, LEAVING_STATIC, Heartbeat, HeartbeatResult
from tests.groups.consumer.machine import Machine

GROUP = "g"
SESSION_S, REBALANCE_S = 10, 30
ROUNDS = 40
"""Within which a group has to settle; patterns alone may take eleven seconds from one look to the next."""
ROUND_S = 2

SUBSCRIPTIONS: tuple[dict[str, Any], ...] = (
    {"topic_names": ["t"], "topic_regex": ""},
    {"topic_names": ["t", "u"], "topic_regex": ""},
    {"topic_names": [], "topic_regex": "[tv].*"},
    {"topic_names": ["u"], "topic_regex": "v.*"},
)
TOPICS = {"t": (0, 3, 5), "u": (2, 4), "v1": (0, 2), "v2": (0, 1)}
"""How many partitions each may have, in turn; none: it is not there."""

Hand = set[tuple[bytes, int]]


def _hand(assignment: Any) -> Hand:
    return {(topic_id, partition) for topic_id, partitions in assignment for partition in partitions}


def _owned(hand: Hand) -> dict[bytes, list[int]]:
    owned: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(hand):
        owned.setdefault(topic_id, []).append(partition)
    return owned


class Consumer:
    """A member as a client: what it has in its hands, and what it knows."""

    def __init__(self, machine: Machine, name: str, instance: str | None, subscription: int) -> None:
        self.machine = machine
        self.name = name
        self.instance = instance
        self.subscription = SUBSCRIPTIONS[subscription]
        self.assignor: str | None = None
        self.runs = 0
        self.is_alive = False
        self.start()
        self.is_alive = False

    def start(self) -> None:
        """A new process: it has nothing, and a new id."""
        self.runs += 1
        self.is_alive = True
        self.member_id = f"{self.name}{self.runs}"
        self.epoch = JOINING
        self.give_up()
        self.waiting: list[HeartbeatResult] | None = None
        """The answer to what it asked last, should it have come; None where it asked nothing."""

    def give_up(self) -> None:
        """Everything it has, at once; then it joins again."""
        self.epoch = JOINING
        self.hand: Hand = set()
        self.wanted: Hand = set()
        self.has_to_say = True
        self.wants_all = True

    def beat(self) -> None:
        """Ask; what comes back is looked at later, or never."""
        if not self.is_alive or self.waiting is not None:
            return
        is_full = self.wants_all or self.epoch == JOINING
        subscription: dict[str, Any] = self.subscription if is_full else {}
        says = is_full or (self.has_to_say and self.hand >= self.wanted)
        answers: list[HeartbeatResult] = []
        beat = Heartbeat(
            GROUP,
            self.member_id,
            self.epoch,
            self.instance,
            rebalance_timeout_ms=REBALANCE_S * 1000 if is_full else -1,
            server_assignor=self.assignor if is_full else None,
            owned=_owned(self.hand) if says else None,
            client_id=self.name,
            client_host="/127.0.0.1",
            **subscription,
        )
        self.waiting = answers
        self.wants_all = False
        if says:
            # What it says it has not got may be another's by now: it waits to be told of it again.
            self.has_to_say = False
            self.wanted &= self.hand
        self.machine.coordinator.consumer.heartbeat(beat, answers.append)

    def hear(self) -> None:
        """Look at the answer, if it has come."""
        if not self.waiting:
            return
        (result,) = self.waiting
        self.waiting = None
        if result.error_code:
            self.refused(KafkaError.by_code[result.error_code])
            return
        self.epoch = result.member_epoch
        if result.assignment is not None:
            self.wanted = _hand(result.assignment)

    def refused(self, error: type[KafkaError]) -> None:
        if error in (FencedMemberEpoch, UnknownMemberId):
            self.give_up()
        elif error is FencedInstanceId:
            self.is_alive = False
        elif error is UnreleasedInstanceId:
            self.epoch = JOINING
        else:
            assert error is NotEnoughReplicas, error
            self.lost()

    def lost(self) -> None:
        """No answer comes: it will say all it knows."""
        self.waiting = None
        self.wants_all = True

    def revoke(self, *, how_many: int) -> None:
        """Some of what it is to give up is given up; nobody is told yet."""
        for each in sorted(self.hand - self.wanted)[:how_many]:
            self.hand.discard(each)

    def finish(self) -> None:
        """It has what it was told that it has."""
        if self.hand != self.wanted:
            self.hand = set(self.wanted)
            self.has_to_say = True

    def go(self, epoch: int) -> None:
        """Leave; nobody looks at the answer."""
        if self.is_alive and self.epoch != JOINING:
            self.give_up_for_good()
            beat = Heartbeat(GROUP, self.member_id, epoch, self.instance)
            self.machine.coordinator.consumer.heartbeat(beat, lambda result: None)

    def give_up_for_good(self) -> None:
        self.hand, self.wanted, self.is_alive, self.waiting = set(), set(), False, None


class Walker:
    """The consumers, their coordinator, its log and its topics."""

    def __init__(self, interval_ms: int = 1000) -> None:
        settings = {
            "group.consumer.session.timeout.ms": str(SESSION_S * 1000),
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.assignment.interval.ms": str(interval_ms),
        }
        self.machine = Machine(**settings)
        self.turns = dict.fromkeys(TOPICS, 0)
        self.new_topics_at = 0
        for name in ("t", "u"):
            self.topic(name)
        instances = (None, "j", "i", None)
        self.consumers = [
            Consumer(self.machine, "abcd"[at], instance, at // 3) for at, instance in enumerate(instances)
        ]

    # ------------------------------------------------------------------ steps

    def do(self, verb: str, index: int) -> None:
        if verb in CLUSTERS_VERBS:
            getattr(self, verb)(index)
        else:
            getattr(self, verb)(self.consumers[index % len(self.consumers)])
        self.check()

    def run(self, consumer: Consumer) -> None:
        """One full turn of a consumer that behaves."""
        if not consumer.is_alive:
            consumer.start()
        consumer.beat()
        consumer.hear()
        consumer.finish()

    def talk(self, consumer: Consumer) -> None:
        """It asks and hears, and does nothing about it yet."""
        if not consumer.is_alive:
            consumer.start()
        consumer.beat()
        consumer.hear()

    def send(self, consumer: Consumer) -> None:
        consumer.beat()

    def hear(self, consumer: Consumer) -> None:
        consumer.hear()

    def lose(self, consumer: Consumer) -> None:
        if consumer.waiting is not None:
            consumer.lost()

    def revoke(self, consumer: Consumer) -> None:
        consumer.revoke(how_many=1)
        consumer.has_to_say = True

    def finish(self, consumer: Consumer) -> None:
        consumer.finish()

    def die(self, consumer: Consumer) -> None:
        """It is gone, and nobody says so."""
        consumer.give_up_for_good()

    def leave(self, consumer: Consumer) -> None:
        consumer.go(LEAVING)

    def away(self, consumer: Consumer) -> None:
        consumer.go(LEAVING if consumer.instance is None else LEAVING_STATIC)

    def change(self, consumer: Consumer) -> None:
        at = SUBSCRIPTIONS.index(consumer.subscription)
        consumer.subscription = SUBSCRIPTIONS[(at + 1) % len(SUBSCRIPTIONS)]
        consumer.assignor = {None: "range", "range": "uniform", "uniform": "range"}[consumer.assignor]
        consumer.wants_all = True

    def topic(self, which: int | str) -> None:
        """A topic is made, or gets more partitions, or is deleted."""
        name = which if isinstance(which, str) else list(TOPICS)[which % len(TOPICS)]
        counts = TOPICS[name]
        self.turns[name] += 1
        now = (
            len(self.machine.image.topics_by_name[name].partitions) if name in self.machine.image.topics_by_name else 0
        )
        count = counts[self.turns[name] % len(counts)]
        if count < now:
            self.machine.change_topic(name, 0)
        if count:
            self.machine.change_topic(name, count)
            if count < now or now == 0:
                self.new_topics_at = self.machine.image.offset

    def advance(self, seconds: int) -> None:
        self.machine.clock.advance(seconds)

    def hold(self, _: int) -> None:
        """What is written from here on is not safe yet, and nobody is answered."""
        if self.machine.held is None:
            self.machine.held = []

    def release(self, _: int) -> None:
        held, self.machine.held = self.machine.held or [], None
        for written in held:
            written()

    def refuse(self, _: int) -> None:
        """The log takes nothing, until it is released."""
        self.machine.is_broken = not self.machine.is_broken

    def restart(self, how: int) -> None:
        before = snapshot(self.machine.group(GROUP))
        for consumer in self.consumers:
            consumer.lost()
        self.machine.restart(compacted=bool(how % 2))
        assert snapshot(self.machine.group(GROUP)) == before

    # ----------------------------------------------------------------- checks

    def check(self) -> None:
        """Nobody has what another has."""
        group = self.machine.group(GROUP)
        if group is None:
            return
        theirs: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for topic_id, partitions in (*member.assigned.items(), *member.revoking.items()):
                for partition in partitions:
                    former = theirs.setdefault((topic_id, partition), member.member_id)
                    assert former == member.member_id, f"{partition} is of {former} and of {member.member_id}"
        for topic_id, topic in self.machine.image.topics_by_id.items():
            for partition in topic.partitions:
                assert group.is_free(topic_id, partition) == ((topic_id, partition) not in theirs)
        in_hand: dict[tuple[bytes, int], str] = {}
        for consumer in self.consumers:
            if consumer.member_id not in group.members:
                continue  # fenced: what it reads it cannot commit
            for each in consumer.hand:
                former = in_hand.setdefault(each, consumer.member_id)
                assert former == consumer.member_id, f"{each} is in the hands of {former} and {consumer.member_id}"
        assert group.target.keys() <= group.members.keys(), "somebody is to have something who is not there"

    def settle(self, living: list[Consumer]) -> None:
        """The living behave from here on, the others are dead: there is rest, and every partition is read."""
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
        group = self.machine.group(GROUP)
        assert group is not None and self.is_at_rest(living), group and group.state_name
        topics = self.machine.image.topics_by_name
        everything = {
            (topics[name].id, index) for name in group.topics if name in topics for index in topics[name].partitions
        }
        assert set().union(*(consumer.hand for consumer in living)) == everything
        before = len(self.machine.log)
        for consumer in living:
            self.run(consumer)
        assert len(self.machine.log) == before, "there is rest, and yet something is written"
        self.restart(len(living))

    def is_at_rest(self, living: list[Consumer]) -> bool:
        """The group is stable, nobody else is in it, patterns are looked up, and everybody has what it is to have."""
        group = self.machine.group(GROUP)
        if group is None or group.state_name != "Stable" or group.members.keys() != {each.member_id for each in living}:
            return False
        looked_up = all(
            regex in group.resolved and group.resolved[regex].image_offset >= self.new_topics_at
            for regex in group.regexes
        )
        return looked_up and all(
            consumer.waiting is None
            and not consumer.wants_all
            and consumer.hand
            == _hand(group.members[consumer.member_id].assigned.items())
            == _hand(group.target_of(group.members[consumer.member_id]).items())
            for consumer in living
        )


NOT_KEPT = {"sessions", "revocations", "joins", "syncs", "is_written"}
NOT_KEPT |= {"_refresh_at_ms", "_refreshed_epoch", "_topic_id_of"}
CLUSTERS_VERBS = {"topic", "advance", "hold", "release", "refuse", "restart"}


def snapshot(group: ConsumerGroup | None) -> Any:
    """All that records keep of a group."""
    if group is None:
        return None
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in vars(group).items()
        if name not in NOT_KEPT
    }
