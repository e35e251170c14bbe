"""The proxy's side of one client connection: requests go to the node, and responses come back with the proxy's
addresses.

Knows nothing of sockets. A frame is decoded only if its response has addresses, or if it is observed. Requests are
forwarded as they arrive, without waiting for responses; with faults they are forwarded one by one.
"""

import logging
import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.errors import MalformedMessage
from barnabas.proxy.addresses import Look, Place, limit_versions, replace
from barnabas.proxy.upstream import Sent, Upstream
from barnabas.server.connection import Awaited, Connection
from barnabas.wire.frames import decode_response
from barnabas.wire.message import API_VERSIONS, Request
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.types import read_uvarint, skip_tags

if TYPE_CHECKING:
    from barnabas.api_handlers.session import Session
    from barnabas.proxy.addresses import Addressed
    from barnabas.wire.types import Buffer

logger = logging.getLogger(__name__)

PRODUCE: Final = 0
SASL_HANDSHAKE: Final = 17

_unpack = struct.Struct(">hhih").unpack_from


class Observer(Protocol):
    """Receives requests and responses (:mod:`barnabas.proxy.observing`)."""

    def requested(self, connection: int, frame: memoryview, /) -> Callable[[bytes], object] | None:
        """Returns the callback for the response; None if the request is not observed."""


class Common(Protocol):
    """The common part of all clients (:class:`barnabas.proxy.proxy.Proxy`)."""

    @property
    def observer(self) -> Observer | None: ...

    @property
    def is_faulty(self) -> bool: ...

    @property
    def requests(self) -> "Mapping[int, type[Request]]": ...

    @property
    def addressed(self) -> "Mapping[int, Addressed]": ...

    @property
    def looks(self) -> "Mapping[tuple[int, int], Look]": ...

    def note(self, response: MetadataResponse, /) -> None: ...


class Passage:
    """The responder of a connection, which forwards its requests to the node."""

    max_request_bytes: int | None = None

    def __init__(self, session: "Session", connection: Connection, proxy: Common, place: Place) -> None:
        """
        :param place: returns the address at which this client sees a node
        """
        self.session = session
        self._connection = connection
        self._proxy = proxy
        self._place = place
        self.upstream: Upstream | None = None  #: the connection to the node; None until it is made
        self._speaks_tokens = False  #: whether frames are tokens of SASL without a header (SaslHandshake 0)

    def reach(self, upstream: Upstream) -> None:
        """Sets the connection to the node to which requests are forwarded."""
        upstream.client = self
        self.upstream = upstream

    # ------------------------------------------------------------ requests

    def respond(self, frame: memoryview) -> "list[Buffer] | Awaited | None":
        upstream, proxy = self.upstream, self._proxy
        assert upstream is not None
        key, version, correlation_id, client_id_size = self._header(frame)
        observed = None if proxy.observer is None else proxy.observer.requested(self.session.number, frame)
        if key == PRODUCE and is_unanswered(frame, version, client_id_size):
            if observed is not None:
                observed(b"")
            is_free = upstream.send(frame, None)
            return None if is_free else Draining(upstream)
        if key == SASL_HANDSHAKE and version == 0:
            self._speaks_tokens = True
        look, is_faulty = proxy.looks.get((key, version)), proxy.is_faulty
        if look is None and observed is None and not is_faulty:
            return None if upstream.send(frame, Sent(correlation_id, None)) else Draining(upstream)
        answer = Answer(self, correlation_id, look, version, observed)
        if is_faulty:
            return Forwarded(upstream, frame, answer)
        return None if upstream.send(frame, Sent(correlation_id, answer.take)) else Draining(upstream)

    def _header(self, frame: memoryview) -> tuple[int, int, int | None, int]:
        """Returns API key, version, correlation id and the size of the client id; -1 and None for a token of SASL."""
        try:
            key, version, correlation_id, client_id_size = _unpack(frame)
        except struct.error:
            if self._speaks_tokens:
                return -1, -1, None, 0
            raise MalformedMessage("the header of a request is truncated") from None
        if self._speaks_tokens:
            request = self._proxy.requests.get(key)
            if request is None or version not in request.versions:
                return -1, -1, None, 0
            self._speaks_tokens = False
        return key, version, correlation_id, client_id_size

    def encode(self, response: Any) -> "list[Buffer]":
        """Returns the awaited response unchanged: it is encoded already."""
        answers: list[Buffer] = response
        return answers

    def close(self) -> None:
        self.session.close()
        if self.upstream is not None:
            self.upstream.close("the client has disconnected")

    @property
    def is_awaited(self) -> bool:
        """Whether forwarded requests are not answered yet."""
        return self.upstream is not None and self.upstream.is_awaited

    def when_answered(self, done: Callable[[], object]) -> None:
        """Calls ``done`` once all forwarded requests are answered."""
        assert self.upstream is not None
        self.upstream.on_answered = done

    # ------------------------------------------------------------ answers

    def pass_on(self, answers: "Buffer") -> bool:
        """Sends responses to the client. Returns whether their memory may be reused."""
        transport = self._connection.transport
        transport.write(answers)
        return transport.get_write_buffer_size() == 0

    def lose(self, reason: str) -> None:
        self._connection.close(reason, level=logging.DEBUG)

    def resume(self) -> None:
        """Resumes reading responses: the client has read all data."""
        if self.upstream is not None:
            self.upstream.resume()

    def with_addresses(self, answer: bytes, look: Look, version: int) -> bytes:
        """Returns a response in which the nodes' addresses are those of the proxy.

        :param answer: with its size
        """
        try:
            found = decode_response(memoryview(answer)[4:], look.request, version)
        except MalformedMessage as error:
            logger.warning("A response is passed on unchanged, since it cannot be decoded: %s", error)
            return answer
        response: Any = found.response
        if isinstance(response, MetadataResponse):
            self._proxy.note(response)
        if look.request.api_key == API_VERSIONS:
            has_changed = limit_versions(response, self._proxy.addressed)
        else:
            has_changed = replace(response, look.paths, self._place)
        return b"".join(response.encode_frame(found.correlation_id, found.version)) if has_changed else answer


