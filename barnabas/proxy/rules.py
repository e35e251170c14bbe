"""The rules of faults in the proxy: those of a broker, except for two kinds.

Knows nothing of how they are applied (:mod:`barnabas.server.faulty` does that).
"""

from random import Random
from typing import Any

from barnabas.clock import Scheduler, SystemClock
from barnabas.faults.naming import ImpossibleRule
from barnabas.faults.rules import Rule, Rules
from barnabas.faults.script import rules_of
from barnabas.proxy.proxy import Proxy
from barnabas.server.faulty import Watch


class ProxyRules(Rules):
    """The rules of a proxy."""

    def possible(self, **given: Any) -> Rule:
        if given.get("principal") is not None:
            raise ImpossibleRule("a proxy does not know the principals of a cluster's clients: name the client_id")
        if given.get("tls") is not None:
            raise ImpossibleRule("clients connect to a proxy in the clear: refuse=True refuses them")
        return super().possible(**given)


def watch(proxy: Proxy, script: str, scheduler: Scheduler, random: Random) -> Watch:
    """Sets the rules of a script. :raises ImpossibleRule: one can never match, or does nothing"""
    clock = SystemClock()
    rules = ProxyRules(clock, random)
    made = Watch(rules, proxy.gateways, clock, scheduler, proxy.topics.get, proxy.node_of)
    rules.set(*rules_of(script, rules.possible))
    made.update()
    return made
