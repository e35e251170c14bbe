"""A node of a simulation: a real ``Server`` on simulated connections and a simulated disk.

Knows nothing of the other nodes.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from barnabas.clock import Timer
from barnabas.cluster.formatting import Node as FormattedNode
from barnabas.cluster.formatting import Voter, format_directories
from barnabas.config import BrokerConfig
from barnabas.log import meta_properties
from barnabas.server.server import Server
from barnabas.testing.faults import FaultyFile, FaultyFiles, parent_of
from tests.simulation.loop import Life, SimulatedBackground, SimulatedLoop
from tests.simulation.network import Network

DIRECTORY = "/barnabas"
SECOND_DIRECTORY = "/second"
ROUNDING_S = 1e-9
"""The additional delay of a timer of a fast or slow clock, so that it never fires before its time."""


class NodeClock:
    """The clock of one machine, which may differ from the others."""

    START_MS = 1_700_000_000_000

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.skew_ms = 0
        self.has_jumped = False
        self.rate = 1.0  #: its seconds per second of the loop
        self._ahead = 0.0

    def jump(self, ms: int) -> None:
        """Turns the clock forward or back."""
        self.skew_ms += ms
        self.has_jumped = True

    def run_at(self, rate: float) -> None:
        """Makes the clock fast or slow from now on."""
        self._ahead += self._loop.now * (self.rate - rate)
        self.rate = rate

    @property
    def is_ahead(self) -> bool:
        """Whether it has run fast or slow: then it differs from the loop's by what is rounded, too."""
        return self._ahead != 0.0

    def time_ms(self) -> int:
        return self.START_MS + self.skew_ms + round(self.monotonic() * 1000)

    def monotonic(self) -> float:
        return self._loop.now * self.rate + self._ahead


class NodeScheduler:
    """The timers of one machine, at the rate of its clock."""

    def __init__(self, loop: SimulatedLoop, clock: NodeClock) -> None:
        self._loop, self._clock = loop, clock

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Timer:
        if (rate := self._clock.rate) != 1.0 or self._clock.is_ahead:
            delay = delay / rate + ROUNDING_S
        return self._loop.call_later(delay, callback, *args)


