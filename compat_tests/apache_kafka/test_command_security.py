"""Our commands as authenticated clients: ``--command-config`` with the configs of Java's clients."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from barnabas.cli import commands

from .secured import Secured, login, start

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    yield from start(tmp_path_factory.mktemp("secured"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command with a properties file."""

    def run(properties: dict[str, str], *arguments: str, **more: Any) -> Result:
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return CliRunner().invoke(
            commands.barnabas, [arguments[0], "--command-config", str(file), *arguments[1:]], **more
        )

    return run


@pytest.mark.parametrize("listener", ["tls", "plain", "scram", "oauth"])
def test_commands_authenticate(secured: Secured, run: Run, listener: str) -> None:
    properties = secured.properties(listener)
    ran_tokens = run(properties, "topics", "--describe", "--topic", "orders", "--json")
    assert ran_tokens.exit_code == 0, ran_tokens.output
    assert json.loads(ran_tokens.stdout)[0]["partition_count"] == 2
    written = run(properties, "produce", "--topic", f"of-{listener}", input="a record\n")
    assert written.exit_code == 0, written.output
    read = run(properties, "consume", "--topic", f"of-{listener}", "--from-beginning", "--max-messages", "1")
    assert read.stdout.splitlines() == ["a record"]


def test_a_wrong_password(secured: Secured, run: Run) -> None:
    refused = run(secured.properties("scram", password="wrong"), "topics", "--list")
    assert refused.exit_code == 1
    assert "refuses this client" in refused.output and "sasl.mechanism and credentials" in refused.output
    assert "wrong" not in refused.output


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl.jaas.config": ""}, "sasl.jaas.config is missing"),
        ({"sasl.mechanism": "SCRAM"}, "sasl.mechanism is 'SCRAM', but must be one of PLAIN, SCRAM-SHA-256"),
        ({"sasl.jaas.config": 'Module required password="wrong";'}, "must give user and password"),
        ({"security.protocol": "SASL_SSL", "ssl.truststore.location": "/no/such.pem"}, "/no/such.pem"),
    ],
)
def test_invalid_properties(run: Run, changes: dict[str, str], words: str) -> None:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", **login("x.Y", "PLAIN")}
    refused = run({**properties, **changes}, "topics", "--list")
    assert refused.exit_code == 1
    assert words in refused.output and "wrong" not in refused.output


def eventually(is_so: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_delegation_tokens(secured: Secured, run: Run) -> None:
    """A token is created, used for a login by SCRAM, renewed and expired."""
    properties = secured.properties("scram")

    def ran_tokens(*arguments: str, fails: bool = False) -> Any:
        ran = run(properties, "delegation-tokens", *arguments, "--json")
        assert bool(ran.exit_code) is fails, ran.output
        return ran.output if fails else json.loads(ran.stdout)

    (token,) = ran_tokens("--create", "--renewer-principal", "User:bob", "--max-life-time-period", "3600000")
    assert (token["owner"], token["requester"], token["renewers"]) == ("User:me", "User:me", ["User:bob"])
    eventually(lambda: ran_tokens("--describe") == [token])  # a broker of Apache Kafka applies it after the response
    assert ran_tokens("--describe", "--owner-principal", "User:me") == [token]
    assert ran_tokens("--describe", "--owner-principal", "User:carol") == []

    jaas = f'x.ScramLoginModule required username="{token["token_id"]}" password="{token["hmac"]}" tokenauth="true";'
    by_token = {**properties, "sasl.jaas.config": jaas}
    assert run(by_token, "topics", "--list").exit_code == 0
    refused = run(by_token, "delegation-tokens", "--create")
    assert refused.exit_code == 1 and "DelegationTokenRequestNotAllowed" in refused.output

    (renewed,) = ran_tokens("--renew", "--hmac", token["hmac"], "--renew-time-period", "60000")
    assert token["issued"] < renewed["expires"] < token["ends"]
    ran_tokens("--expire", "--hmac", token["hmac"])
    eventually(lambda: ran_tokens("--describe") == [])
    assert "DelegationTokenNotFound" in ran_tokens("--renew", "--hmac", token["hmac"], fails=True)
    assert "must be like User:alice" in ran_tokens("--create", "--renewer-principal", "bob", fails=True)
    assert "must be in base64" in ran_tokens("--renew", "--hmac", "secret", fails=True)
