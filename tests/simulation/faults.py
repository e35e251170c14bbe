"""The faults of a run: how each begins and ends, for processes and connections.

Knows nothing of checks and plans. Each fault has its own randomness, so that the rest of a plan is the same without it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from tests.simulation.cluster import CONTROLLER, SimulatedCluster
from tests.simulation.invariants import is_registered
from tests.simulation.network import Stream
from tests.simulation.node import SimulatedNode
from tests.simulation.votes import Votes

DISK_DELAY_S = 0.002
"""The maximum delay of a disk operation, unless the disk is slow."""
RETRY_S = 1.0
"""The time after which a failed node is started again."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault with its time and duration. :param node: the affected node"""

    at: float
    kind: str
    node: int
    seconds: float
    chance: int

    def __str__(self) -> str:
        return f"{self.kind} of {self.node} for {self.seconds:.3f} s"


Undo = Callable[[], object]


class Faults:
    """Injects faults into a cluster.

    :param clients: names of the clients, which can be disconnected, too
    :param kinds: the kinds of faults, by their names in a plan
    :param votes: the votes of the quorum's voters
    """

    def __init__(
        self, cluster: SimulatedCluster, clients: Sequence[str], kinds: "Mapping[str, Kind]", votes: Votes
    ) -> None:
        self.cluster, self.clients, self.kinds, self.votes = cluster, clients, kinds, votes
        self.loop, self.network = cluster.loop, cluster.network
        self.failing: set[int] = set()  #: nodes with failing disks, which may stop at any moment
        self._scripts: set[asyncio.Task[None]] = set()  # those that still run, such as restarts
        self._context = copy_context()  # of no node, since a fault may begin when a node sends a message
        self._forgetful: int | None = None  # the node whose disk has lost records, until all are in sync
        self._cut_off: Counter[int] = Counter()  # nodes that others may take for dead
        self.done = 0

    async def inflict(self, plan: Sequence[Fault]) -> None:
        """Injects all faults of a plan, and returns when the last one has ended and everything is restored."""
        tasks = [self.loop.create_task(self._one(fault)) for fault in plan]
        await asyncio.gather(*tasks)
        self.watch()
        while self._scripts:
            await asyncio.wait(self._scripts)

    async def _one(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at - self.loop.now)
        undo = self.kinds[fault.kind](self, fault, Random(fault.chance))
        if undo is None:
            return
        self.done += 1
        self.network.say(f"--- {fault}")
        await asyncio.sleep(fault.seconds)
        undo()
        self.network.say(f"--- end of the {fault.kind} of {fault.node}")

    def later(self, seconds: float, then: Undo) -> None:
        """Calls ``then`` after a while; :meth:`inflict` waits for it."""

        async def wait() -> None:
            await asyncio.sleep(seconds)
            then()

        self.do(wait())

    def do(self, script: Coroutine[Any, Any, None]) -> None:
        """Runs a script of any duration; :meth:`inflict` waits for it."""
        task = self.loop.create_task(script, context=self._context)
        self._scripts.add(task)
        task.add_done_callback(self._scripts.discard, context=self._context)

    # ------------------------------------------------------------ processes

    def kill(self, fault: Fault, chance: Random) -> Undo | None:
        """Kills a process. Its disk keeps all writes, which are in the page cache."""
        return self.killed(fault.node, power_cut=False)

    def power_cut(self, fault: Fault, chance: Random) -> Undo | None:
        """Cuts the power of a machine. Its disk loses what was not fsynced.

        Kafka guarantees nothing if that happens to all replicas at once, so each other replica has all records then.
        """
        node = self.cluster.nodes[fault.node]
        if node.role == CONTROLLER:  # the metadata log is always fsynced
            return self.killed(fault.node, power_cut=True)
        power_cut = self.may_forget(fault.node)
        if power_cut:
            self._forgetful = fault.node
        return self.killed(fault.node, power_cut=power_cut)

    def forgets(self, node_id: int) -> None:
        """Records that a broker's disk has lost records."""
        self._forgetful = node_id

    def may_forget(self, node_id: int) -> bool:
        """Returns whether a broker's disk may lose unsynced records: all others are up, and stay up."""
        node, others = self.cluster.nodes[node_id], self.failing | self._cut_off.keys()
        return node.server is not None and self._all_in_sync(node_id) and not others - {node_id}

    def cut_off(self, *node_ids: int) -> Undo | None:
        """Says of nodes that others may take them for dead, until the returned function is called.

        Returns None if that must not be: a partition would be left to the broker whose disk has lost records. Its old
        registration is valid for a while, and whoever is the last in the ISR is elected.
        """
        if self._is_left_to_the_forgetful({*node_ids, *self._cut_off}):
            return None
        self._cut_off.update(node_ids)

        def undo() -> None:
            self._cut_off.subtract(node_ids)
            self._cut_off = +self._cut_off

        return undo

    def _is_left_to_the_forgetful(self, away: set[int]) -> bool:
        """Returns whether no replica of a partition has all records, without these nodes, and those that are not up."""
        if self._all_in_sync():
            self._forgetful = None
        forgetful, brokers = self._forgetful, self.cluster.brokers()
        away = away | (set(self.cluster.broker_ids) - brokers.keys())
        return forgetful is not None and any(
            forgetful in part.isr and set(part.isr) <= {*away, forgetful}
            for broker in brokers.values()
            for topic in broker.image.topics_by_id.values()
            for part in topic.partitions.values()
        )

    def killed(self, node_id: int, *, power_cut: bool) -> Undo | None:
        """Kills a process, even while it starts, if others have its records. Returns a function that restarts it."""
        node = self.cluster.nodes[node_id]
        if node.life is None or self.is_alone(node_id):
            return None
        self.network.say(f"{node_id} is killed{', and its disk forgets' * power_cut}")
        node.kill(power_cut=power_cut)
        return lambda: self.revive(node)

    def is_alone(self, node_id: int) -> bool:
        """Returns whether a node may be the only one with all records, since another one's disk has lost some.

        The other one may still be in the ISR, until it is in sync again. If all others stop uncleanly then, Kafka
        elects it, and acknowledged records are lost: no replica is eligible, and the last known leader is elected
        (KIP-966).
        """
        if self._forgetful in (None, node_id) or self.cluster.nodes[node_id].role == CONTROLLER:
            return False
        if self._all_in_sync() or self._is_back(self._forgetful):
            self._forgetful = None
        return self._forgetful is not None

    def _is_back(self, forgetful: int | None) -> bool:
        """Returns whether the process after a broker's disk has lost records is registered: it was removed from all
        ISRs.

        Only brokers with several log directories need that: while one of them has lost a directory, not all replicas
        come in sync.
        """
        broker = None if forgetful is None else self.cluster.brokers().get(forgetful)
        has_several = len(self.cluster.directories) > 1
        return has_several and broker is not None and is_registered(broker, broker.image)

    def _all_in_sync(self, but: int | None = None) -> bool:
        """Returns whether all brokers are up, and all replicas in sync.

        :param but: a broker that may be out of sync: the leaders' state of it is ignored
        """
        brokers = self.cluster.brokers()
        images = [broker.image for broker in brokers.values()]
        return len(brokers) == len(self.cluster.broker_ids) and all(
            len(part.isr) == len(part.replicas) or (but is not None and but not in part.isr and len(part.isr) > 1)
            for image in images
            for topic in image.topics_by_id.values()
            for part in topic.partitions.values()
        )

    def stop(self, fault: Fault, chance: Random) -> Undo | None:
        """Stops a process cleanly."""
        node = self.cluster.nodes[fault.node]
        life = node.life
        if node.server is None or life is None or life.is_paused or (release := self.cut_off(node.id)) is None:
            return None
        stopping = node.stop()

        async def start_again() -> None:
            while not stopping.done() and node.life is life and self.is_alone(node.id):
                await asyncio.sleep(RETRY_S)
            release()
            if not stopping.done() and node.life is life:
                self.network.say(f"{node.id} does not stop: it is killed")
                node.kill(power_cut=False)
            await self._revive(node)

        return lambda: self.do(start_again())

    def pause(self, fault: Fault, chance: Random) -> Undo | None:
        """Suspends a process, and resumes it (SIGSTOP, SIGCONT)."""
        node = self.cluster.nodes[fault.node]
        if node.life is None or node.life.is_paused or (release := self.cut_off(node.id)) is None:
            return None
        node.pause()

        def undo() -> None:
            node.resume()
            release()

        return undo

    def revive(self, node: SimulatedNode) -> None:
        """Starts a node that does not run, repeatedly until it is up."""
        self.do(self._revive(node))

    async def _revive(self, node: SimulatedNode) -> None:
        while node.life is None and not node.is_gone:
            self.network.say(f"{node.id} starts")
            starting, life = node.start(), node.life
            while not starting.done() and node.life is life:
                await asyncio.sleep(0.05)
            if node.life is not life:
                if starting.done():
                    starting.exception()  # for which :meth:`watch` has killed it
                await asyncio.sleep(RETRY_S)
            elif (error := starting.exception()) is not None:
                self.network.say(f"{node.id} cannot start: {error!r}")
                node.kill(power_cut=False)
                await asyncio.sleep(RETRY_S)

    def watch(self) -> None:
        """Restarts nodes that have reported a fatal error, or have lost a log directory whose disk works again."""
        for node in self.cluster.nodes.values():
            if node.fatal and node.life is not None:
                node.fatal.clear()
                is_starting = node.server is None  # a start in progress
                node.kill(power_cut=False)
                if not is_starting:
                    self.later(RETRY_S, partial(self.revive, node))
            elif node.id not in self.failing and node.lost_directories:
                revive = self.killed(node.id, power_cut=False)
                if revive is not None:
                    self.later(RETRY_S, revive)

    # ------------------------------------------------------------ the network

    def isolation(self, fault: Fault, chance: Random) -> Undo | None:
        """Disconnects a node from the others, in one direction or both, and sometimes from the clients."""
        release = self.cut_off(fault.node)
        if release is None:
            return None
        me, others = str(fault.node), [str(each) for each in self.cluster.nodes if each != fault.node]
        if chance.random() < 0.3:
            others = chance.sample(others, 1)
        if chance.random() < 0.4:
            others = [*others, *self.clients]
        ways = chance.choice([1, 2, 3])
        pairs: set[tuple[str, str | int]] = {(me, other) for other in others if ways & 1}
        pairs |= {(other, me) for other in others if ways & 2}
        self.network.say(f"held up: {', '.join(f'{sender} -> {target}' for sender, target in sorted(pairs))}")
        self.network.blocked |= pairs

        def undo() -> None:
            self.network.blocked -= pairs
            release()

        return undo

    def cuts(self, fault: Fault, chance: Random) -> Undo | None:
        """Closes connections of a node in the middle of a message, one after the other."""
        return self._end_connections(fault, chance, self.network.cut, "is cut")

    def half_open(self, fault: Fault, chance: Random) -> Undo | None:
        """Closes one end of connections of a node, one after the other: the other end does not learn of it."""
        return self._end_connections(fault, chance, self.network.halve, "is open at the other end only")

    def _end_connections(
        self, fault: Fault, chance: Random, end_one: Callable[[Stream], object], how: str
    ) -> Undo | None:
        end = self.loop.now + fault.seconds
        pause = chance.choice([0.02, 0.1, 0.5])

        def again() -> None:
            found = [each for each in self.network.streams if str(fault.node) in (each.life.name, each.other.life.name)]
            if found:
                stream = chance.choice(found)
                self.network.say(f"the connection {stream.port} of {stream.life.name} {how}")
                end_one(stream)
            if self.loop.now < end:
                self.loop.call_later(chance.uniform(0, 2 * pause), again)

        again()
        return lambda: None

    def delays(self, fault: Fault, chance: Random) -> Undo | None:
        """Delays messages. The messages of one connection stay in order, those of several connections do not."""
        release = self.cut_off(*self.cluster.broker_ids)
        if release is None:
            return None
        share, late_s = chance.choice([0.01, 0.1, 0.5]), chance.choice([0.05, 0.5, 3.0])
        self.network.late, self.network.late_s = share, late_s

        def undo() -> None:
            self.network.late = 0.0
            self.loop.call_later(late_s, release)  # heartbeats may be on their way until then

        return undo


Kind = Callable[[Faults, Fault, Random], Undo | None]
"""Injects a fault, and returns a function that ends it; None if it is not possible now."""


def voter_of(node: SimulatedNode) -> Any:
    """Returns the quorum client of a running node."""
    return None if node.server is None else getattr(node.server.node, "quorum", None)
