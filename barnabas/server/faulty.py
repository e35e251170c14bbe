"""Applies faults: a responder that wraps a connection's own while a rule is set or requests are recorded.

Knows nothing of how rules match requests; :mod:`barnabas.faults` does. On a broker without rules no connection is
wrapped.
"""

import logging
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas.api_handlers.registry import APIS
from barnabas.clock import Clock, Scheduler, Timer
from barnabas.errors import CloseConnection, KafkaError, MalformedMessage
from barnabas.faults.placing import entries_answer, error_answer, is_failed, mark, mark_entries, merged
from barnabas.faults.rules import Call, Rule, Rules, edited
from barnabas.faults.seen import Seen, SeenRequest
from barnabas.faults.subjects import TopicName, selected, subjects_of
from barnabas.server.connection import Awaited, Connection, LastAnswer, Responder, Throttled
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Request, Response

if TYPE_CHECKING:
    from barnabas.server.listener import Guest
    from barnabas.server.tls import TlsTransport
    from barnabas.wire.types import Buffer

logger = logging.getLogger(__name__)

DRIPS_A_SECOND: Final = 10

CORRELATION_ID: Final = struct.Struct(">i")


class Watched(Protocol):
    """Owns connections: a listener, or a port of a proxy."""

    watch: Any  #: consulted for each new connection; None while there is no rule

    @property
    def connections(self) -> "Iterable[Guest]": ...


class Watch:
    """The rules of one broker, and the requests that it records, on all its connections.

    :param scheduler: delays responses
    :param topic_name: finds a topic by its id
    :param node_of: returns the id of the broker that a connection leads to; None if it is not known
    """

    def __init__(
        self,
        rules: Rules,
        listeners: Iterable[Watched],
        clock: Clock,
        scheduler: Scheduler,
        topic_name: TopicName,
        node_of: Callable[[Connection], int | None],
    ) -> None:
        self.rules = rules
        self.seen: Seen | None = None  #: where requests are recorded; None while they are not
        self.clock = clock
        self.scheduler = scheduler
        self.topic_name = topic_name
        self.node_of = node_of
        self._listeners = listeners
        self._stale: dict[tuple[Rule, int, bytes], bytes] = {}

    @property
    def is_needed(self) -> bool:
        return bool(self.rules) or self.seen is not None

    def update(self) -> None:
        """Wraps all connections, or unwraps them, each before its next request."""
        needed = self.is_needed
        for listener in self._listeners:
            listener.watch = self if needed else None
            for guest in listener.connections:
                if needed and isinstance(guest, Connection):
                    guest.wrap(self._wrapped)
        if not self.rules:
            self._stale.clear()

    def admits(self, guest: "Guest") -> bool:
        """Returns whether a new connection is not refused."""
        if not isinstance(guest, Connection):  # a handshake: the rules are consulted for the connection after it
            said = self.rules.bad_tls()
            if said is not None:
                cast("TlsTransport", guest).send_in_the_clear(said)
            return True
        guest.wrap(self._wrapped)
        return not self.rules.refuses(guest.session.number, self.node_of(guest))

    def _wrapped(self, inner: Responder, connection: Connection) -> Responder:
        return inner if isinstance(inner, FaultyResponder) else FaultyResponder(inner, connection, self)

    def stale(self, rule: Rule, version: int, body: bytes, answer: bytes) -> bytes:
        """Returns the first response to an equal request since the rule was set, without its correlation id."""
        return self._stale.setdefault((rule, version, body), answer)


