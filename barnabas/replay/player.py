"""Replays a recording, one event after the other.

Knows nothing of files and of the command line.

A request is sent once all events that were recorded before it have happened again: connections made and closed,
requests sent, responses received. So the order across connections is kept, and requests that were in flight together
are so again.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.clock import Clock
from barnabas.diagnosis import Address
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    MalformedMessage,
    NotCoordinator,
)
from barnabas.faults.seen import first_error
from barnabas.proxy.proxy import Connect
from barnabas.proxy.upstream import Upstream
from barnabas.replay.comparing import Comparison, Difference
from barnabas.replay.connection import Connection
from barnabas.replay.fetched import Fetched
from barnabas.replay.nodes import Nodes
from barnabas.replay.recorded import Event
from barnabas.replay.translation import Translation
from barnabas.server.buffers import BufferPool
from barnabas.wire.frames import RequestFrame, ResponseFrame, api_name, decode_request, decode_response, requests
from barnabas.wire.headers import read_request_header
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.types import Buffer

LOGINS: Final = ("SaslHandshakeRequest", "SaslAuthenticateRequest")
METADATA_VERSION: Final = 1
REFUSALS: Final = frozenset(each.code for each in (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator))
"""Errors after which a coordinator has done nothing. A request that was recorded with such an error is not sent, since
it might succeed now and have an effect: each InitProducerId bumps the epoch, and each JoinGroup adds a member.
"""
RETRY_S: Final = 0.1
"""The delay before a request that got a retriable error is sent again."""


class Settings(NamedTuple):
    """The options of a replay."""

    has_spacing: bool = False  #: requests are sent at the recorded times
    patience_s: float = 30.0  #: a response may come so much later than it did
    ignored: frozenset[str] = frozenset()  #: names of fields, and of APIs, that are not compared


class Found(NamedTuple):
    """Differences of one response, or of the records fetched from a partition."""

    what: str  #: ``request 17, connection 2, Produce 9``
    differences: list[Difference]


class Counts(NamedTuple):
    """Counts of the replayed requests."""

    requests: int = 0
    compared: int = 0
    withheld: int = 0  #: logins, and requests whose secrets are not in the recording
    refused: int = 0  #: requests that were not sent, since the recorded response is an error without effect
    passing: int = 0  #: recorded responses with retriable errors


class _Ahead(NamedTuple):
    """The recorded response, which is known before the request is sent."""

    is_empty: bool
    is_refusal: bool
    records_size: int


class _Pending(NamedTuple):
    """A request that was sent."""

    connection: Connection
    frame: Buffer
    at: float
    recorded: RequestFrame | None  #: None: it cannot be decoded
    answer: "asyncio.Future[bytes]"

    @property
    def start(self) -> bytes:
        """API key and version."""
        return bytes(self.frame[:4])


class Player:
    """Replays one recording.

    :param events: returns a new iterator over the events with each call
    :param bootstrap: a node of the cluster
    :param report: is called with each difference
    """

    def __init__(
        self,
        events: Callable[[], Iterable[Event]],
        bootstrap: Address,
        connect: Connect,
        clock: Clock,
        settings: Settings,
        report: Callable[[Found], object],
    ) -> None:
        self._events = events
        self._bootstrap = bootstrap
        self._connect = connect
        self._clock = clock
        self._settings = settings
        self._report = report
        self._requests = requests()
        self._buffers = BufferPool()
        self._translation = Translation()
        self._fetched = Fetched(self._translation)
        self._comparison = Comparison(self._translation, self._fetched, settings.ignored)
        self._connections: dict[int, Connection] = {}
        self._pending: dict[int, _Pending] = {}
        self._ahead: dict[int, _Ahead] = {}
        self._nodes: Nodes
        self.counts = Counts()

    async def play(self) -> None:
        """Replays the recording to its end.

        :raises OSError, KafkaError: a node cannot be reached
        :raises RecordingError: a line is not an event
        """
        await self._look_ahead()
        began = self._clock.monotonic()
        try:
            for event in self._events():
                if self._settings.has_spacing:
                    await asyncio.sleep(began + event.at - self._clock.monotonic())
                await self._happen(event)
        finally:
            for connection in self._connections.values():
                connection.close()
        for (topic, partition), offsets in self._fetched.missing():
            difference = Difference(f"records at {offsets}", "fetched", "missing")
            self._report(Found(f"{topic}-{partition}", [difference]))

    async def _look_ahead(self) -> None:
        """Reads the recording once, for the responses that have to be known before their requests are sent."""
        self._nodes = Nodes(self._bootstrap, await self._metadata())
        sent: dict[int, bytes] = {}
        for event in self._events():
            if event.kind == "request":
                sent[event.request] = event.frame[:4]
            elif event.kind == "answer" and event.request in sent:
                response = self._response(sent.pop(event.request), event.frame)
                size = error = 0
                if response is not None:
                    self._nodes.note(response.response)
                    size = sum(map(len, _records(response.response)))
                    error = first_error(response.response)
                self._ahead[event.request] = _Ahead(not event.frame, error in REFUSALS, size)

    async def _metadata(self) -> Any:
        upstream = await self._new(self._bootstrap)
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(response: Any, error: Exception | None) -> None:
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(response)

        connection = Connection(upstream)
        upstream.send_now(MetadataRequest(topics=[]), METADATA_VERSION, 0.0, done)
        try:
            return await asyncio.wait_for(found, self._settings.patience_s)
        finally:
            connection.close()

    async def _new(self, address: Address) -> Upstream:
        loop = asyncio.get_running_loop()
        return await self._connect(address, lambda: Upstream(str(address), loop, self._buffers))

    # ------------------------------------------------------------ events

    async def _happen(self, event: Event) -> None:
        if event.kind == "open":
            assert event.node is not None
            self._connections[event.connection] = Connection(await self._new(self._nodes.find(event.node)))
        elif event.kind == "request":
            self._send(event)
        elif event.kind == "answer" and (pending := self._pending.pop(event.request, None)) is not None:
            await self._answered(event, pending)
        elif event.kind == "close" and event.connection in self._connections:
            self._connections.pop(event.connection).close()

    def _send(self, event: Event) -> None:
        connection = self._connections.get(event.connection)
        declared = self._requests.get(int.from_bytes(event.frame[:2], signed=True))
        if connection is None or event.has_secrets or (declared is not None and declared.__name__ in LOGINS):
            self.counts = self.counts._replace(withheld=self.counts.withheld + 1)
            return
        ahead = self._ahead.get(event.request)
        if ahead is not None and ahead.is_refusal:
            self.counts = self.counts._replace(refused=self.counts.refused + 1)
            return
        try:
            recorded = decode_request(event.frame, self._requests)
        except MalformedMessage:
            recorded = None
        frame: Buffer = event.frame if recorded is None else self._of_this_run(event)
        answer = connection.send(frame, is_answered=ahead is None or not ahead.is_empty)
        self._pending[event.request] = _Pending(connection, frame, event.at, recorded, answer)
        self.counts = self.counts._replace(requests=self.counts.requests + 1)

    def _of_this_run(self, event: Event) -> Buffer:
        """Returns the frame of a request with the ids, epochs and offsets of this run."""
        decoded = decode_request(event.frame, self._requests)
        request, version = decoded.request, decoded.version
        has_changed = self._translation.translate(request, version, self._translation.scope(request))
        ahead = self._ahead.get(event.request)
        if ahead is not None and hasattr(request, "max_wait_ms") and hasattr(request, "min_bytes"):
            has_changed |= self._wait_as_recorded(request, ahead.records_size)
        if not has_changed:
            return event.frame
        return event.frame[: read_request_header(event.frame)[1]] + request.encode(version=version)

    def _wait_as_recorded(self, request: Any, size: int) -> bool:
        """Makes a fetch wait until there are as many bytes as recorded. Returns whether that changed the request."""
        waits = request.max_wait_ms, request.min_bytes
        if size:  # it may not have arrived yet
            request.max_wait_ms = max(request.max_wait_ms, int(self._settings.patience_s * 500))
            request.min_bytes = max(request.min_bytes, size)
        elif not self._settings.has_spacing:  # the recorded response is empty: there is nothing to wait for
            request.max_wait_ms = 0
        return waits != (request.max_wait_ms, request.min_bytes)

    # ------------------------------------------------------------ answers

    async def _answered(self, event: Event, pending: _Pending) -> None:
        what = f"request {event.request}, connection {event.connection}"
        if pending.recorded is not None:
            what += f", {api_name(type(pending.recorded.request))} {pending.recorded.version}"
        patience = self._settings.patience_s + event.at - pending.at
        try:
            async with asyncio.timeout(patience):
                differences = await self._compared(event.frame, pending)
        except TimeoutError:
            differences = [Difference("answer", "an answer", f"none within {patience:.1f} s")]
        self.counts = self.counts._replace(compared=self.counts.compared + 1)
        if differences:
            self._report(Found(what, differences))

    async def _compared(self, frame: bytes, pending: _Pending) -> list[Difference]:
        """Returns the differences of a response. A request with a retriable error is sent again."""
        answer = await pending.answer
        recorded = self._response(pending.start, frame)
        while True:
            if not answer and frame:
                return [Difference("answer", "an answer", f"none: {pending.connection.reason}")]
            replayed = self._response(pending.start, answer)
            if pending.recorded is None or recorded is None or replayed is None:
                return [] if answer == frame else [Difference("answer", frame.hex(), answer.hex())]
            errors = first_error(recorded.response), first_error(replayed.response)
            if errors[0] != errors[1] and _passes(errors[0]):
                self.counts = self.counts._replace(passing=self.counts.passing + 1)
                return []
            if api_name(type(pending.recorded.request)) in self._settings.ignored:
                return []
            if errors[0] == errors[1] or not _passes(errors[1]):
                scope = self._translation.scope(pending.recorded.request)
                return list(self._comparison.compare(scope, recorded, replayed))
            await asyncio.sleep(RETRY_S)
            answer = await pending.connection.send(pending.frame, is_answered=True)

    def _response(self, start: bytes, frame: bytes) -> ResponseFrame | None:
        """Decodes a response; None if that is not possible.

        :param start: of the request: API key and version
        """
        declared = self._requests.get(int.from_bytes(start[:2], signed=True))
        if declared is None or not frame:
            return None
        with contextlib.suppress(MalformedMessage):
            return decode_response(frame, declared, int.from_bytes(start[2:4], signed=True))
        return None


def _passes(code: int) -> bool:
    """Returns whether an error is retriable."""
    error = KafkaError.by_code.get(code)
    return error is not None and error.retriable


def _records(structure: Any) -> Iterator[Buffer]:
    """Yields the record batches in a response."""
    for field in structure.wire_fields():
        value = getattr(structure, field.name)
        if isinstance(field.kind, type) and value is not None:
            for each in value if field.is_array else (value,):
                yield from _records(each)
        elif field.name == "records" and value:
            yield value
