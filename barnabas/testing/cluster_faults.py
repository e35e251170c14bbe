"""Faults of a cluster in this process: rules for one of its brokers, or for all of them.

Knows nothing of how rules are applied. The rules of a broker outlive its restart.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import Any

from barnabas.clock import Clock, Scheduler, SystemClock
from barnabas.faults.naming import ImpossibleRule
from barnabas.faults.rules import Rule, Rules
from barnabas.faults.scenarios import Scenario, Scenarios
from barnabas.faults.script import rules_of
from barnabas.faults.seen import Seen
from barnabas.server.faulty import Watch
from barnabas.server.server import Server
from barnabas.testing.cluster_node import ClusterNode
from barnabas.testing.faulting import OpenConnection, open_connections

Call = Callable[[Callable[[], Any]], Any]

LOOK_S = 0.005


class RulesOfNodes(Scenario):
    """One rule on several brokers. Its hits are the sum over all of them."""

    def is_in_force(self, now: float) -> bool:
        """Returns whether the rule can still fire on any of them."""
        return any(rule.is_in_force(now) for rule in self.rules)

    def wait_for_hits(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Returns once the rule has fired that often. :raises TimeoutError: it has not in ``timeout`` seconds"""
        end = time.monotonic() + timeout
        while self.hits < hits:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.hits} instead of {hits} hits in {timeout:g} s: {self}")
            time.sleep(LOOK_S)

    def set(self) -> None:
        """Sets the rule on each of them."""
        for rule in self.rules:
            rule.set()

    def __str__(self) -> str:
        return str(self.rules[0])


class ClusterFaults(Scenarios):
    """The rules of a cluster's brokers. Each scenario of :mod:`barnabas.faults.scenarios` is a method.

    :param call: calls a function in the cluster's thread
    :param clock: of the rules. Recorded requests have the machine's time, as clients do
    """

    def __init__(self, nodes: Mapping[int, ClusterNode], call: Call, clock: Clock, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._random = Random(0)
        self._nodes, self._call = nodes, call
        self._watches: dict[int, Watch] = {}
        self.seen: Seen | None = None  #: the requests that were recorded; None while they are not
        self._rules: dict[int, Rules] = {}
        for node_id, node in nodes.items():
            changed = partial(call, node.update_watch)
            self._rules[node_id] = rules = Rules(clock, self._random, changed, node=node_id)
            node.new_watch = partial(self._new_watch, node_id, rules)

    def _new_watch(self, node_id: int, rules: Rules, server: Server) -> Watch:
        def topic_name(topic_id: bytes) -> str | None:
            topic = server.broker.image.topics_by_id.get(topic_id)
            return None if topic is None else topic.name

        made = Watch(rules, server.listeners, SystemClock(), self._scheduler, topic_name, partial(_leads_to, node_id))
        made.seen = self.seen
        self._watches[node_id] = made
        return made

    def add(self, *, node: int | None = None, **rule: Any) -> Any:
        """Sets a rule on one broker, or on each of them. Counts such as ``nth`` are kept for each broker.

        :raises ImpossibleRule: it can never match, or does nothing; the text says what would be right
        """
        made = self._possible(node=node, **rule)
        made.set()
        return made

    def _possible(self, *, node: int | None = None, **rule: Any) -> Any:
        """Returns a rule that is not in force, or one for each broker. :raises ImpossibleRule: it can never match"""
        if node is None:
            return RulesOfNodes(*(rules.possible(**rule) for rules in self._rules.values()))
        if node not in self._rules:
            raise ImpossibleRule(f"there is no broker {node}; there are {', '.join(map(str, self._rules))}")
        return self._rules[node].possible(**rule)

    def script(self, text: str) -> list[Any]:
        """Sets the rules of a text; ``node=2`` names a broker. :raises ImpossibleRule: none is set then"""
        made = rules_of(text, self._possible)
        for each in made:
            each.set()
        return made

    def rules(self, node: int) -> tuple[Rule, ...]:
        """Returns the rules of a broker that have not been removed."""
        return self._rules[node].all

    def seed(self, seed: int) -> None:
        """Seeds the random numbers of ``probability`` anew."""
        self._random.seed(seed)

    def clear(self) -> None:
        """Removes all rules, and clears the report."""
        for rules in self._rules.values():
            rules.clear()

    def report(self) -> str:
        """Returns which rule fired on which broker when, a line each."""
        lines = [
            (line.partition(" ")[0], f"{line.partition(' ')[0]} broker {node}: {line.partition(' ')[2]}")
            for node, rules in self._rules.items()
            for line in rules.report().splitlines()
        ]
        return "\n".join(line for _, line in sorted(lines))

    # ------------------------------------------------------------ seeing

    def record(self) -> Seen:
        """Starts recording requests to all brokers, unless they are recorded already. Returns the record of them."""
        if self.seen is None:
            self.seen = Seen()
            for watch in self._watches.values():
                watch.seen = self.seen
            for node in self._nodes.values():
                self._call(node.update_watch)
        return self.seen

    def connections(self) -> list[OpenConnection]:
        """Returns the open connections of all brokers that run."""

        def found() -> Iterator[OpenConnection]:
            for node_id, node in self._nodes.items():
                if node.server is not None:
                    yield from open_connections(node.server.listeners, partial(_leads_to, node_id))

        return sorted(self._call(lambda: list(found())))


def _leads_to(node_id: int, connection: object) -> int:
    return node_id
