"""The gate of a SASL listener: a responder that authenticates the client, and passes its requests on afterwards.

Knows nothing of how a mechanism works. Apache Kafka's ``SaslServerAuthenticator`` (KIP-43, KIP-152, KIP-368).
"""

import logging
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.error_responses import shaped
from barnabas.api_handlers.session import Session
from barnabas.broker.credentials import ImageCredentials
from barnabas.clock import Clock, Scheduler
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.errors import (
    CloseConnection,
    IllegalSaslState,
    MalformedMessage,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from barnabas.security.sasl.mechanism import Authenticated, AuthenticationRefused, Exchange
from barnabas.security.sasl.mechanisms import Enabled, Surroundings, enabled
from barnabas.security.tokens import SECRET_KEY
from barnabas.server.connection import LastAnswer, Throttled
from barnabas.server.dispatch import Buffers, Dispatcher, read_api_key
from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.schema import Versions
from barnabas.wire.types import Buffer

if TYPE_CHECKING:
    from barnabas.broker import Node

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Request)
Answer = Buffers | Throttled | Later[Response] | None

REAUTHENTICATION_INTERVAL_MS: Final = 1000
"""A client authenticates again at most once in this time (``KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``)."""

WITH_FRAMES: Final = 1
"""The first version of SaslHandshake after which tokens are in SaslAuthenticate requests (KIP-152)."""

ERROR_CODE: Final = slice(8, 10)
"""The position of the error code in an ApiVersions response of any version: after its size and the correlation id."""


class Gates:
    """Makes the gates of one listener, by the configs at that time.

    :raises ConfigError: a mechanism is unknown, or has no valid login module
    """

    def __init__(self, node: "Node", listener_name: str) -> None:
        self._node = node
        self._listener_name = listener_name
        random_bytes, secret_key = node.random.randbytes, node.config[SECRET_KEY]
        credentials = ImageCredentials(lambda: node.image, node.clock, random_bytes, secret_key)
        self._around = Surroundings(credentials, random_bytes)
        self._config = node.config
        self.authenticated: Counter[str] = Counter()  #: authentications by mechanism
        self.refused: Counter[str] = Counter()  #: failed authentications; under "" those whose mechanism is not enabled
        self._settings = self._read()

    def _read(self) -> "SaslSettings":
        node, configs = self._node, ListenerConfigs(self._config, self._listener_name)
        return SaslSettings(
            enabled(configs, self._around),
            node.clock,
            node.scheduler,
            configs["connection.failed.authentication.delay.ms"] / 1000,
            configs["sasl.server.max.receive.size"],
            self.authenticated,
            self.refused,
        )

    def new_gate(self, dispatcher: Dispatcher) -> "SaslGate":
        """Returns the gate of a new connection. Dynamic configs that are not valid leave the old ones in effect."""
        if self._node.config is not self._config:
            self._config = self._node.config
            try:
                self._settings = self._read()
            except ConfigError as error:
                logger.error("Keeping the SASL mechanisms of listener %s: %s", self._listener_name, error)
        return SaslGate(dispatcher, self._settings)


class SaslSettings(NamedTuple):
    """The settings that the gates of one listener share."""

    mechanisms: Mapping[str, Enabled]
    clock: Clock
    scheduler: Scheduler
    failure_delay_s: float
    max_receive_bytes: int
    authenticated: Counter[str]
    refused: Counter[str]