class FaultyResponder:
    """Serves the requests of one connection as the rules say."""

    def __init__(self, inner: Responder, connection: Connection, watch: Watch) -> None:
        self.inner = inner
        self.session = inner.session
        self.connection = connection
        self.watch = watch

    @property
    def max_request_bytes(self) -> int | None:
        return self.inner.max_request_bytes

    def respond(self, frame: memoryview) -> "list[Buffer] | Throttled | Awaited | None":
        watch = self.watch
        if not watch.is_needed:
            self.connection.wrap(lambda faulty, connection: self.inner)
            return self.inner.respond(frame)
        call = self._call(frame)
        if call is None:
            return self.inner.respond(frame)
        fired = watch.rules.fire(call)
        seen = None if watch.seen is None else self._see(call, len(frame), watch.seen)
        if not fired and seen is None:
            return self.inner.respond(frame)
        if any(rule.action.cut == "before" for rule in fired):
            raise CloseConnection("a fault: cut before the request is handled")
        return Exchange(self, call, bytearray(frame), fired, seen)

    def encode(self, response: Any) -> "list[Buffer] | Throttled":
        if isinstance(response, Given):
            return response.answer
        if isinstance(response, CloseConnection):
            raise response
        return self.inner.encode(response)

    def close(self) -> None:
        self.inner.close()

    def _call(self, frame: memoryview) -> Call | None:
        """Returns the request; None if the frame is no request, or a SASL token, which the broker handles."""
        try:
            (key,) = struct.unpack_from(">h", frame)
            api = self.session.promise.apis.get(key)
            if api is None:
                return None
            declared = api.request  # before the header, as in dispatch
            header, body = read_request_header(frame)
            version = header.request_api_version
            if version not in api.versions:
                return None
            request = declared.decode(bytes(frame), version=version, at=body)
        except (MalformedMessage, struct.error):
            return None
        session = self.session
        subjects = subjects_of(request, self.watch.topic_name)
        node, principal = self.watch.node_of(self.connection), str(session.principal)
        return Call(key, version, header.client_id, principal, session.number, node, request, subjects)

    def _see(self, call: Call, size: int, ring: Seen) -> SeenRequest:
        seen = SeenRequest(
            call.request,
            version=call.version,
            time_ms=self.watch.clock.time_ms(),
            size=size,
            connection=call.connection,
            node=call.node,
            client_id=call.client_id,
            client_software_name=self.session.client_software_name,
            client_software_version=self.session.client_software_version,
        )
        ring.add(seen)
        return seen


class Given:
    """A response that is encoded already."""

    __slots__ = ("answer",)

    def __init__(self, answer: "list[Buffer] | Throttled") -> None:
        self.answer = answer


