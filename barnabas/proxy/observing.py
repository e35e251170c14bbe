"""Passes copies of requests and responses to sinks, which print or record them; a filter selects them.

Knows nothing of what sinks do. Frames are copied, so that the proxy need not wait for the sinks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from barnabas.clock import Clock
from barnabas.diagnosis import Address
from barnabas.errors import MalformedMessage
from barnabas.faults.naming import find_api
from barnabas.faults.subjects import TopicName, subjects_of
from barnabas.wire.frames import RequestFrame, ResponseFrame, api_name, decode_request, decode_response
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Request

TOKEN: Final = -1
"""The API key of a frame that is not a request, but a SASL token."""


class Exchange:
    """A request that was forwarded, and its response once there is one."""

    __slots__ = (
        "answer", "answered_at", "api", "at", "client_id", "connection", "frame", "key", "number", "request_class",
        "time_ms", "version",
    )  # fmt: skip

    def __init__(self, number: int, connection: int, frame: bytes, requests: Mapping[int, type[Request]]) -> None:
        self.number = number  #: requests are numbered from 1 on, over all connections
        self.connection = connection
        self.frame = frame  #: without its size
        self.answer = b""  #: without its size; empty if there is no response
        self.at = self.answered_at = 0.0  #: of the monotonic clock
        self.time_ms = 0
        key = int.from_bytes(frame[:2], signed=True)
        self.request_class = requests.get(key)
        try:
            header = read_request_header(frame)[0]
        except MalformedMessage:
            self.key, self.version, self.client_id = TOKEN, -1, None
        else:
            self.key, self.version, self.client_id = key, header.request_api_version, header.client_id
        self.api = "token" if self.key == TOKEN or self.request_class is None else api_name(self.request_class)

    def request(self) -> RequestFrame:
        """Decodes the request. :raises MalformedMessage: it cannot be decoded"""
        return decode_request(self.frame, {} if self.request_class is None else {self.key: self.request_class})

    def response(self) -> ResponseFrame:
        """Decodes the answer. :raises MalformedMessage: it cannot be decoded, or there is none"""
        if self.request_class is None or not self.answer:
            raise MalformedMessage("there is no answer")
        return decode_response(self.answer, self.request_class, self.version)


class Sink(Protocol):
    """Receives the requests and responses."""

    def opened(self, connection: int, node: Address, client: tuple[str, int], at: float, /) -> None: ...

    def requested(self, exchange: Exchange, /) -> None: ...

    def answered(self, exchange: Exchange, /) -> None: ...

    def closed(self, connection: int, at: float, /) -> None: ...


class Filter(NamedTuple):
    """Which requests are of interest; an empty set is any."""

    apis: frozenset[int] = frozenset()
    client_ids: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Filter":
        """Returns the filter of ``api=…``, ``client_id=…`` and ``topic=…``, of which each may be there several times.

        >>> Filter.parse(["api=Produce", "api=1", "topic=orders"])
        Filter(apis=frozenset({0, 1}), client_ids=frozenset(), topics=frozenset({'orders'}))

        :raises ValueError: a text is none of these, or there is no such API
        """
        found: dict[str, set[str]] = {"api": set(), "client_id": set(), "topic": set()}
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals or name not in found:
                raise ValueError(f"{text!r} is none of api=…, client_id=… and topic=…")
            found[name].add(value)
        apis = frozenset(find_api(name).key for name in found["api"])
        return cls(apis, frozenset(found["client_id"]), frozenset(found["topic"]))

    def wants(self, exchange: Exchange, topic_name: TopicName) -> bool:
        """Returns whether the filter selects a request."""
        if self.apis and exchange.key not in self.apis:
            return False
        if self.client_ids and exchange.client_id not in self.client_ids:
            return False
        if not self.topics:
            return True
        try:
            request = exchange.request().request
        except MalformedMessage:
            return False
        return any(topic in self.topics for topic, _ in subjects_of(request, topic_name).topics)


class Observing:
    """Passes the requests that a filter selects, and their responses, to sinks."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        requests: Mapping[int, type[Request]],
        clock: Clock,
        wanted: Filter = Filter(),  # noqa: B008
        topic_name: TopicName = lambda topic_id: None,
    ) -> None:
        """
        :param topic_name: finds a topic by its id
        """
        self._sinks = sinks
        self._requests = requests
        self._clock = clock
        self._wanted = wanted
        self._topic_name = topic_name
        self._number = 0

    def opened(self, connection: int, node: Address, client: tuple[str, int]) -> None:
        now = self._clock.monotonic()
        for sink in self._sinks:
            sink.opened(connection, node, client, now)

    def closed(self, connection: int) -> None:
        now = self._clock.monotonic()
        for sink in self._sinks:
            sink.closed(connection, now)

    def requested(self, connection: int, frame: memoryview) -> Callable[[bytes], object] | None:
        """Passes a request to the sinks. Returns the callback for its response, which includes the size; None if the
        filter does not select it.
        """
        wanted = self._wanted
        if wanted.apis and int.from_bytes(frame[:2], signed=True) not in wanted.apis:
            return None
        exchange = Exchange(self._number + 1, connection, bytes(frame), self._requests)
        if not wanted.wants(exchange, self._topic_name):
            return None
        self._number += 1
        exchange.at = self._clock.monotonic()
        exchange.time_ms = self._clock.time_ms()
        for sink in self._sinks:
            sink.requested(exchange)

        def answered(answer: bytes) -> None:
            exchange.answer = answer[4:]
            exchange.answered_at = self._clock.monotonic()
            for sink in self._sinks:
                sink.answered(exchange)

        return answered
