"""One run of a simulation, from a seed to its result: a cluster, clients, faults.

Knows nothing of how runs are selected and shown.
"""

import asyncio
import gc
import logging
import warnings
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.cluster.features import FEATURES, METADATA_VERSION
from tests.history.records import History
from tests.simulation.casts import Cast
from tests.simulation.cluster import BROKER, COMBINED, CONTROLLER, SimulatedCluster
from tests.simulation.faults import Fault, Faults
from tests.simulation.generations import epochs_of, is_ambiguous
from tests.simulation.invariants import Broken, Invariants
from tests.simulation.levels import first_levels, is_made_dynamic, is_of_streams, is_switched
from tests.simulation.loop import LIFE, SimulatedLoop, Stuck
from tests.simulation.network import latency_of
from tests.simulation.plans import KINDS, plan
from tests.simulation.storage import SEVERAL, compacts, directories, expires, storage

SHAPES = ((COMBINED,) * 3, (CONTROLLER,) + (BROKER,) * 3, (CONTROLLER,) * 3 + (BROKER,) * 3)
DYNAMIC = 0.4
"""The share of seeds with several controllers whose voters come and go."""
CHECK_S = 0.01
"""The interval of the checks of invariants, in seconds."""
SETTLE_S = 60
"""The time within which a cluster has to recover after all faults, in seconds."""


@dataclass(slots=True)
class Outcome:
    """The result of a run."""

    seed: int
    digest: str = ""
    problems: list[str] = field(default_factory=list)
    history: History = field(default_factory=History)
    faults: dict[int, Fault] = field(default_factory=dict)  #: by their numbers in the plan
    messages: int = 0
    checks: int = 0
    virtual_s: float = 0.0


