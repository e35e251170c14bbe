"""Scenarios: failures of a cluster, such as a new leader or a full disk, each as the rules that show it to a client.

Knows nothing of clients; docs/how-to/faults.md shows what they do. The errors are those with which Apache Kafka
answers.
"""

from types import TracebackType
from typing import Any, Protocol, Self

from barnabas.faults.rules import Rule


class Adding(Protocol):
    """Accepts rules."""

    def add(self, **given: Any) -> Rule: ...


class Scenario:
    """The rules of one scenario. At the end of a ``with`` block they are removed."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    @property
    def hits(self) -> int:
        """How often its rules have fired."""
        return sum(rule.hits for rule in self.rules)

    def wait_for_hits(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Waits for the first of its rules (:meth:`Rule.wait_for_hits`)."""
        self.rules[0].wait_for_hits(hits, timeout)

    def lift(self) -> None:
        """Removes the rules."""
        for rule in self.rules:
            rule.lift()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lift()


def leader_moves(faults: Adding, topic: str, *, requests: int = 1) -> Scenario:
    """The leader of a topic's partitions moves while a batch is in flight, and is unknown for one Metadata request."""
    refused = faults.add(api="Produce", topic=topic, first=requests, error="NOT_LEADER_OR_FOLLOWER")
    unknown = faults.add(api="Metadata", topic=topic, first=1, error="LEADER_NOT_AVAILABLE", handled=True)
    return Scenario(refused, unknown)


def coordinator_moves(faults: Adding, group: str) -> Scenario:
    """The coordinator of a group moves: the next commit gets NOT_COORDINATOR, and the new coordinator is not available
    at once.
    """
    commit = faults.add(api="OffsetCommit", group=group, first=1, error="NOT_COORDINATOR")
    find = faults.add(api="FindCoordinator", group=group, first=1, after=commit, error="COORDINATOR_NOT_AVAILABLE")
    return Scenario(commit, find)


def producer_fenced(faults: Adding, transactional_id: str) -> Scenario:
    """Another producer with the same transactional id has started, and fences this one, which cannot end its
    transaction (KIP-588).
    """
    older = faults.add(api="EndTxn", versions="0-1", transactional_id=transactional_id, error="INVALID_PRODUCER_EPOCH")
    newer = faults.add(api="EndTxn", versions="2+", transactional_id=transactional_id, error="PRODUCER_FENCED")
    return Scenario(newer, older)


def disk_full(faults: Adding, topic: str) -> Scenario:
    """The directory of a topic's partitions has failed: nothing is appended until the scenario is removed."""
    return Scenario(faults.add(api="Produce", topic=topic, error="KAFKA_STORAGE_ERROR"))


def too_few_replicas(faults: Adding, topic: str) -> Scenario:
    """The partitions have fewer in-sync replicas than ``min.insync.replicas``, until the scenario is removed."""
    return Scenario(faults.add(api="Produce", topic=topic, error="NOT_ENOUGH_REPLICAS"))


def answer_lost(faults: Adding, topic: str) -> Scenario:
    """A batch is appended, and the connection is closed before the response is sent: a producer without idempotence
    sends a duplicate.
    """
    return Scenario(faults.add(api="Produce", topic=topic, first=1, cut="after"))


def network_cut(faults: Adding, client_id: str, *, node: int | None = None) -> Scenario:
    """Packets between a client and the broker are lost: nothing is answered until the scenario is removed.

    :param node: the one broker of a cluster that the client cannot reach; without it, all of them
    """
    where = {} if node is None else {"node": node}
    return Scenario(faults.add(client_id=client_id, silent="before", **where))


def slow_consumer_evicted(faults: Adding, group: str) -> Scenario:
    """The session of a consumer has timed out, and the group has rebalanced without it: it has to join again."""
    commit = faults.add(api="OffsetCommit", group=group, first=1, error="UNKNOWN_MEMBER_ID")
    heartbeat = faults.add(api="Heartbeat", group=group, first=1, error="UNKNOWN_MEMBER_ID")
    return Scenario(commit, heartbeat)


def quota_exceeded(faults: Adding, client_id: str, *, throttle_ms: int = 1000) -> Scenario:
    """A client has exceeded its quotas: responses have a throttle time (KIP-219), and it may not create topics
    (KIP-599).
    """
    produced = faults.add(api="Produce", client_id=client_id, throttle_ms=throttle_ms)
    fetched = faults.add(api="Fetch", client_id=client_id, throttle_ms=throttle_ms)
    changed = faults.add(
        api="CreateTopics",
        versions="6+",
        client_id=client_id,
        error="THROTTLING_QUOTA_EXCEEDED",
        throttle_ms=throttle_ms,
    )
    return Scenario(produced, fetched, changed)


def authentication_expires(faults: Adding, principal: str) -> Scenario:
    """The session of a user has expired: its next request closes the connection (KIP-368), and it may log in again."""
    return Scenario(faults.add(principal=principal, first=1, cut="before"))


class Scenarios:
    """A mixin with each scenario as a method."""

    def leader_moves(self: Adding, topic: str, *, requests: int = 1) -> Scenario:
        return leader_moves(self, topic, requests=requests)

    def coordinator_moves(self: Adding, group: str) -> Scenario:
        return coordinator_moves(self, group)

    def producer_fenced(self: Adding, transactional_id: str) -> Scenario:
        return producer_fenced(self, transactional_id)

    def disk_full(self: Adding, topic: str) -> Scenario:
        return disk_full(self, topic)

    def too_few_replicas(self: Adding, topic: str) -> Scenario:
        return too_few_replicas(self, topic)

    def answer_lost(self: Adding, topic: str) -> Scenario:
        return answer_lost(self, topic)

    def network_cut(self: Adding, client_id: str, *, node: int | None = None) -> Scenario:
        return network_cut(self, client_id, node=node)

    def slow_consumer_evicted(self: Adding, group: str) -> Scenario:
        return slow_consumer_evicted(self, group)

    def quota_exceeded(self: Adding, client_id: str, *, throttle_ms: int = 1000) -> Scenario:
        return quota_exceeded(self, client_id, throttle_ms=throttle_ms)

    def authentication_expires(self: Adding, principal: str) -> Scenario:
        return authentication_expires(self, principal)
