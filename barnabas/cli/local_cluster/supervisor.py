"""Starts the nodes of a cluster as processes, watches them, and executes commands on them.

Knows nothing of the nodes' properties. Commands arrive over a Unix socket that only this user can open; a file in the
cluster's directory has its path.
"""

import asyncio
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from barnabas.cli.local_cluster.layout import NodeFiles
from barnabas.server.parent import when_it_ends
from barnabas.server.run import when_told_to_stop

CONTROL_FILE = "control"
READY = b"Barnabas "
"""The beginning of the line that a node prints when it answers requests."""

LONGEST_STOP_S = 60.0
"""How long a node may take for a clean stop, before it is killed."""

ORDERS = ("start", "stop", "kill", "restart")


class NodeFailed(Exception):
    """A node has ended before it answered. The text names its log file."""


class NodeProcess:
    """One node."""

    def __init__(self, files: NodeFiles, arguments: Sequence[str], report: Callable[[str], object]) -> None:
        self.files = files
        self._arguments = arguments
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._is_expected = False  # that the process ends

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def state(self) -> str:
        return "stopped" if self._process is None else f"runs as process {self._process.pid}"

    async def start(self) -> None:
        """Starts the node, and returns when it answers.

        :raises NodeFailed: it ends before that
        """
        if self._process is not None:
            return
        log = self.files.log.open("ab")
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "barnabas.cli.local_cluster.node", str(self.files.properties), *self._arguments),
                *("--ready-file", str(self.files.ready)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # signals of the terminal reach the supervisor only
            )
        finally:
            log.close()
        self._process, self._is_expected = process, False
        ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watch = asyncio.create_task(self._follow(process, ready))
        if not await ready:
            await self._watch
            raise NodeFailed(f"Node {self.files.node_id} has not started: see {self.files.log}")

    async def _follow(self, process: asyncio.subprocess.Process, ready: "asyncio.Future[bool]") -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if not ready.done() and line.startswith(READY):
                ready.set_result(True)
        code = await process.wait()
        self._process = None
        if not ready.done():
            ready.set_result(False)
        elif not self._is_expected:
            self._report(f"Node {self.files.node_id} has ended by itself, with code {code}: see {self.files.log}")

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Sends the signal, and returns when the process has ended."""
        process, watch = self._process, self._watch
        if process is None or watch is None:
            return
        self._is_expected = True
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            await asyncio.wait_for(asyncio.shield(watch), LONGEST_STOP_S)
        except TimeoutError:
            self._report(f"Node {self.files.node_id} has not stopped in {LONGEST_STOP_S:.0f} s, and is killed")
            with suppress(ProcessLookupError):
                process.kill()
            await watch


class Supervisor:
    """The nodes of one cluster."""

    def __init__(
        self, directory: Path, nodes: Sequence[NodeFiles], arguments: Sequence[str], report: Callable[[str], object]
    ) -> None:
        """:param arguments: of ``barnabas serve``, beside the properties

        :param report: is called with messages about unexpected events
        """
        self._directory = directory
        self._nodes = {files.node_id: NodeProcess(files, arguments, report) for files in nodes}

    async def run(self, ready: Callable[[], object], parent_pid: int | None = None) -> None:
        """Runs the cluster until SIGTERM or SIGINT. ``ready`` is called once all nodes answer.

        :param parent_pid: a process; the cluster stops when it ends
        :raises NodeFailed: a node does not start
        :raises OSError: the socket for commands cannot be created
        """
        stopping = asyncio.Event()
        when_told_to_stop(asyncio.get_running_loop(), stopping.set)
        if parent_pid is not None:
            when_it_ends(parent_pid, asyncio.get_running_loop(), stopping.set)
        ended = asyncio.create_task(stopping.wait())
        with ExitStack() as cleanup:
            server = await self._listen(cleanup)
            starting = asyncio.create_task(self._start())
            try:
                await asyncio.wait((starting, ended), return_when=asyncio.FIRST_COMPLETED)
                if starting.done():
                    starting.result()
                    ready()
                    await ended
            finally:
                server.close()
                starting.cancel()
                await self._stop()

    async def _start(self) -> None:
        """Starts all nodes at once: the controllers need each other, and brokers wait for them."""
        results = await asyncio.gather(*(node.start() for node in self._nodes.values()), return_exceptions=True)
        for failure in filter(None, results):
            raise failure

    async def _stop(self) -> None:
        """Stops the brokers, then the controllers, which the brokers need for their controlled shutdown."""
        for is_controller in (False, True):
            which = [node for node in self._nodes.values() if node.files.settings().is_controller == is_controller]
            await asyncio.gather(*(node.stop() for node in which))

    # ------------------------------------------------------------ orders

    async def _listen(self, cleanup: ExitStack) -> asyncio.AbstractServer:
        if not hasattr(asyncio, "start_unix_server"):
            raise OSError("a cluster takes orders by a Unix socket, which this system does not have")
        # In a private directory of its own, whose path is short enough for a socket.
        path = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="barnabas-"))) / CONTROL_FILE
        server = await asyncio.start_unix_server(self._serve, str(path))
        control = self._directory / CONTROL_FILE
        control.write_text(str(path), "utf-8")
        cleanup.callback(control.unlink, missing_ok=True)
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write((await self._obey((await reader.readline()).decode().split())).encode())
            await writer.drain()
        except ConnectionError:
            pass  # the sender of the command does not wait for its end
        finally:
            writer.close()

    async def _obey(self, order: list[str]) -> str:
        """Executes a command, and returns its output: a line that begins with "Error" if it fails."""
        if order == ["status"]:
            return "".join(
                f"Node {node_id} at {node.files.address}: {node.state}\n" for node_id, node in self._nodes.items()
            )
        name, text = order if len(order) == 2 else ("", "")
        node = self._nodes.get(int(text)) if text.isdecimal() else None
        if name not in ORDERS or node is None:
            return f"Error: there is no node {text}, but {', '.join(map(str, self._nodes))}\n"
        if name != "start":
            await node.stop(signal.SIGKILL if name == "kill" else signal.SIGTERM)
        try:
            if name in ("start", "restart"):
                await node.start()
        except NodeFailed as failure:
            return f"Error: {failure}\n"
        return f"Node {text}: {node.state}\n"


def tell(directory: Path, *order: str) -> str:
    """Sends a command to the supervisor of the cluster in that directory, and returns its output.

    :raises OSError: no cluster runs there
    """
    path = (directory / CONTROL_FILE).read_text("utf-8")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(f"{' '.join(order)}\n".encode())
        connection.shutdown(socket.SHUT_WR)
        pieces = []
        while piece := connection.recv(4096):
            pieces.append(piece)
    return b"".join(pieces).decode()