class Run:
    """A run of a seed.

    :param faulty: whether there are faults
    :param is_dynamic: whether voters of several controllers come and go; None leaves it to the seed
    :param stored: the configs of the logs; None leaves them to the seed
    :param several: the share of seeds whose brokers have several log directories
    :param latency_s: the least and the most latency of a message, in seconds; None leaves it to the seed
    :param kinds: the kinds of faults
    :param left_out: the numbers of faults that are left out
    :param until: seconds after which faults and load end; the plan stays the same
    """

    def __init__(
        self,
        seed: int,
        *,
        seconds: float = 20.0,
        roles: Sequence[str] | None = None,
        faulty: bool = False,
        is_dynamic: bool | None = None,
        stored: Mapping[str, str] | None = None,
        several: float = SEVERAL,
        latency_s: tuple[float, float] | None = None,
        kinds: Sequence[str] = tuple(KINDS),
        left_out: Container[int] = (),
        until: float | None = None,
        trace: Callable[[str], object] | None = None,
    ) -> None:
        self.random = Random(seed)
        self.seconds, self.faulty, self.left_out, self.kinds = seconds, faulty, left_out, kinds
        self.until = seconds if until is None else until
        self.outcome = Outcome(seed)
        self.loop = SimulatedLoop()
        roles = roles or self.random.choice(SHAPES)
        is_chosen = self.random.random() < DYNAMIC
        is_dynamic = (is_chosen if is_dynamic is None else is_dynamic) and len(roles) - roles.count(BROKER) > 1
        chance = Random(self.random.getrandbits(64))
        drawn = storage(self._chance())
        configs = drawn if stored is None else stored
        levels = first_levels(seed)
        self.cluster = SimulatedCluster(
            self.loop,
            chance,
            roles,
            is_dynamic=is_dynamic,
            configs=configs,
            levels=levels,
            directories=directories(seed, levels[METADATA_VERSION], several),
            latency_s=latency_s or latency_of(seed),
            trace=trace,
        )
        self.cluster.network.ends_with_sender = is_ambiguous
        self.invariants = Invariants(self.cluster, compacts=compacts(configs))
        has_operator = len(roles) - roles.count(BROKER) > 1 and (is_dynamic or is_made_dynamic(seed))
        self.cast = Cast(
            self.cluster,
            self.outcome.history,
            self._chance(),
            expires=expires(configs),
            is_of_streams=is_of_streams(seed),
            is_switched=is_switched(seed) and levels[METADATA_VERSION] == FEATURES[METADATA_VERSION].last,
            has_operator=has_operator,
        )

    def execute(self) -> Outcome:
        """Executes the run."""
        outcome = self.outcome
        try:
            self.loop.run_until_complete(self._checked())
        finally:
            outcome.digest = self.cluster.digest()
            outcome.messages, outcome.virtual_s = self.cluster.network.messages, self.loop.now
            outcome.checks = self.invariants.checks
            self.cluster.close()
            self.loop.close()
        outcome.problems += self.loop.errors
        outcome.problems += self.cast.problems()
        return outcome

    async def _checked(self) -> None:
        """Runs until the end, or the first failure."""
        work, checks = self.loop.create_task(self._run()), self.loop.create_task(self._check())
        await asyncio.wait((work, checks), return_when=asyncio.FIRST_COMPLETED)
        for task in (checks, work):
            if task.done() and (error := task.exception()) is not None:
                if not isinstance(error, AssertionError | Stuck):
                    raise error
                self.outcome.problems.append(str(error) or repr(error))
                self.cluster.network.say(f"*** {error}")
                return

    async def _check(self) -> None:
        while True:
            self.invariants.check()
            if self.loop.errors:
                raise Broken("an error that nobody has caught")
            await asyncio.sleep(CHECK_S)

    async def _run(self) -> None:
        await self._within(60, self.cluster.start(), "the cluster does not start")
        await self._within(30, self.cast.prepare(), "no topic is created")
        self.cast.start()
        await self._go_wrong()
        for client in self.cast.clients:
            client.is_stopping = True
        await self._ended(SETTLE_S)
        await self.cast.conclude(SETTLE_S)
        await self._reported(SETTLE_S)
        self.invariants.conclude()

    async def _go_wrong(self) -> None:
        """Runs for the time of the run, with its faults."""
        begin, end, chance = self.loop.now, self.loop.now + self.seconds, self._chance()
        if self.faulty:
            faults = Faults(self.cluster, [client.name for client in self.cast.clients], KINDS, self.invariants.votes)
            nodes = [each.id for each in self.cluster.nodes.values() if not each.is_gone]
            found = plan(chance, nodes, begin, end, self.kinds)
            chosen = self.outcome.faults
            chosen |= {number: fault for number, fault in enumerate(found) if number not in self.left_out}
            inflicted = [fault for fault in chosen.values() if fault.at < begin + self.until]
            self._watching = self.loop.create_task(self._watch(faults))  # a disk's error may be noticed after the fault
            await self._within(self.seconds + 2 * SETTLE_S, faults.inflict(inflicted), "nodes do not come up")
        await asyncio.sleep(max(0.0, begin + self.until - self.loop.now))

    @staticmethod
    async def _watch(faults: Faults) -> None:
        while True:
            faults.watch()
            await asyncio.sleep(0.1)

    async def _ended(self, seconds: float) -> None:
        tasks = {client.name: client.task for client in self.cast.clients if client.task is not None}
        await asyncio.wait(tasks.values(), timeout=seconds)
        for name, task in tasks.items():
            if not task.done():
                self.outcome.problems.append(f"{name} does not end")
            elif (error := task.exception()) is not None:
                self.outcome.problems.append(f"{name}: {error!r}")

    async def _reported(self, seconds: float) -> None:
        """Waits until the metadata has the directories of all replicas. :raises AssertionError: it lacks one"""
        end = self.loop.now + seconds
        while missing := next(self.cluster.misplaced(), None):
            assert self.loop.now < end, f"the metadata lacks the log directory: {missing}"
            await asyncio.sleep(CHECK_S)

    def _chance(self) -> Random:
        return Random(self.random.getrandbits(64))

    async def _within(self, seconds: float, work: Any, complaint: str) -> None:
        try:
            async with asyncio.timeout(seconds):
                await work
        except TimeoutError:
            raise AssertionError(complaint) from None


class Teller(logging.Handler):
    """Adds log lines of nodes to the trace."""

    def __init__(self, trace: Callable[[str], object]) -> None:
        super().__init__(logging.INFO)
        self.trace = trace
        self.loop: SimulatedLoop | None = None

    def emit(self, record: logging.LogRecord) -> None:
        life, now = LIFE.get(), self.loop.now if self.loop is not None else 0.0
        self.trace(f"{now:12.6f} {life.name if life else '-'} | {record.getMessage()}")


@contextmanager
def quietly(teller: Teller | None) -> Iterator[None]:
    """Redirects the log lines of nodes to the trace, and frees the nodes before the next run begins.

    Without the garbage collector nothing is freed: the process ends with this run.
    """
    logger, was_collecting = logging.getLogger("barnabas"), gc.isenabled()
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO if teller is not None else logging.CRITICAL + 1)
    logger.propagate = False
    if teller is not None:
        logger.addHandler(teller)
    gc.disable()
    try:
        yield
        logger.setLevel(logging.CRITICAL + 1)
        if was_collecting:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of tasks that a killed node had not begun
                gc.collect()
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        if teller is not None:
            logger.removeHandler(teller)
        if was_collecting:
            gc.enable()


def run(seed: int, *, trace: Callable[[str], object] | None = None, **settings: Any) -> Outcome:
    """Runs a seed, and returns the outcome."""
    teller = None if trace is None else Teller(trace)
    with quietly(teller), epochs_of(seed):
        one = Run(seed, trace=trace, **settings)
        if teller is not None:
            teller.loop = one.loop
        outcome = one.execute()
        if teller is not None:
            teller.loop = None
        del one
    return outcome
