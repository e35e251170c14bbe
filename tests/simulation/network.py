"""A network of streams under the virtual clock: real bytes, delays, partitions, and closed connections.

Knows nothing of nodes except their names. As with TCP, the bytes of a connection arrive in order or not at all; a
partition delays them until it has ended. Every delivery is in the hash of the run.
"""

import asyncio
import errno
import hashlib
import struct
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.wire.message import Request
from tests.simulation.loop import LIFE, Life, SimulatedLoop

RETRANSMIT_S = 0.2
"""The interval of retransmissions during a partition, in seconds."""
FIRST_PORT = 9092
LATENCIES_S = ((0.0005, 0.008), (0.002, 0.03), (0.01, 0.08))
"""The least and the most latency of a message in seconds, one of these a seed: a near, a wider, and a far network.

The farther, the more is in flight at a fault, and the more records a fetch takes: a far one costs about half.
"""
HASHED = struct.Struct(">dI")
"""Before each message in the hash: the time, and the size."""


class FakeSocket:
    """A listening socket."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def setsockopt(self, *_: Any) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing: nothing listens yet."""


class FakeServer:
    """Accepts connections on one address."""

    def __init__(self, network: "Network", factory: Callable[[], Any], address: tuple[str, int], life: Life) -> None:
        self.network, self.factory, self.address, self.life = network, factory, address, life

    def close(self) -> None:
        if self.network.servers.get(self.address) is self:
            del self.network.servers[self.address]