class SimulatedNode:
    """A node and its disk, which outlives its process.

    :param properties: its configs, without ids and directories
    :param directories: its log directories, each of which is a disk of its own; the first has the metadata log
    """

    def __init__(
        self,
        node_id: int,
        properties: Mapping[str, str],
        network: Network,
        random: Random,
        directories: Sequence[str] = (DIRECTORY,),
    ) -> None:
        self.id, self.name = node_id, str(node_id)
        self.network, self.random = network, random
        self.loop: SimulatedLoop = network.loop
        self.clock = NodeClock(self.loop)
        self.properties = {
            "num.recovery.threads.per.data.dir": "1",
            **properties,
            "node.id": self.name,
            "log.dirs": ",".join(directories),
        }
        self.directories = directories
        self.role = properties["process.roles"]
        self.process: Server | None = None  #: from its start to its end
        self.server: Server | None = None  #: while it is up
        self.life: Life | None = None
        self.fatal: list[str] = []  #: its fatal errors
        self.is_gone = False  #: whether it is no part of the cluster
        self._disk_error: tuple[int, tuple[str, ...]] | None = None
        self._failing_directory = ""  # the one whose disk may fail; else all of them
        self.disk_delay_s = 0.002
        self.written = hashlib.blake2b(digest_size=16)
        self.starting: asyncio.Task[None] | None = None
        self.files = self._watched(FaultyFiles(clock=self.clock))
        self.disk = 0  #: how often another disk was put in
        self.has_forgotten = False  #: whether a power cut has removed unsynced changes, such as truncations

    @property
    def disk_error(self) -> tuple[int, tuple[str, ...]] | None:
        """The error number with which changes of some kinds fail on its disk, until it is None again."""
        return self._disk_error

    @disk_error.setter
    def disk_error(self, error: tuple[int, tuple[str, ...]] | None) -> None:
        self._disk_error = error
        if error is None:
            self.files.succeed()
        else:
            self.files.fail_now(error[0], *error[1])

    def confine_failures(self, directory: str) -> None:
        """Has errors of the disk happen in this log directory only, or in all of them if it is empty."""
        self._failing_directory = self.files.under = directory

    @property
    def lost_directories(self) -> list[str]:
        """The log directories that the running process does not use any more."""
        manager = None if self.server is None else self.server.node.log_manager
        return [] if manager is None else [each.path for each in manager.directories if each.offline is not None]

    def empty(self, directory: str) -> None:
        """Replaces the disk of a log directory of a node that does not run by an empty one."""
        assert self.life is None, f"node {self.id} runs"
        self.files.delete_tree(directory)
        self.files.makedirs(directory)
        self.files.fsync_path(parent_of(directory))
        self.has_forgotten = True
        self.disk += 1

    def put_in(self, files: FaultyFiles) -> None:
        """Replaces the disk of a node that does not run."""
        assert self.life is None, f"node {self.id} runs"
        self.files = self._watched(files)
        self.disk += 1

    def put_in_empty(self) -> None:
        """Replaces the disk of a node that does not run by an empty one, which works."""
        self.disk_error = None
        self.put_in(FaultyFiles(clock=self.clock))

    def _watched(self, files: FaultyFiles) -> FaultyFiles:
        files.on_write, files.under = self._wrote, self._failing_directory
        if self._disk_error is not None:
            files.fail_now(self._disk_error[0], *self._disk_error[1])
        return files

    def _wrote(self, file: FaultyFile, data: bytes) -> None:
        self.written.update(f"{self.loop.now!r} {file.path} {len(data)} ".encode() + data)

    def format(
        self, cluster_id: str, voters: Sequence[Voter], levels: Mapping[str, int], *, joins: bool = False
    ) -> None:
        """Formats the log directories that are not.

        :param voters: those of a dynamic quorum; none if the configs name them
        :param levels: those of the features of a new cluster
        :param joins: whether it is a controller without initial voters, which is to join a dynamic quorum
        """
        directories = list(self.directories)
        node = FormattedNode(cluster_id, self.id, directories, DIRECTORY, voters, not voters and not joins)
        now_ms, random_bytes = self.clock.time_ms(), self.random.randbytes
        format_directories(
            self.files, node, levels, (), ignore_formatted=True, now_ms=now_ms, random_bytes=random_bytes
        )
        self.files.keep()

    @property
    def directory_id(self) -> bytes:
        """The id of its log directory, of several the one with the metadata log."""
        found = meta_properties.read(self.files, DIRECTORY)
        assert found is not None
        return found.directory_id

    @property
    def is_running(self) -> bool:
        return self.server is not None

    @property
    def has_failed_to_start(self) -> bool:
        """Whether its last start has ended, and it is not up."""
        if self.starting is None or not self.starting.done() or self.is_running:
            return False
        self.starting.exception()  # the loop need not tell of it
        return True

    def start(self) -> "asyncio.Task[None]":
        """Starts the process; the task ends when the node is up, or its start has failed."""
        assert self.life is None, f"node {self.id} runs"
        life = self.life = Life(self.name)
        self.starting = self.loop.create_task(self._run(life), context=life.context)
        return self.starting

    async def _run(self, life: Life) -> None:
        server = Server(
            BrokerConfig.from_properties(self.properties, dev=True),
            files=self.files,
            clock=self.clock,
            scheduler=NodeScheduler(self.loop, self.clock),
            random=Random(self.random.getrandbits(64)),
            on_fatal=self._failed,
            bind=self.network.bind,
            new_background=self._background,
        )
        self.process = server
        await server.start()
        self.server = server

    def _background(self, call_soon: Callable[..., object], name: str) -> SimulatedBackground:
        return SimulatedBackground(self.loop, lambda: self.random.uniform(0, self.disk_delay_s))

    def _failed(self, reason: str) -> None:
        self.fatal.append(reason)
        self.network.say(f"{self.name} cannot go on: {reason}")

    def stop(self) -> "asyncio.Task[None]":
        """Stops the process cleanly; the task ends when it has stopped."""
        life, server = self.life, self.server
        assert life is not None
        assert server is not None

        async def stop() -> None:
            await server.stop()
            if self.life is life:
                self.kill(power_cut=False)

        self.server = None
        return self.loop.create_task(stop(), context=life.context)

    def kill(self, *, power_cut: bool) -> None:
        """Kills the process. :param power_cut: whether its disk may lose unsynced writes"""
        life, self.life, self.server, self.process = self.life, None, None, None
        if life is None:
            return
        life.is_dead = True
        self.has_forgotten |= power_cut
        self.network.kill(life)
        self.files = self._watched(self.files.survivor(power_cut=power_cut, chance=self.random))

    def pause(self) -> None:
        """Suspends the process (SIGSTOP)."""
        if self.life is not None:
            self.life.is_paused = True

    def resume(self) -> None:
        """Resumes the process (SIGCONT)."""
        if self.life is not None and self.life.is_paused:
            self.loop.resume(self.life)
