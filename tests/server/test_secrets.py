"""Passwords, keys and tokens are in no log line, no response and no repr, even after errors."""

import base64
import logging

import pytest

from barnabas.security.sasl.scram import credential_of
from barnabas.testing import Broker
from barnabas.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from barnabas.wire.messages.describe_configs import DescribeConfigsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from tests.raw import Client

PASSWORD, WRONG, SALTED, MASTER = "pass-xyzzy-1", "guess-xyzzy-2", b"salted-xyzzy-3", "master-xyzzy-4"
BROKER = 4


@pytest.fixture
def broker(caplog):
    caplog.set_level(logging.DEBUG)
    with Broker({"delegation.token.secret.key": MASTER}, users={"alice": PASSWORD}) as broker:
        yield broker


@pytest.fixture
def secrets(broker):
    """Returns the secrets: plain, in hex, in base64, and as repr writes bytes."""
    (alice,) = (each for each in broker._server.broker.image.credentials.values() if each.mechanism == 1)
    raw = [PASSWORD.encode(), WRONG.encode(), SALTED, MASTER.encode(), alice.stored_key, alice.server_key]
    forms = [(each.hex(), base64.b64encode(each).decode(), repr(each)[2:-1]) for each in raw]
    return {text for each in forms for text in each}


def log_in(client, password):
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    return client.ask(SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode()), 2)


def described(client):
    """Returns the configs of the broker from DescribeConfigs, with synonyms."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=BROKER, resource_name="1", configuration_keys=None
    )
    return client.ask(
        DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True), 4
    )


def altered(client, name, value):
    """Returns the response to a change of the broker's config."""
    change = IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
        name=name, config_operation=0, value=value
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=BROKER, resource_name="1", configs=[change]
    )
    return client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)


def test_what_clients_do_shows_no_secret(broker, secrets, caplog):
    answers = []
    with Client(broker.port) as client:
        answers.append(log_in(client, WRONG))
    with Client(broker.port) as client:
        answers.append(log_in(client, PASSWORD))
        answers.append(described(client))
        credential = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name="bob", mechanism=1, iterations=1, salt=b"s", salted_password=SALTED
        )
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential])
        answers += [client.ask(request, 0), repr(request)]
        jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
        answers.append(altered(client, jaas, f'no module required user_alice="{PASSWORD}"'))
        answers.append(altered(client, "ssl.key.password", WRONG))
        answers.append(described(client))
    answers.append(repr(credential_of("SCRAM-SHA-256", PASSWORD.encode(), b"salt")))
    seen = f"{answers} {caplog.text}"
    assert "Failed authentication" in caplog.text
    assert not [secret for secret in secrets if secret in seen]


def test_a_bug_shows_no_secret(broker, secrets, caplog, monkeypatch):
    """A request with an unexpected error is logged."""
    from barnabas.api_handlers.registry import APIS

    def fail(request, context):
        raise RuntimeError("a bug")

    monkeypatch.setattr(APIS[51], "handle", fail)
    with Client(broker.port) as client:
        log_in(client, PASSWORD)
        credential = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name="bob", mechanism=1, iterations=4096, salt=b"s", salted_password=SALTED
        )
        client.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[credential]), 0)
    assert "a bug" in caplog.text
    assert not [secret for secret in secrets if secret in caplog.text]
