"""Replays a recording, one event after the other.

Knows nothing of files and of the command line.

A request is sent once all events that were recorded before it have happened again: connections made and closed,
requests sent, responses received. So the order across connections is kept, and requests that were in flight together
are so again.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from barnabas.clock import Clock
from barnabas.diagnosis import Address
from barnabas.errors import MalformedMessage
from barnabas.faults.seen import first_error
from barnabas.faults.subjects import selected
from barnabas.proxy.proxy import Connect
from barnabas.proxy.upstream import Upstream
from barnabas.replay.acquired import Acquired
from barnabas.replay.ahead import Ahead, Place, ahead_of, is_retriable, partitions_in, refused_in
from barnabas.replay.comparing import Comparison, Difference, topics_in
from barnabas.replay.connection import Connection, Lane
from barnabas.replay.fetched import Fetched
from barnabas.replay.heartbeats import Heartbeats
from barnabas.replay.meanings import Meaning
from barnabas.replay.nodes import Nodes
from barnabas.replay.recorded import Event
from barnabas.replay.routes import METADATA_VERSION, Routes
from barnabas.replay.routing import Part, Router, put_together
from barnabas.replay.sessions import LAST_EPOCH
from barnabas.replay.translation import Scope, Translation
from barnabas.server.buffers import BufferPool
from barnabas.wire.frames import RequestFrame, ResponseFrame, api_name, decode_request, decode_response, requests
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Request
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.types import Buffer

LOGINS: Final = ("SaslHandshakeRequest", "SaslAuthenticateRequest")
SHARES: Final = (ShareFetchRequest, ShareAcknowledgeRequest)
RETRY_S: Final = 0.1
"""The delay before a request that got a retriable error is sent again."""
WAIT: Final = 0.4
"""How much of the patience a fetch waits for the recorded bytes, so that a ShareFetch can do so twice."""


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


class _Pending(NamedTuple):
    """A request that was sent."""

    lane: Lane
    event: Event
    recorded: RequestFrame | None  #: None: it cannot be decoded
    parts: list[Part]  #: with the ids of the recording
    answers: "asyncio.Future[list[bytes]]"

    @property
    def start(self) -> bytes:
        """API key and version."""
        return self.event.frame[:4]


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
        self._heartbeats = Heartbeats(self._translation)
        self._acquired = Acquired(self._translation)
        self._lanes: dict[int, Lane] = {}
        self._pending: dict[int, _Pending] = {}
        self._last_shared: dict[str | None, asyncio.Future[list[bytes]]] = {}  # by member id of the recording
        self._ahead: dict[int, Ahead] = {}
        self._nodes: Nodes
        self._router: Router
        self._comparison: Comparison
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
            for lane in self._lanes.values():
                lane.close()
        for (topic, partition), offsets in self._fetched.missing():
            difference = Difference(f"records at {offsets}", "fetched", "missing")
            self._report(Found(f"{topic}-{partition}", [difference]))
        for member, was, found in self._heartbeats.differing():
            self._report(Found(member, [Difference("assignment", sorted(was), sorted(found))]))
        for place, theirs, ours in self._acquired.differing():
            self._report(Found(place, [Difference("acquired records", theirs, ours)]))

    async def _look_ahead(self) -> None:
        """Reads the recording once, for the responses that have to be known before their requests are sent."""
        metadata = await self._ask(self._bootstrap, MetadataRequest(topics=[]), METADATA_VERSION)
        self._nodes = Nodes(self._bootstrap, metadata)
        sent: dict[int, bytes] = {}
        for event in self._events():
            if event.kind == "request":
                sent[event.request] = event.frame[:4]
            elif event.kind == "answer" and event.request in sent:
                response = self._response(sent.pop(event.request), event.frame)
                if response is not None:
                    self._nodes.note(response.response)
                    self._translation.topics.update(topics_in(response.response))
                decoded = None if response is None else response.response
                found = ahead_of(decoded, self._translation.topics.get) if event.frame else Ahead(is_empty=True)
                self._ahead[event.request] = found
        for recorded, replayed in self._nodes.ids().items():
            self._translation.learn(Meaning.NODE, Scope(), recorded, replayed)
        routes = Routes(self._bootstrap, self._ask)
        self._router = Router(self._nodes.addresses, routes, self._translation.topics.get)
        self._comparison = Comparison(self._translation, self._fetched, self._settings.ignored, self._nodes.sizes)

    async def _ask(self, address: Address, request: Request, version: int) -> Any:
        """Returns the response to a request of the replay itself, over a connection of its own."""
        upstream = await self._new(address)
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(response: Any, error: Exception | None) -> None:
            if found.done():
                return
            if error is not None:
                found.set_exception(error)
            else:
                found.set_result(response)

        connection = Connection(upstream)
        upstream.send_now(request, version, 0.0, done)
        try:
            return await asyncio.wait_for(found, self._settings.patience_s)
        finally:
            connection.close()

    async def _new(self, address: Address) -> Upstream:
        loop = asyncio.get_running_loop()
        return await self._connect(address, lambda: Upstream(str(address), loop, self._buffers))

    async def _connected(self, address: Address) -> Connection:
        return Connection(await self._new(address))

    # ------------------------------------------------------------ events

    async def _happen(self, event: Event) -> None:
        if event.kind == "open":
            assert event.node is not None
            lane = self._lanes[event.connection] = Lane(self._connected, self._nodes.find(event.node))
            await lane.open()
        elif event.kind == "request":
            await self._send(event)
        elif event.kind == "answer" and (pending := self._pending.pop(event.request, None)) is not None:
            await self._answered(event, pending)
        elif event.kind == "close" and event.connection in self._lanes:
            self._lanes.pop(event.connection).close()

    async def _send(self, event: Event) -> None:
        lane = self._lanes.get(event.connection)
        declared = self._requests.get(int.from_bytes(event.frame[:2], signed=True))
        if lane is None or event.has_secrets or (declared is not None and declared.__name__ in LOGINS):
            self.counts = self.counts._replace(withheld=self.counts.withheld + 1)
            return
        ahead = self._ahead.get(event.request, Ahead(is_empty=False))
        recorded = self._recorded(event, ahead)
        if ahead.is_refusal or (recorded is not None and _is_without_effect(recorded.request, ahead)):
            self.counts = self.counts._replace(refused=self.counts.refused + 1)
            return
        parts = []
        frames: list[tuple[Address, Buffer]] = [(lane.default, event.frame)]
        if recorded is not None:
            parts = await self._router.route(recorded.request, event.connection, lane.default, ahead.session_id)
            frames = [(part.address, self._of_this_run(event, recorded, part)) for part in parts]
        if recorded is not None and self._router.shares_session(recorded.request, event.connection):
            await self._until_answered(recorded.request)
        answers = await lane.send(frames, is_answered=not ahead.is_empty)
        if recorded is not None and isinstance(recorded.request, SHARES):
            self._last_shared[recorded.request.member_id] = answers
        self._pending[event.request] = _Pending(lane, event, recorded, parts, answers)
        self.counts = self.counts._replace(requests=self.counts.requests + 1)

    async def _until_answered(self, request: Any) -> None:
        """Waits for the response to the last request of a share session: another connection sends the next one."""
        last = self._last_shared.get(request.member_id)
        if last is not None:
            await asyncio.wait([last], timeout=self._settings.patience_s)

    def _recorded(self, event: Event, ahead: Ahead) -> RequestFrame | None:
        """Returns the request, without the records that were not written; None if it cannot be decoded."""
        try:
            found = decode_request(event.frame, self._requests)
        except MalformedMessage:
            return None
        if not ahead.not_written:
            return found
        request = selected(found.request, lambda *place: place not in ahead.not_written, self._translation.topics.get)
        return found._replace(request=request)

    def _of_this_run(self, event: Event, recorded: RequestFrame, part: Part) -> Buffer:
        """Returns the frame of a request, or of a part of it, with the ids, epochs and offsets of this run."""
        version = recorded.version
        ahead = self._ahead.get(event.request, Ahead(is_empty=False))
        is_whole = part.request is recorded.request and not ahead.not_written
        body = read_request_header(event.frame)[1]
        frame = event.frame if is_whole else event.frame[:body] + part.request.encode(version=version)
        request = decode_request(frame, self._requests).request  # a copy, to be changed
        has_changed = self._translation.translate(request, version, self._translation.scope(request))
        has_changed |= self._heartbeats.renew(request, recorded.request)
        if hasattr(request, "max_wait_ms") and hasattr(request, "min_bytes"):
            named = {place for place, _ in partitions_in(part.request, self._translation.topics.get)}
            places = part.session | named
            surplus = partial(self._acquired.surplus, getattr(part.request, "group_id", ""))
            sizes = (
                max(size - surplus(place), 0) for place, size in ahead.sizes.items() if is_whole or place in places
            )
            has_changed |= self._wait_as_recorded(request, max(sum(sizes), part.is_further))
        return frame[:body] + request.encode(version=version) if has_changed else frame

    def _wait_as_recorded(self, request: Any, size: int) -> bool:
        """Makes a fetch wait until there are as many bytes as recorded. Returns whether that changed the request."""
        waits = request.max_wait_ms, request.min_bytes
        if size:  # it may not have arrived yet
            request.max_wait_ms = max(request.max_wait_ms, int(self._settings.patience_s * 1000 * WAIT))
            request.min_bytes = max(request.min_bytes, size)
        elif not self._settings.has_spacing:  # the recorded response is empty: there is nothing to wait for
            request.max_wait_ms = 0
        return waits != (request.max_wait_ms, request.min_bytes)

    # ------------------------------------------------------------ answers

    async def _answered(self, event: Event, pending: _Pending) -> None:
        what = f"request {event.request}, connection {event.connection}"
        if pending.recorded is not None:
            what += f", {api_name(type(pending.recorded.request))} {pending.recorded.version}"
        patience = self._settings.patience_s + event.at - pending.event.at
        try:
            async with asyncio.timeout(patience):
                differences = await self._compared(event.frame, pending)
        except TimeoutError:
            differences = [Difference("answer", "an answer", f"none within {patience:.1f} s")]
        self.counts = self.counts._replace(compared=self.counts.compared + 1)
        if differences:
            self._report(Found(what, differences))

    async def _compared(self, frame: bytes, pending: _Pending) -> list[Difference]:
        """Returns the differences of a response. What has got a retriable error is sent again."""
        answers = await pending.answers
        recorded = self._response(pending.start, frame)
        parts, topic_name = pending.parts, self._comparison.topic_name
        request: Any = None if pending.recorded is None else pending.recorded.request
        is_ignored = api_name(type(request)) in self._settings.ignored
        wanted = self._acquired.take_recorded(request, recorded.response) if recorded and not is_ignored else []
        settled: list[ResponseFrame] = []
        missing: dict[Place, int] = {}
        while True:
            if frame and not all(answers):
                return [Difference("answer", "an answer", f"none: {pending.lane.reason}")]
            found = [self._response(pending.start, answer) for answer in answers]
            replayed = [each for each in found if each is not None]
            if pending.recorded is None or recorded is None or len(replayed) < len(found):
                return [] if answers == [frame] else [Difference("answer", frame.hex(), answers[0].hex())]
            if is_ignored:
                return []
            for each in replayed:
                self._acquired.take_replayed(request, each.response, topic_name)
            error = first_error(recorded.response)
            errors = [first_error(each.response) for each in (*replayed, *settled)]
            now = next((each for each in errors if each), 0)
            if error != now and is_retriable(error):
                self.counts = self.counts._replace(passing=self.counts.passing + 1)
                return []
            is_behind = self._heartbeats.is_behind(request, recorded.response, replayed[0].response)
            is_settled = not is_behind and (error == now or not is_retriable(now))
            was_missing, missing = missing, self._acquired.behind(getattr(request, "group_id", ""), wanted)
            if is_settled and missing in ({}, was_missing):
                return self._differences(pending, parts, recorded, [*settled, *replayed])
            await asyncio.sleep(RETRY_S)
            if is_settled:
                parts = self._router.further(request, pending.event.connection, parts, missing)
                settled += replayed
            elif not is_behind:
                parts, kept = await self._again(pending, parts, replayed)
                settled += kept
            if not parts:
                return self._differences(pending, parts, recorded, settled)
            frames = [(part.address, self._of_this_run(pending.event, pending.recorded, part)) for part in parts]
            answers = await (await pending.lane.send(frames, is_answered=True))

    async def _again(
        self, pending: _Pending, parts: list[Part], replayed: list[ResponseFrame]
    ) -> tuple[list[Part], list[ResponseFrame]]:
        """Returns what is sent again, by the routes of now, and the responses to what is not: those without retriable
        errors, and of the leaders' responses the partitions without.
        """
        self._router.forget()
        event, topic_name = pending.event, self._comparison.topic_name
        again: list[Part] = []
        kept: list[ResponseFrame] = []
        for part, each in zip(parts, replayed, strict=True):
            if not is_retriable(first_error(each.response)):
                kept.append(each)
                continue
            response = each.response
            refused = refused_in(response, topic_name) if self._router.is_led(part.request) else frozenset()
            session_id = self._ahead[event.request].session_id
            new = await self._router.again(part, refused, event.connection, pending.lane.default, session_id)
            again += new
            if refused and new:
                response = selected(response, lambda *place, refused=refused: place not in refused, topic_name)
            if refused or not new:
                kept.append(each._replace(response=response))
        return again, kept

    def _differences(
        self, pending: _Pending, parts: list[Part], recorded: ResponseFrame, replayed: list[ResponseFrame]
    ) -> list[Difference]:
        """Returns the differences between the recorded response and those that were received.

        :param parts: what was sent last
        """
        assert pending.recorded is not None
        request = pending.recorded.request
        response = put_together([each.response for each in replayed])
        if _leaves_session(request, parts):
            self._as_in_session(recorded.response, response)
        not_written = self._ahead[pending.event.request].not_written
        if not_written:
            topic_name = self._translation.topics.get
            kept = selected(recorded.response, lambda *place: place not in not_written, topic_name)
            recorded = recorded._replace(response=kept)
        self._acquired.level(request, recorded.response, response, self._comparison.topic_name)
        scope = self._translation.scope(request)
        is_of_all = self._nodes.sizes.recorded > 1 and self._router.is_of_all(request)
        pair = recorded, replayed[0]._replace(response=response)
        return list(self._comparison.compare(scope, *pair, is_of_all=is_of_all))

    def _as_in_session(self, recorded: Any, replayed: Any) -> None:
        """Reduces the response to a Fetch of all partitions of a session to those that the session has named, and those
        with news.
        """
        named = {place for place, _ in partitions_in(recorded, self._translation.topics.get)}
        for topic in replayed.responses:
            name = topic.topic or self._comparison.topic_name(topic.topic_id)
            topic.partitions = [
                each
                for each in topic.partitions
                if (name, each.partition_index) in named or each.records or each.error_code
            ]
        replayed.responses = [topic for topic in replayed.responses if topic.partitions]
        if not replayed.session_id:
            replayed.session_id = self._translation.value(Meaning.SESSION_ID, Scope(), recorded.session_id)

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


def _is_without_effect(request: Request, ahead: Ahead) -> bool:
    """Returns whether no record of a Produce was written."""
    return bool(ahead.not_written) and isinstance(request, ProduceRequest) and not request.topic_data


def _leaves_session(request: Request, parts: list[Part]) -> bool:
    """Returns whether a request of a fetch session was sent without the session."""
    if not isinstance(request, FetchRequest) or request.session_epoch == LAST_EPOCH:
        return False
    return any(isinstance(part.request, FetchRequest) and part.request.session_epoch == LAST_EPOCH for part in parts)