class Answer:
    """A response that is decoded or observed."""

    __slots__ = ("_look", "_observed", "_passage", "_version", "correlation_id", "deliver")

    def __init__(
        self,
        passage: Passage,
        correlation_id: int | None,
        look: Look | None,
        version: int,
        observed: Callable[[bytes], object] | None,
    ) -> None:
        self._passage = passage
        self.correlation_id = correlation_id
        self._look = look
        self._version = version
        self._observed = observed
        self.deliver: Callable[[Any], object] | None = None  #: awaits it; None: it is sent to the client

    def take(self, answer: memoryview) -> None:
        """Passes it to its observer, and sends it on."""
        content = bytes(answer)
        if self._observed is not None:
            self._observed(content)
        if self._look is not None:
            content = self._passage.with_addresses(content, self._look, self._version)
        if self.deliver is not None:
            self.deliver([content])
        else:
            self._passage.pass_on(content)


class Forwarded:
    """A request whose response is awaited before the next request is served."""

    __slots__ = ("_answer", "_frame", "_upstream")

    def __init__(self, upstream: Upstream, frame: memoryview, answer: Answer) -> None:
        self._upstream = upstream
        self._frame = frame
        self._answer = answer

    def then(self, deliver: Callable[[Any], object]) -> None:
        self._answer.deliver = deliver
        self._upstream.send(self._frame, Sent(self._answer.correlation_id, self._answer.take))

    def cancel(self) -> None:
        self._answer.deliver = lambda answer: None


class Draining:
    """Awaited instead of a response while the node does not read the requests."""

    __slots__ = ("_upstream",)

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    def then(self, deliver: Callable[[Any], object]) -> None:
        self._upstream.when_drained(deliver)

    def cancel(self) -> None:
        self._upstream.when_drained(None)


def is_unanswered(frame: memoryview, version: int, client_id_size: int) -> bool:
    """Returns whether a Produce request has ``acks=0``: there is no response then.

    :raises MalformedMessage: it is truncated
    """
    at = 10 + max(client_id_size, 0)
    try:
        if version >= 9:
            if frame[at] or frame[at + 1]:  # what it seldom has: tags, or a transactional id
                at = skip_tags(frame, at)
                size, at = read_uvarint(frame, at)
                at += max(size - 1, 0)
            else:
                at += 2
        elif version >= 3:
            at += 2 + max(int.from_bytes(frame[at : at + 2], signed=True), 0)
        return frame[at] == 0 and frame[at + 1] == 0
    except IndexError:
        raise MalformedMessage("a Produce request is truncated") from None
