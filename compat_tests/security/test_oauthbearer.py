"""The Python clients with tokens by OAUTHBEARER."""

import time
from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider as TokenProviderOfAiokafka
from aiokafka.helpers import create_ssl_context
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kafka.net.sasl.oauth import AbstractTokenProvider

from compat_tests.whole_round import CLIENTS

from .secured import Secured, unsecured_token

COUNT = 30
VALUES = [f"{number} {'x' * 10_000}".encode() for number in range(COUNT)]


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def token(self) -> str:
        return unsecured_token()


class TokensOfAiokafka(TokenProviderOfAiokafka):  # type: ignore[misc]  # nor has aiokafka
    async def token(self) -> str:
        return unsecured_token()


def of_librdkafka(secured: Secured, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.bootstrap(protocol),
        "security.protocol": protocol,
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (unsecured_token(), time.time() + 3600),
        "ssl.ca.location": secured.authority,
    }


def of_kafka_python(secured: Secured, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.bootstrap(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(),
        "ssl_cafile": secured.authority,
    }


def of_aiokafka(secured: Secured, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": secured.bootstrap(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": TokensOfAiokafka(),
        "ssl_context": create_ssl_context(cafile=secured.authority),
    }


SETTINGS = {"kafka-python": of_kafka_python, "confluent-kafka": of_librdkafka, "aiokafka": of_aiokafka}


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", CLIENTS)
def test_python(secured: Secured, client: str, protocol: str) -> None:
    settings = SETTINGS[client](secured, protocol)
    assert CLIENTS[client](settings, f"{client}-{protocol}", VALUES) == VALUES


def test_a_token_that_has_expired(secured: Secured) -> None:
    said: list[KafkaError] = []
    expired = unsecured_token(issued_at=time.time() - 7200)
    settings = {
        **of_librdkafka(secured, "SASL_SSL"),
        "oauth_cb": lambda _: (expired, time.time() + 3600),
        "error_cb": said.append,
    }
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    admin.poll(1)
    assert any(error.code() == KafkaError._AUTHENTICATION for error in said), said