class Stream(asyncio.Transport):
    """One end of a connection. :param port: of the connecting end, which identifies the connection in traces"""

    def __init__(self, network: "Network", life: Life, peer: tuple[str, int], port: int) -> None:
        super().__init__()
        self.network, self.life, self.peer, self.port = network, life, peer, port
        self.other: Stream
        self.protocol: Any = None
        self.is_open = True
        self.is_accepted = port == peer[1]  #: the other end has connected
        self.is_held = False  #: whether messages that are sent from now on are held until :meth:`release`
        self._inbox: deque[bytes | None] = deque()  # None: the end
        self._is_reading = True
        self._last_arrival = 0.0
        self.sent: deque[bytes | None] = deque()  # in flight to the other end
        self._withheld = 0  # how many of these are held
        self.frames = Frames()
        self.names = b""  #: in the hash of the run

    def join(self, other: "Stream") -> None:
        self.other = other
        self.names = f"{self.life.name}>{other.life.name}:{self.port}".encode()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.peer if name == "peername" else default

    # ------------------------------------------------------------ the protocol calls

    def write(self, data: Any) -> None:
        if self.is_open:
            self.network.send(self, bytes(data))

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(bytes(piece) for piece in pieces))

    def close(self) -> None:
        if self.is_open:
            self.network.send(self, None)
            self.lose()

    def abort(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.network.loop.call_soon(self._feed)

    # ------------------------------------------------------------ the network calls

    def lose(self) -> None:
        """Closes this end of the connection."""
        if self.is_open:
            self.is_open = False
            self.network.streams.pop(self, None)
            if self.protocol is not None:  # the connection is established
                self.network.loop.call_soon(self.protocol.connection_lost, None, context=self.life.context)

    def arrived(self, data: bytes | None) -> None:
        self._inbox.append(data)
        self._feed()

    def _feed(self) -> None:
        while self._inbox and self._is_reading and self.is_open:
            data = self._inbox.popleft()
            if data is None:
                self.lose()
                return
            at = 0
            while at < len(data) and self.is_open:
                buffer = self.protocol.get_buffer(-1)
                piece = data[at : at + len(buffer)]
                buffer[: len(piece)] = piece
                at += len(piece)
                if at < len(data) and not self._is_reading:
                    self._inbox.appendleft(data[at:])
                    at = len(data)
                self.protocol.buffer_updated(len(piece))

    # ------------------------------------------------------------ on the way

    def deliver_at(self, moment: float) -> None:
        """Makes the oldest message in flight arrive then, or after the one before it."""
        if self.is_held:
            self._withheld += 1
            return
        self._last_arrival = max(self._last_arrival, moment)
        self.network.loop.call_at(self._last_arrival, self._deliver, context=self.other.life.context)

    def release(self) -> None:
        """Sends the messages that were held."""
        withheld, self._withheld, self.is_held = self._withheld, 0, False
        for _ in range(withheld):
            self.deliver_at(self.network.loop.now + self.network.delay())

    def _deliver(self) -> None:
        network = self.network
        if network.blocked and network.holds_up(self.life.name, self.other.life.name, self.peer[1]):
            self._last_arrival = 0.0
            network.loop.call_at(network.loop.now + RETRANSMIT_S, self._deliver, context=self.other.life.context)
            return
        if self.sent:
            data = self.sent.popleft()
            if data and not self.is_open and not self.is_accepted and network.ends_with_sender(data):
                return
            network.note(self, data)
            self.other.arrived(data)


class Frames:
    """Splits the bytes of one end into requests or responses, for a trace."""

    def __init__(self) -> None:
        self._left = b""
        self.requests: dict[int, str] = {}

    def take(self, data: bytes) -> list[bytes]:
        """Returns the complete frames."""
        self._left += data
        found = []
        while len(self._left) >= 4 and len(self._left) >= (size := int.from_bytes(self._left[:4])) + 4:
            found.append(self._left[4 : size + 4])
            self._left = self._left[size + 4 :]
        return found


class Network:
    """All connections between nodes and clients.

    :param latency_s: the least and the most latency of a message, in seconds
    :param trace: gets a line for each message, if given
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        random: Random,
        latency_s: tuple[float, float],
        trace: Callable[[str], object] | None = None,
    ) -> None:
        self.loop, self.random, self.trace = loop, random, trace
        self.servers: dict[tuple[str, int], FakeServer] = {}
        self.streams: dict[Stream, None] = {}
        self.blocked: set[tuple[str, str | int]] = set()  #: pairs of sender and recipient, by names; or a port of all
        self.latency_s = latency_s
        self.late = 0.0  #: the probability that a message is late
        self.late_s = 0.5
        self.late_rules: list[Callable[[Stream, bytes], float]] = []  #: the delay of a message in seconds
        self.watchers: list[Callable[[Stream, bytes], object]] = []  #: called with each message when it is sent
        self.ends_with_sender: Callable[[bytes], bool] = lambda data: False
        """Returns whether a request is lost when its sender closes the connection before it has arrived."""
        self.messages = 0
        self.hash = hashlib.blake2b(digest_size=16)
        self._next_port = 40_000

    # ------------------------------------------------------------ connecting

    def bind(self, host: str, port: int, backlog: int) -> list[Any]:
        """Returns the listening sockets of an address (:func:`barnabas.server.listener.bind`)."""
        if (host, port) in self.servers:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {host}:{port}")
        return [FakeSocket((host, port))]

    def serve(self, factory: Callable[[], Any], sock: FakeSocket) -> FakeServer:
        life = LIFE.get()
        assert life is not None
        server = self.servers[sock.address] = FakeServer(self, factory, sock.address, life)
        return server

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Stream, Any]:
        """Establishes a connection, after a round trip.

        :raises ConnectionRefusedError: nothing listens there
        :raises ConnectionResetError: it is closed immediately
        """
        life = LIFE.get()
        assert life is not None
        await asyncio.sleep(self.delay())
        while (there := self.servers.get((host, port))) is not None and (
            self.holds_up(life.name, there.life.name, port) or self.holds_up(there.life.name, life.name)
        ):
            await asyncio.sleep(RETRANSMIT_S)
        if there is None or there.life.is_dead:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refuses connections")
        self._next_port += 1
        near = Stream(self, life, (host, port), self._next_port)
        far = Stream(self, there.life, (host_of(life.name), self._next_port), self._next_port)
        near.join(far)
        far.join(near)
        far.frames.requests = near.frames.requests
        self.streams[near] = self.streams[far] = None
        self.loop.call_soon(self._accepted, far, there.factory, context=there.life.context)
        await asyncio.sleep(self.delay())
        if not near.is_open:
            raise ConnectionResetError(errno.ECONNRESET, f"{host}:{port} has ended the connection")
        near.protocol = factory()
        near.protocol.connection_made(near)
        return near, near.protocol

    @staticmethod
    def _accepted(far: Stream, factory: Callable[[], Any]) -> None:
        if far.is_open:
            far.protocol = factory()
            far.protocol.connection_made(far)

    # ------------------------------------------------------------ sending

    def delay(self) -> float:
        seconds = self.random.uniform(*self.latency_s)
        if self.late and self.random.random() < self.late:
            seconds += self.random.uniform(0, self.late_s)
        return seconds

    def holds_up(self, sender: str, target: str, port: int = 0) -> bool:
        """Returns whether messages from one to the other, or to that port of it, are held up."""
        return (sender, target) in self.blocked or (sender, port) in self.blocked

    def send(self, stream: Stream, data: bytes | None) -> None:
        for watch in self.watchers:
            watch(stream, data or b"")
        stream.sent.append(data)
        late_s = sum(rule(stream, data or b"") for rule in self.late_rules) if self.late_rules else 0.0
        stream.deliver_at(self.loop.now + self.delay() + late_s)

    def note(self, stream: Stream, data: bytes | None) -> None:
        """Adds an arrival to the hash of the run, and to the trace."""
        self.messages += 1
        content = data or b""
        self.hash.update(HASHED.pack(self.loop.now, len(content)) + stream.names + content)
        if self.trace is not None:
            if data is None:
                self.say(f"{stream.life.name} -> {stream.other.life.name} closes connection {stream.port}")
            for frame in stream.frames.take(data or b""):
                self.say(f"{stream.life.name} -> {stream.other.life.name} {describe(frame, stream)}")

    def say(self, text: str) -> None:
        """Adds a line to the trace."""
        if self.trace is not None:
            self.trace(f"{self.loop.now:12.6f} {text}")

    # ------------------------------------------------------------ faults

    def cut(self, stream: Stream) -> None:
        """Closes a connection; messages in flight are lost."""
        for end in (stream, stream.other):
            end.sent.clear()
            end.lose()

    def halve(self, stream: Stream) -> None:
        """Closes one end of a connection, whose messages in flight are lost, as are all that the other end sends.

        The other end does not learn of it: for a machine in between, the connection has never existed.
        """
        stream.sent.clear()
        stream.lose()

    def kill(self, life: Life) -> None:
        """Closes all connections of a process: the other ends notice it later, unless they are partitioned."""
        for stream in [each for each in self.streams if each.life is life]:
            stream.sent.clear()
            self.streams.pop(stream, None)
            stream.is_open = False
            self.send(stream, None)
        for server in [each for each in self.servers.values() if each.life is life]:
            server.close()


def latency_of(seed: int) -> tuple[float, float]:
    """Returns the latencies of a seed's network, which its other decisions do not depend on."""
    return Random(f"network of {seed}").choice(LATENCIES_S)


def host_of(name: str) -> str:
    """Returns the address of a node or client."""
    return f"10.0.{int(name) >> 8}.{int(name) & 255}" if name.isdigit() else "10.1.0.1"


def describe(frame: bytes, stream: Stream) -> str:
    """Returns a description of a frame."""
    if stream.is_accepted:  # the accepting end sends responses
        number = int.from_bytes(frame[:4])
        return f"{stream.frames.requests.pop(number, '?')} answered ({len(frame)} B) #{stream.port}.{number}"
    key, version, number = struct.unpack_from(">hhi", frame)
    name = Request.by_key[key].__name__.removesuffix("Request") if key in Request.by_key else f"API {key}"
    stream.frames.requests[number] = f"{name} v{version}"
    return f"{name} v{version} ({len(frame)} B) #{stream.port}.{number}"