class SaslGate:
    """A :class:`~barnabas.server.connection.Responder` in front of another one, for one connection.

    ``_expect`` is the state: it serves the next frame. In the order of a connection's life these are :meth:`_first`,
    :meth:`_handshake`, :meth:`_authenticate` (or :meth:`_bare_token`), :meth:`_serve`; re-authentication goes from the
    last to :meth:`_authenticate` and back.
    """

    __slots__ = (
        "_began_again_ms", "_dispatcher", "_ends_at_ms", "_exchange", "_expect", "_mechanism", "_settings",
        "max_request_bytes",
    )  # fmt: skip

    def __init__(self, dispatcher: Dispatcher, settings: SaslSettings) -> None:
        self._dispatcher = dispatcher
        self._settings = settings
        self.max_request_bytes: int | None = settings.max_receive_bytes
        self._expect: Callable[[memoryview], Answer] = self._first
        self._exchange: Exchange | None = None
        self._mechanism = ""
        self._ends_at_ms: int | None = None  # of the session (KIP-368)
        self._began_again_ms: int | None = None

    @property
    def session(self) -> Session:
        return self._dispatcher.session

    def respond(self, frame: memoryview) -> Answer:
        """Returns what :meth:`Dispatcher.respond` returns.

        :raises MalformedMessage: the frame is not the request that it claims to be
        :raises CloseConnection: the client may not send this now, or has not authenticated; the exception has the last
            response
        """
        return self._expect(frame)

    def encode(self, response: Response | CloseConnection) -> "Buffers | Throttled":
        return self._dispatcher.encode(response)

    def close(self) -> None:
        self._dispatcher.close()

    # ------------------------------------------------------------ the states

    def _first(self, frame: memoryview) -> Answer:
        """Takes ApiVersions, once, or SaslHandshake."""
        if _api_key(frame) != ApiVersionsRequest.api_key:
            return self._handshake(frame)
        answer = self._dispatcher.respond(frame)
        pieces = answer.answer if isinstance(answer, Throttled) else answer
        if isinstance(pieces, list) and not any(b"".join(pieces)[ERROR_CODE]):
            self._expect = self._handshake  # after an error the client may send ApiVersions again
        return pieces

    def _handshake(self, frame: memoryview) -> Answer:
        """Takes SaslHandshake, which names the mechanism."""
        if _api_key(frame) != SaslHandshakeRequest.api_key:
            raise CloseConnection(f"a request with API key {_api_key(frame)} before SaslHandshake")
        request, version, correlation_id = _decoded(SaslHandshakeRequest, frame)
        mechanisms = self._settings.mechanisms
        response = SaslHandshakeResponse(mechanisms=list(mechanisms))
        found = mechanisms.get(request.mechanism)
        if found is None and self._is_in:
            raise CloseConnection("the client authenticates again by a mechanism that is not enabled")
        if found is None:
            response.error_code = UnsupportedSaslMechanism.code
            pieces = response.encode_frame(correlation_id, version)
            return self._failed(f"the mechanism {request.mechanism[:50]!r} is not enabled", pieces)
        if self._is_in:
            self._exchange = found.mechanism.begin(self._now) if request.mechanism == self._mechanism else None
        else:
            self._mechanism = request.mechanism
            self._exchange = found.mechanism.begin(self._now)
        self._expect = self._authenticate if version >= WITH_FRAMES else self._bare_token
        return response.encode_frame(correlation_id, version)

    def _authenticate(self, frame: memoryview) -> Answer:
        """Takes SaslAuthenticate with a token of the client."""
        if _api_key(frame) != SaslAuthenticateRequest.api_key:
            return self._illegal(frame)
        request, version, correlation_id = _decoded(SaslAuthenticateRequest, frame)
        try:
            token, result = self._evaluate(request.auth_bytes)
        except AuthenticationRefused as refusal:
            text = str(refusal) or self._general_text()
            response = SaslAuthenticateResponse(
                error_code=SaslAuthenticationFailed.code, error_message=text, auth_bytes=b""
            )
            return self._failed(text, response.encode_frame(correlation_id, version))
        lifetime_ms = 0 if result is None else self._let_in(result)
        response = SaslAuthenticateResponse(error_message="", auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return response.encode_frame(correlation_id, version)

    def _bare_token(self, frame: memoryview) -> Answer:
        """Takes a token of the client without a header, and answers with one (SaslHandshake 0)."""
        try:
            token, result = self._evaluate(frame)
        except AuthenticationRefused as refusal:
            return self._failed(str(refusal) or self._general_text(), [])
        if result is not None:
            self._let_in(result)
        return [len(token).to_bytes(4), token]

    def _serve(self, frame: memoryview) -> Answer:
        """Passes requests on until the session ends."""
        if self._ends_at_ms is None:
            return self._dispatcher.respond(frame)
        now_ms = self._now()
        if _api_key(frame) == SaslHandshakeRequest.api_key and self._may_begin_again(now_ms):
            self._began_again_ms = now_ms
            self.max_request_bytes = self._settings.max_receive_bytes
            return self._handshake(frame)
        if now_ms >= self._ends_at_ms:
            raise CloseConnection("the session has ended, and the client has not authenticated again")
        return self._dispatcher.respond(frame)

    # ------------------------------------------------------------ transitions

    @property
    def _is_in(self) -> bool:
        """Whether the client has authenticated once."""
        return bool(self._dispatcher.session.sasl_mechanism)

    def _may_begin_again(self, now_ms: int) -> bool:
        began_ms = self._began_again_ms
        return began_ms is None or now_ms - began_ms >= REAUTHENTICATION_INTERVAL_MS

    def _let_in(self, result: Authenticated) -> int:
        """Begins the session, or prolongs it, and returns its length in milliseconds; 0 if it has no end."""
        session = self._dispatcher.session
        self._settings.authenticated[self._mechanism] += 1
        session.principal = result.principal
        session.sasl_mechanism = self._mechanism
        session.by_token = result.by_token
        self._exchange = None
        self._expect = self._serve
        self.max_request_bytes = None
        limits = [self._settings.mechanisms[self._mechanism].max_reauth_ms]
        now_ms = self._now()
        if result.expires_at_ms is not None:
            limits.append(max(result.expires_at_ms - now_ms, 0))
        has_end = limits[0] > 0 or len(limits) > 1
        lifetime_ms = min(limits if limits[0] > 0 else limits[1:], default=0)
        self._ends_at_ms = now_ms + lifetime_ms if has_end else None
        return lifetime_ms

    def _evaluate(self, token: "Buffer") -> tuple[bytes, Authenticated | None]:
        """Passes a token of the client to the exchange.

        :raises AuthenticationRefused: the exchange refuses it, or the client authenticates as another user than before
        :raises CloseConnection: the client authenticates again by another mechanism
        """
        if self._exchange is None:
            raise CloseConnection("the client authenticates again by another mechanism")
        answer, result = self._exchange.evaluate(bytes(token))
        before = self._dispatcher.session.principal
        if result is not None and self._is_in and result.principal != before:
            now = result.principal
            raise AuthenticationRefused(
                f"Cannot change principals during re-authentication from {before.type}.{before.name}: "
                f"{now.type}.{now.name}"
            )
        return answer, result

    def _illegal(self, frame: memoryview) -> Answer:
        """Answers a request that is not allowed during authentication in that request's own format, and closes the
        connection.

        :raises CloseConnection: the API is not answered here
        """
        api = self._dispatcher.session.promise.apis.get(_api_key(frame))
        if api is None:
            raise CloseConnection(f"API key {_api_key(frame)} is not answered here")
        request, version, correlation_id = _decoded(api.request, frame, api.versions)
        name = type(request).__name__.removesuffix("Request")
        name = "".join(f"_{each}" if each.isupper() else each for each in name).upper().removeprefix("_")
        error = IllegalSaslState(f"Unexpected Kafka request of type {name} during SASL authentication.")
        return self._failed(str(error), shaped(request, error, version).encode_frame(correlation_id, version))

    def _failed(self, reason: str, pieces: "list[Buffer]") -> Answer:
        """Sends the last response and closes the connection, after a delay that slows down guessing."""
        session = self._dispatcher.session
        self._settings.refused[self._mechanism] += 1
        logger.info("Failed authentication with %s on %s (%s)", session.client_host, session.listener, reason)
        later: Later[Response] = Later()
        end = LastAnswer("not authenticated", pieces)
        timer = self._settings.scheduler.call_later(self._settings.failure_delay_s, later.resolve, end)
        later.on_cancel = timer.cancel
        return later

    def _general_text(self) -> str:
        what = "re-authentication" if self._is_in else "authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _now(self) -> int:
        return self._settings.clock.time_ms()


def _api_key(frame: memoryview) -> int:
    try:
        return int(read_api_key(frame)[0])
    except struct.error:
        raise MalformedMessage("a request without an API key") from None


def _decoded(request: type[R], frame: memoryview, versions: Versions | None = None) -> tuple[R, int, int]:
    """Returns the request, its version and its correlation id.

    :param versions: those that are answered; by default all that are declared
    """
    header, body = read_request_header(frame)
    version = header.request_api_version
    if version not in (versions or request.versions):
        raise CloseConnection(f"{request.__name__} in version {version} is not answered here")
    return request.decode(frame, version=version, at=body), version, header.correlation_id