class Exchange:
    """One request with faults, from its arrival to its response."""

    def __init__(
        self, responder: FaultyResponder, call: Call, frame: bytearray, fired: list[Rule], seen: SeenRequest | None
    ) -> None:
        self._responder = responder
        self._watch = responder.watch
        self._call = call
        self._frame = frame  # a copy that can be written to: appended batches get their offsets in place
        self._fired = fired
        self._seen = seen
        self._deliver: Callable[[Any], object] = lambda outcome: None
        self._awaited: Awaited | None = None
        self._timer: Timer | None = None
        self._throttle_s: float | None = None
        self._body = read_request_header(memoryview(frame))[1]
        self._failing = next((rule for rule in fired if rule.error is not None), None)
        self._failed: Response | None = None  #: the response for the entries of the request that fail
        self._merges = False  #: whether the handler answers the rest of the request
        self._marks = False  #: whether the error is put into the handler's response

    def then(self, deliver: Callable[[Any], object]) -> None:
        self._deliver = deliver
        if self._has("silent", "before"):
            return
        self._later(sum(rule.action.delay for rule in self._fired), self._run)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._awaited is not None:
            self._awaited.cancel()

    # ------------------------------------------------------------ the handler

    def _run(self) -> None:
        """Has the handler answer the request, or the rest of it."""
        try:
            frame = self._left()
            answer = None if frame is None else self._responder.inner.respond(memoryview(frame))
            if frame is None:
                assert self._failed is not None
                self._answered(b"".join(self._failed.encode_frame(self._correlation_id, self._call.version)))
            elif isinstance(answer, list | Throttled):
                self._encoded(answer)
            elif answer is None:
                self._deliver(Given([]))
            else:
                self._awaited = answer
                answer.then(self._resolved)
        except CloseConnection as reason:
            self._deliver(reason)
        except MalformedMessage as error:
            self._deliver(CloseConnection(str(error)))

    def _resolved(self, response: Any) -> None:
        self._awaited = None
        try:
            self._encoded(self._responder.inner.encode(response))
        except CloseConnection as reason:
            self._deliver(reason)

    def _encoded(self, answer: "list[Buffer] | Throttled") -> None:
        if isinstance(answer, Throttled):
            self._throttle_s = answer.seconds
            answer = answer.answer
        self._answered(b"".join(answer))

    # ------------------------------------------------------------ errors

    @property
    def _correlation_id(self) -> int:
        return int(CORRELATION_ID.unpack_from(self._frame, 4)[0])

    def _left(self) -> bytearray | None:
        """Returns the request without the topics and partitions that fail; None if none is left."""
        rule, version, request = self._failing, self._call.version, self._call.request
        if rule is None or rule.error is None:
            return self._frame
        if rule.action.handled:
            self._marks = True
            return self._frame
        if not rule.is_about_entries:
            self._failed = error_answer(request, rule.error(), version)
            self._marks = self._failed is None
            return self._frame if self._failed is None else None
        topic_name, names = self._watch.topic_name, rule.names
        failing = selected(request, names, topic_name)
        self._failed = entries_answer(failing, rule.error(), version)
        left = selected(request, lambda *each: not names(*each), topic_name)
        if is_failed(self._failed) or not subjects_of(left, topic_name).topics:
            return None
        self._merges = True
        return self._frame[: self._body] + cast(Request, left).encode(version=version)

    def _with_error(self, response: Response) -> None:
        rule = self._failing
        assert rule is not None
        assert rule.error is not None
        error: KafkaError = rule.error()
        if not rule.is_about_entries:
            mark(response, error, self._call.version)
            return
        whole_topics = rule.match.partition is None
        mark_entries(response, rule.names, error, self._call.version, self._watch.topic_name, whole_topics=whole_topics)

    # ------------------------------------------------------------ the answer

    def _answered(self, answer: bytes) -> None:
        """Changes the response as the rules say, and sends it, or a part of it."""
        if answer:
            answer = self._changed(answer)
        if self._has("cut", "after"):
            self._deliver(CloseConnection("a fault: cut after the request was handled"))
        elif not self._has("silent", "after"):
            self._later(sum(rule.action.delay_after for rule in self._fired), self._send, answer)

    def _changed(self, answer: bytes) -> bytes:
        version = self._call.version
        kind = APIS[self._call.api_key].request.response
        at = 8 + kind.header_version(version)
        changes = [
            rule
            for rule in self._fired
            if rule.action.edit or rule.action.throttle_ms is not None or rule.action.leader is not None
            or rule.action.coordinator is not None
        ]  # fmt: skip
        as_version = next(
            (each.action.answer_version for each in self._fired if each.action.answer_version is not None), None
        )
        if changes or self._marks or self._merges or self._seen is not None or as_version is not None:
            response = kind.decode(answer, version=version, at=at)
            if self._marks:
                self._with_error(response)
            elif self._merges:
                merged(response, self._failed)
            for rule in changes:
                edited(rule, response)
            answer = b"".join(
                response.encode_frame(self._correlation_id, version if as_version is None else as_version)
            )
            if self._seen is not None:
                self._seen.answer = response
        for rule in self._fired:
            if rule.action.stale:
                body = self._watch.stale(rule, version, bytes(self._frame[self._body :]), answer[8:])
                answer = (len(body) + 4).to_bytes(4) + answer[4:8] + body
            if rule.action.correlation_id is not None:
                wrong = (self._correlation_id + rule.action.correlation_id) & 0x7FFFFFFF
                answer = answer[:4] + CORRELATION_ID.pack(wrong) + answer[8:]
        return answer

    def _send(self, answer: bytes) -> None:
        drip = next((rule.action.drip for rule in self._fired if rule.action.drip is not None), None)
        if self._has("cut", "half"):
            self._deliver(LastAnswer("a fault: half an answer", [answer[: len(answer) // 2]]))
        elif drip is not None and len(answer) > 1:
            size = max(drip // DRIPS_A_SECOND, 1)
            self._responder.connection.transport.write(answer[:size])
            self._later(size / drip, self._send, answer[size:])
        else:
            pieces: list[Buffer] = [answer] if answer else []
            self._deliver(Given(pieces if self._throttle_s is None else Throttled(pieces, self._throttle_s)))

    def _has(self, name: str, value: str) -> bool:
        return any(getattr(rule.action, name) == value for rule in self._fired)

    def _later(self, seconds: float, callback: Callable[..., object], *args: Any) -> None:
        self._timer = self._watch.scheduler.call_later(seconds, callback, *args)
