"""Random members of one consumer group, which then behave correctly, and what must always hold.

Knows nothing of how partitions are assigned. The invariants: no two members of the group own the same partition, in
their own view or the group's; a replay of the log gives the same state; the group becomes stable, with every partition
assigned, once all members behave correctly.
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
"""The number of rounds within which a group has to become stable. Regular expressions alone may take eleven seconds."""
ROUND_S = 2

SUBSCRIPTIONS: tuple[dict[str, Any], ...] = (
    {"topic_names": ["t"], "topic_regex": ""},
    {"topic_names": ["t", "u"], "topic_regex": ""},
    {"topic_names": [], "topic_regex": "[tv].*"},
    {"topic_names": ["u"], "topic_regex": "v.*"},
)
TOPICS = {"t": (0, 3, 5), "u": (2, 4), "v1": (0, 2), "v2": (0, 1)}
"""The partition counts that each topic gets in turn; 0 if it does not exist."""

Hand = set[tuple[bytes, int]]


def _hand(assignment: Any) -> Hand:
    return {(topic_id, partition) for topic_id, partitions in assignment for partition in partitions}


def _owned(hand: Hand) -> dict[bytes, list[int]]:
    owned: dict[bytes, list[int]] = {}
    for topic_id, partition in sorted(hand):
        owned.setdefault(topic_id, []).append(partition)
    return owned


class Consumer:
    """A client: the partitions that it owns, and its epoch."""

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
        """Starts a new process, without partitions and with a new id."""
        self.runs += 1
        self.is_alive = True
        self.member_id = f"{self.name}{self.runs}"
        self.epoch = JOINING
        self.give_up()
        self.waiting: list[HeartbeatResult] | None = None
        """The response to its last request once it is there; None without a request."""

    def give_up(self) -> None:
        """Gives up all its partitions, and rejoins."""
        self.epoch = JOINING
        self.hand: Hand = set()
        self.wanted: Hand = set()
        self.has_to_say = True
        self.wants_all = True

    def beat(self) -> None:
        """Sends a heartbeat. The response is handled later, or never."""
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
            # Another member may own a partition that it has reported as revoked, so it waits for a new assignment.
            self.has_to_say = False
            self.wanted &= self.hand
        self.machine.coordinator.consumer.heartbeat(beat, answers.append)

    def hear(self) -> None:
        """Handles the response, if it is there."""
        if not self.waiting:
            return
        (result,) = self.waiting
        self.waiting = None
        if result.error:
            self.refused(result.error)
            return
        self.epoch = result.member_epoch
        if result.assignment is not None:
            self.wanted = _hand(result.assignment)

    def refused(self, error: KafkaError) -> None:
        if isinstance(error, (FencedMemberEpoch, UnknownMemberId)):
            self.give_up()
        elif isinstance(error, FencedInstanceId):
            self.is_alive = False
        elif isinstance(error, UnreleasedInstanceId):
            self.epoch = JOINING
        else:
            assert isinstance(error, NotEnoughReplicas), error
            self.lost()

    def lost(self) -> None:
        """Loses the response: the next heartbeat is a full one."""
        self.waiting = None
        self.wants_all = True

    def revoke(self, *, how_many: int) -> None:
        """Revokes some of the partitions that it has to revoke, without confirming it."""
        for each in sorted(self.hand - self.wanted)[:how_many]:
            self.hand.discard(each)

    def finish(self) -> None:
        """Takes the partitions of its assignment."""
        if self.hand != self.wanted:
            self.hand = set(self.wanted)
            self.has_to_say = True

    def go(self, epoch: int) -> None:
        """Leaves, and ignores the response."""
        if self.is_alive and self.epoch != JOINING:
            self.give_up_for_good()
            beat = Heartbeat(GROUP, self.member_id, epoch, self.instance)
            self.machine.coordinator.consumer.heartbeat(beat, lambda result: None)

    def give_up_for_good(self) -> None:
        self.hand, self.wanted, self.is_alive, self.waiting = set(), set(), False, None


class Walker:
    """The members, their coordinator, its log and its topics."""

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
        """Runs a whole round of a member that behaves correctly."""
        if not consumer.is_alive:
            consumer.start()
        consumer.beat()
        consumer.hear()
        consumer.finish()

    def talk(self, consumer: Consumer) -> None:
        """Sends a heartbeat and handles the response, without taking or revoking partitions."""
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
        """Kills the member."""
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
        """Creates a topic, adds partitions, or deletes it."""
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
        """Makes further records wait before they are durable, and responses with them."""
        if self.machine.held is None:
            self.machine.held = []

    def release(self, _: int) -> None:
        held, self.machine.held = self.machine.held or [], None
        for written in held:
            written()

    def refuse(self, _: int) -> None:
        """Makes every write fail until the log is released."""
        self.machine.is_broken = not self.machine.is_broken

    def restart(self, how: int) -> None:
        before = snapshot(self.machine.group(GROUP))
        for consumer in self.consumers:
            consumer.lost()
        self.machine.restart(compacted=bool(how % 2))
        assert snapshot(self.machine.group(GROUP)) == before

    # ----------------------------------------------------------------- checks

    def check(self) -> None:
        """Checks that no partition has two owners."""
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
                continue  # fenced: it cannot commit what it reads
            for each in consumer.hand:
                former = in_hand.setdefault(each, consumer.member_id)
                assert former == consumer.member_id, f"{each} is in the hands of {former} and {consumer.member_id}"
        assert group.target.keys() <= group.members.keys(), "somebody is to have something who is not there"

    def settle(self, living: list[Consumer]) -> None:
        """Kills all but these members, lets these behave correctly, and checks that every partition is assigned."""
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
        """Returns whether the group is stable with only these members, and its expressions are resolved."""
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
    """Returns the state of a group that is in records."""
    if group is None:
        return None
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name, value in vars(group).items()
        if name not in NOT_KEPT
    }
