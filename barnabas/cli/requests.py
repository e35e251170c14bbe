"""Requests in Barnabas's own classes, sent by kafka-python's admin client to any broker or to a group's coordinator.

Knows nothing of any particular request. kafka-python's connections send them, so they use its TLS and SASL settings.
"""

import struct
from typing import Any

from barnabas.wire.headers import RequestHeader, ResponseHeader
from barnabas.wire.message import Request, Response


def send_to_any(admin: Any, request: Request) -> Any:
    """Sends a request to a broker of the cluster, in the newest version that both know, and returns the response.

    :raises kafka.errors.KafkaError: the broker cannot be reached, or does not support the request
    """
    return admin._manager.run(admin._manager.send, ApiMessage(request))


def send_to_broker(admin: Any, node_id: int, request: Request) -> Any:
    """Sends a request to that broker, in the newest version that both know, and returns the response.

    :raises kafka.errors.KafkaError: the broker cannot be reached, or does not support the request
    """

    async def send() -> Any:
        return await admin._manager.send(ApiMessage(request), node_id=node_id)

    return admin._manager.run(send)


def send_to_coordinator(admin: Any, group_id: str, request: Request) -> Any:
    """Sends a request to the group's coordinator, in the newest version that both know, and returns the response.

    :raises kafka.errors.KafkaError: the broker cannot be reached, or does not support the request
    """

    async def send() -> Any:
        node_id = await admin._find_coordinator_id(group_id)
        return await admin._manager.send(ApiMessage(request), node_id=node_id)

    return admin._manager.run(send)


def coordinators(admin: Any, group_ids: list[str]) -> dict[str, str]:
    """Returns each group's coordinator as address and node id: ``localhost:9092 (1)``."""

    async def find() -> Any:
        return await admin._find_coordinator_ids(group_ids)

    found = admin._manager.run(find) if group_ids else {}
    brokers = {broker.node_id: broker for broker in admin._manager.cluster.brokers()}
    return {
        group_id: f"{brokers[node_id].host}:{brokers[node_id].port} ({node_id})"
        for group_id, node_id in found.items()
        if node_id in brokers
    }


API_VERSIONS = 18


class ApiMessage:
    """A Barnabas request with the interface of kafka-python's ``ApiMessage``, its header and its response class."""

    _min_version = _max_version = None

    def __init__(self, request: Request) -> None:
        self._request = request
        self._response: type[Response] = type(request).response
        self.name = type(request).__name__
        self.API_KEY = type(request).api_key
        self.API_VERSION: int | None = None  #: set by the connection, from the broker's ApiVersions
        self.min_version, self.max_version = type(request).versions
        self.correlation_id = 0

    # ------------------------------------------------------ request

    def with_header(self, correlation_id: int, client_id: str) -> None:
        self.correlation_id, self._client_id = correlation_id, client_id

    def expect_response(self) -> bool:
        return True

    def encode(self, *, framed: bool, header: bool) -> bytes:
        assert framed and header and self.API_VERSION is not None
        version = self.API_VERSION
        head = RequestHeader(
            request_api_key=self.API_KEY,
            request_api_version=version,
            correlation_id=self.correlation_id,
            client_id=self._client_id,
        ).encode(version=2 if self._is_flexible else 1)
        body = self._request.encode(version=version)
        return struct.pack(">i", len(head) + len(body)) + head + body

    @property
    def _is_flexible(self) -> bool:
        return self.API_VERSION in type(self._request).flexible

    # ------------------------------------------------------ header, and response class

    @property
    def header(self) -> "ApiMessage":
        return self

    def get_response_class(self) -> "ApiMessage":
        return self

    def parse_header(self, buffer: Any) -> ResponseHeader:
        # The header of an ApiVersions response is that of version 0: a client may not know the newer one yet (KIP-511).
        flexible = int(self._is_flexible and self.API_KEY != API_VERSIONS)
        head, end = ResponseHeader.decode_from(bytes(buffer), 0, version=flexible)
        buffer.seek(end)
        return head

    def decode(self, buffer: Any) -> Response:
        assert self.API_VERSION is not None
        return self._response.decode(buffer.read(), version=self.API_VERSION)
