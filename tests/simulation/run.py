"""One run of a simulation: a seed, a cluster, clients, faults; and what came of it.

Knows nothing of how runs are chosen and shown.
"""

import asyncio
import gc
import itertools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.history.checker import judge
from tests.history.records import History
from tests.simulation.clients import Admin, Client, Consumer, Place, Producer, read_to_end
from tests.simulation.cluster import COMBINED, SimulatedCluster
from tests.simulation.loop import SimulatedLoop

ROLES = (COMBINED,) * 3
TOPICS = {"orders": 2}


@dataclass(slots=True)
class Outcome:
    """What came of a run."""

    seed: int
    digest: str = ""
    problems: list[str] = field(default_factory=list)
    history: History = field(default_factory=History)
    messages: int = 0
    virtual_s: float = 0.0


class Run:
    """A run of a seed."""

    def __init__(
        self,
        seed: int,
        *,
        seconds: float = 20.0,
        roles: Sequence[str] = ROLES,
        trace: Callable[[str], object] | None = None,
    ) -> None:
        self.random = Random(seed)
        self.seconds = seconds
        self.outcome = Outcome(seed)
        self.loop = SimulatedLoop()
        self.cluster = SimulatedCluster(self.loop, Random(self.random.getrandbits(64)), roles, trace=trace)
        self.values = itertools.count(1)
        self.clients: list[Client] = []

    def execute(self) -> Outcome:
        """Runs it all."""
        outcome = self.outcome
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            self.loop.run_until_complete(self._run())
        finally:
            outcome.digest = self.cluster.digest()
            outcome.messages, outcome.virtual_s = self.cluster.network.messages, self.loop.now
            self.loop.close()
            if was_collecting:
                gc.enable()
        outcome.problems += self.loop.errors
        outcome.problems += [str(anomaly) for anomaly in judge(outcome.history).anomalies]
        return outcome

    async def _run(self) -> None:
        history = self.outcome.history
        await self._within(60, self.cluster.start(), "the cluster does not start")
        admin = Admin("admin", self.cluster, history, self._chance())
        await self._within(30, self._as(admin, admin.create(TOPICS, replicas=3, configs={})), "no topic is created")
        places: list[Place] = [(topic, index) for topic, count in TOPICS.items() for index in range(count)]

        def value() -> int:
            return next(self.values)

        for number in range(2):
            name = f"producer-{number}"
            self.clients.append(Producer(name, self.cluster, history, self._chance(), places=places, values=value))
            self.clients.append(Consumer(f"consumer-{number}", self.cluster, history, self._chance(), places=places))
        for client in self.clients:
            client.start()
        await asyncio.sleep(self.seconds)
        for client in self.clients:
            client.is_stopping = True
        await self._ended(60)
        for committed in (True, False):
            reader = Consumer(f"end-{committed}", self.cluster, history, self._chance(), places=places)
            reader.committed = committed
            stuck = await self._as(reader, read_to_end(reader, 60))
            history.stuck |= {f"{place[0]}-{place[1]}": reason for place, reason in stuck.items()}

    async def _ended(self, seconds: float) -> None:
        tasks = {client.name: client.task for client in self.clients if client.task is not None}
        await asyncio.wait(tasks.values(), timeout=seconds)
        for name, task in tasks.items():
            if not task.done():
                self.outcome.problems.append(f"{name} does not end")
            elif (error := task.exception()) is not None:
                self.outcome.problems.append(f"{name}: {error!r}")

    def _chance(self) -> Random:
        return Random(self.random.getrandbits(64))

    def _as(self, client: Client, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Does the work in the client's name."""
        return self.loop.create_task(work, context=client.life.context)

    async def _within(self, seconds: float, work: Any, complaint: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                await work
        except TimeoutError:
            raise AssertionError(complaint) from None


def run(seed: int, **settings: Any) -> Outcome:
    """Runs a seed, and returns what came of it."""
    return Run(seed, **settings).execute()
