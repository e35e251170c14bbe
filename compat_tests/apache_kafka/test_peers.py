"""Requests between nodes, as sent by Barnabas, to an Apache Kafka that requires TLS and SASL."""

import asyncio
import time
from collections.abc import Callable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.errors import NetworkException
from barnabas.peers.network import NetworkPeers
from barnabas.peers.secure import SecureConnect
from barnabas.wire.messages.metadata import MetadataRequest

from .secured import SECURITY, SESSION_MS, Secured, start

pytestmark = pytest.mark.xdist_group("forwarding")  # it starts its own brokers

MECHANISM = "sasl.mechanism.inter.broker.protocol"
APACHE = 1


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    yield from start(tmp_path_factory.mktemp("secured"))


def configs(secured: Secured, mechanism: str = "", password: str = "secret") -> dict[str, str]:
    """Returns the configs of a node of Barnabas, for its inter-broker listener INSIDE."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    options = f'username="me" password="{password}"'
    if mechanism == "OAUTHBEARER":
        module, options = "oauthbearer.OAuthBearerLoginModule", 'unsecuredLoginStringClaim_sub="me"'
    login = {
        MECHANISM: mechanism,
        f"listener.name.inside.{mechanism.lower()}.sasl.jaas.config": f"{SECURITY}.{module} required {options};",
    }
    return {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "listener.name.inside.ssl.truststore.type": "PEM",
        "listener.name.inside.ssl.truststore.location": secured.authority,
        "listener.name.inside.ssl.keystore.type": "PEM",
        "listener.name.inside.ssl.keystore.location": secured.client,
        **(login if mechanism else {}),
    }


class Early:
    """Extends sessions in half the time: a busy machine may be late by more than a tenth of a session."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> asyncio.TimerHandle:
        return self._loop.call_later(delay / 2, callback, *args)


def metadata_of(address: str, protocol: str, given: dict[str, str], *, seconds: float = 0.0) -> tuple[Any, Any]:
    """Sends Metadata requests to Apache Kafka repeatedly in that time, over one connection.

    :returns: the last response and error, and the connection
    """

    async def ask() -> tuple[Any, Any]:
        loop = asyncio.get_running_loop()
        timing = {"cluster_clock": SystemClock(), "cluster_scheduler": loop, "scheduler": Early(loop)}
        node: Any = SimpleNamespace(node_id=9, config=BrokerConfig(given), **timing, random=Random(0))
        host, port = address.split(":")
        endpoint = Endpoint("INSIDE", host, int(port), protocol)
        peers = NetworkPeers(node, lambda node_id: endpoint, SecureConnect(node, "INSIDE", protocol, MECHANISM))
        connections = set()
        end = time.monotonic() + seconds
        while True:
            answered: asyncio.Future[tuple[Any, Any]] = loop.create_future()
            peers.send(APACHE, MetadataRequest(topics=None), lambda *each, to=answered: to.set_result(each))
            response, error = await answered
            connections |= {lane._connection for lane in peers._lanes.values()}
            if error is not None or time.monotonic() >= end:
                break
            await asyncio.sleep(0.05)
        peers.close()
        assert len(connections) == 1
        return (response, error), connections.pop()

    return asyncio.run(ask())


def topics(answer: tuple[Any, Any]) -> list[str]:
    response, error = answer
    assert error is None
    return [topic.name for topic in response.topics]


def test_tls_with_a_certificate_of_ours(secured: Secured) -> None:
    assert topics(metadata_of(secured.tls, "SSL", configs(secured))[0]) == ["orders"]


def test_tls_without_one(secured: Secured) -> None:
    given = {name: value for name, value in configs(secured).items() if "keystore" not in name}
    (_, error), _ = metadata_of(secured.tls, "SSL", given)
    assert isinstance(error, NetworkException)


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism"),
    [
        ("plain", "SASL_SSL", "PLAIN"),
        ("plain", "SASL_SSL", "SCRAM-SHA-512"),
        ("scram", "SASL_PLAINTEXT", "SCRAM-SHA-512"),
        ("oauth", "SASL_SSL", "OAUTHBEARER"),
    ],
)
def test_mechanisms(secured: Secured, listener: str, protocol: str, mechanism: str) -> None:
    answer, _ = metadata_of(getattr(secured, listener), protocol, configs(secured, mechanism))
    assert topics(answer) == ["orders"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password(secured: Secured, mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    (_, error), _ = metadata_of(secured.plain, "SASL_SSL", configs(secured, mechanism, "wrong"))
    assert isinstance(error, NetworkException)
    assert "failed authentication due to: Authentication failed" in caplog.text


def test_a_session_is_extended_on_its_connection(secured: Secured) -> None:
    given = configs(secured, "SCRAM-SHA-512")
    answer, connection = metadata_of(secured.plain, "SASL_SSL", given, seconds=1.5 * SESSION_MS / 1000)
    assert topics(answer) == ["orders"]
    assert connection.renewal is not None
