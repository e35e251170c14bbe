"""Faults of the broker and its connections while clients run. Knows nothing of the clients."""

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from tests.history.brokers import Broker, Cluster, Networked
from tests.history.plan import Plan
from tests.history.proxy import Proxy

PRODUCE, TXN_OFFSET_COMMIT, END_TXN, ADD_PARTITIONS_TO_TXN = 0, 28, 26, 24
LATE = {PRODUCE: 3, ADD_PARTITIONS_TO_TXN: 0, END_TXN: 5, TXN_OFFSET_COMMIT: 5}
"""Requests that may be late, from a version on, unless the plan excludes it.

Below version 5 an EndTxn or a TxnOffsetCommit has no field that distinguishes it from one of the producer's next
transaction. Barnabas uses the connection; Apache Kafka cannot distinguish them.
"""
DELAY_S = (0.05, 0.5)
SKEWS_S = (-300.0, -3.0, 3.0, 300.0)


class Faults:
    """Injects the faults of the plan, one after the other; ``events`` has the faults and their times."""

    def __init__(self, broker: Broker, plan: Plan, now: Callable[[], float]) -> None:
        self.broker = broker
        self.plan = plan
        self.random = Random(f"{plan.seed}/details")
        self.now = now
        self.events: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()

    @property
    def proxy(self) -> Proxy:
        """The proxy of the affected broker."""
        return self.broker.proxy

    @property
    def network(self) -> Networked:
        """The network between the nodes, if there is one: the plan has no other faults."""
        assert isinstance(self.broker, Networked)
        return self.broker

    def run(self) -> None:
        """Injects faults until the plan or the time ends; on return the broker runs, without faults."""
        for fault in self.plan.faults:
            if self.now() + fault.wait_s > self.plan.seconds:
                return
            time.sleep(fault.wait_s)
            broker = self.broker.choose(self.random)
            event = {"at": round(self.now(), 3), "kind": fault.kind, "seconds": fault.seconds, "broker": broker}
            self.events.append(event)
            self.counts[fault.kind] += 1
            getattr(self, fault.kind)(fault.seconds)
            self.events.append({"at": round(self.now(), 3), "kind": f"{fault.kind} over"})

    def kill(self, seconds: float) -> None:
        """Kills the broker at any moment, or during an operation with several steps."""
        if self.random.random() < 0.7:
            self.proxy.wait_for(self.random.choice((END_TXN, END_TXN, TXN_OFFSET_COMMIT, ADD_PARTITIONS_TO_TXN)), 2.0)
            time.sleep(self.random.uniform(0.0, 0.008))
        self.broker.kill()
        self.proxy.target = None
        time.sleep(seconds)
        self.broker.start()

    def restart(self, seconds: float) -> None:
        self.broker.stop()
        self.proxy.target = None
        time.sleep(seconds)
        self.broker.start()

    def cut(self, seconds: float) -> None:
        """Closes half of the connections, or all, or all repeatedly."""
        self.proxy.cut((lambda _: self.random.random() < 0.5) if self.random.random() < 0.5 else (lambda _: True))
        if self.random.random() < 0.3:
            time.sleep(seconds)
            self.proxy.cut()

    def delay(self, seconds: float) -> None:
        self.proxy.delay_s = self.random.uniform(*DELAY_S)
        time.sleep(seconds)
        self.proxy.calm()

    def silence(self, seconds: float) -> None:
        self.proxy.is_silent = True
        time.sleep(seconds)
        self.proxy.calm()

    def late(self, seconds: float) -> None:
        """Makes requests of some kinds late, so that they arrive after their time-out."""
        keys = self.random.sample(sorted(LATE), self.random.randint(1, 2))
        self.proxy.late({key: 0 if self.plan.late_of_old else LATE[key] for key in keys}, seconds)
        time.sleep(0.5)
        self.proxy.late({}, 0)

    def isolate(self, seconds: float) -> None:
        self._lose(self.network.isolate, seconds)

    def mute(self, seconds: float) -> None:
        self._lose(self.network.mute, seconds)

    def deafen(self, seconds: float) -> None:
        self._lose(self.network.deafen, seconds)

    def part(self, seconds: float) -> None:
        self._lose(self.network.part, seconds)

    def slow(self, seconds: float) -> None:
        self._lose(self.network.slow, seconds)

    def skew(self, seconds: float) -> None:
        """Sets the clock of a node, and most often sets it right again."""
        assert isinstance(self.broker, Cluster)
        self.broker.skew(self.random.choice(SKEWS_S))
        time.sleep(seconds)
        if self.random.random() < 0.7:
            self.broker.skew(0)

    def _lose(self, begin: Callable[[], None], seconds: float) -> None:
        begin()
        time.sleep(seconds)
        self.network.calm()

    def pause(self, seconds: float) -> None:
        self.broker.pause()
        time.sleep(seconds)
        self.broker.resume()
