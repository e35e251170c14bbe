"""Decodes a frame, calls the handler of its API, and encodes the response.

Knows nothing of sockets, and of the protocol only the API key and version in the header.
"""

import struct
from typing import TYPE_CHECKING

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.api_versions import unsupported_version
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import is_exempt
from barnabas.api_handlers.session import Session
from barnabas.errors import CloseConnection, MalformedMessage
from barnabas.server.connection import Throttled
from barnabas.server.routes import Routes
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Response
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.types import Buffer

if TYPE_CHECKING:
    from barnabas.broker import Node
    from barnabas.security.quotas.client_quotas import Meter

Buffers = list[Buffer]

read_api_key = struct.Struct(">h").unpack_from
read_key_and_version = struct.Struct(">hh").unpack_from
read_route_number = struct.Struct(">i").unpack_from


class Dispatcher:
    """Answers the requests of one connection, one after the other."""

    __slots__ = ("_known", "_routes", "_time_ms", "context", "max_request_bytes", "session")

    def __init__(self, node: "Node", session: Session, routes: Routes | None = None) -> None:
        self.session = session
        self.max_request_bytes: int | None = None
        self.context = Context(node, session)
        self._routes = Routes(session.promise.apis) if routes is None else routes
        self._known = self._routes.by_number.get
        self._time_ms = node.clock.time_ms

    def respond(self, frame: memoryview) -> "Buffers | Throttled | Later[Response] | None":
        """Returns the answer to the request in ``frame`` as pieces to send; a response that comes later; or None if the
        request has no response.

        While quotas are set, the response may have a throttle time.

        The next request may be served once a later response has been encoded (:meth:`encode`).

        :raises MalformedMessage: the frame is not the request that it claims to be
        :raises CloseConnection: the API or the version is not answered, or the protocol has no response
        """
        try:
            (number,) = read_route_number(frame)
        except struct.error:
            raise MalformedMessage("a request without an API key and a version") from None
        route = self._known(number)
        if route is None:
            return self._respond_first(frame)
        header, body = read_request_header(frame)
        version, correlation_id = header.request_api_version, header.correlation_id
        context = self.context
        context.api_version = version
        context.correlation_id = correlation_id
        context.client_id = header.client_id
        context.time_ms = self._time_ms()
        quotas = context.broker.quotas
        context.meter = (
            None if quotas is None else quotas.meter(self.session.principal.name, context.client_id, len(frame))
        )
        request = route.request.decode(frame, version=version, at=body)
        answer = route.handle(route.api, request, context)
        if context.meter is not None:
            return self._metered(answer, context.meter, route.api.key)
        if isinstance(answer, Later):
            if answer.response is None:
                return answer
            answer = answer.response
        return None if answer is None else answer.encode_frame(correlation_id, version)

    def _respond_first(self, frame: memoryview) -> "Buffers | Throttled | Later[Response] | None":
        """Answers a request whose version has no route yet: adds the route, or refuses the version."""
        api_key, version = read_key_and_version(frame)
        api = self._routes.apis.get(api_key)
        if api is None:
            raise CloseConnection(f"API key {api_key} is not answered here")
        if api.versions.first <= version <= api.versions.last:
            self._routes.add(api, version)
            return self.respond(frame)
        declared = api.request  # before the header, whose version is known once the request's class is imported
        header, _ = read_request_header(frame)
        if api_key == ApiVersionsRequest.api_key:
            return unsupported_version(self.context).encode_frame(header.correlation_id, 0)
        raise CloseConnection(f"{declared.__name__} in version {version} is not answered here")

    def encode(self, response: Response | CloseConnection) -> Buffers | Throttled:
        """Returns a later response to the last request, as pieces to send.

        :raises CloseConnection: there is no response
        """
        if isinstance(response, CloseConnection):
            raise response
        context = self.context
        if context.meter is not None:
            context.meter.go_on()
            return self._throttled(response, context.meter)
        return response.encode_frame(context.correlation_id, context.api_version)

    # ------------------------------------------------------------ quotas

    def _metered(
        self, answer: "Response | Later[Response] | None", meter: "Meter", api_key: int
    ) -> "Buffers | Throttled | Later[Response] | None":
        """Returns what :meth:`respond` returns, and charges the request to the client's quotas."""
        if isinstance(answer, Later):
            if answer.response is None:
                meter.stop()
                return answer
            answer = answer.response
        if answer is not None:
            return self._throttled(answer, meter)
        if api_key == ProduceRequest.api_key:  # acks=0: only the bytes count (``KafkaApis.handleProduceRequest``)
            meter.count_produced()
        return Throttled([], meter.throttle_ms / 1000) if meter.throttle_ms else None

    def _throttled(self, response: Response, meter: "Meter") -> Buffers | Throttled:
        """Encodes the response, with its throttle time (``KafkaApis.sendResponseMaybeThrottle``)."""
        context, api_key = self.context, response.request.api_key
        if api_key == ProduceRequest.api_key:
            meter.count_produced()
        elif is_exempt(api_key, self.session.promise):
            meter.is_exempt = True
        meter.count_mutations()
        pieces = response.encode_frame(context.correlation_id, context.api_version)
        meter.count_time()  # including the time of the encoding
        if not meter.throttle_ms:
            return pieces
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = meter.throttle_ms
            pieces = response.encode_frame(context.correlation_id, context.api_version)
        return Throttled(pieces, meter.throttle_ms / 1000)

    def close(self) -> None:
        """Ends the session: the connection is closed."""
        self.session.close()
