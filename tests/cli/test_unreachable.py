"""The error messages of commands that cannot reach a cluster."""

import contextlib
import http.server
import socket
import sys
import threading
from io import BytesIO, TextIOWrapper

import pytest

from barnabas.cli import client, main
from barnabas.testing import Broker

COMMANDS = {
    "topics": ["topics", "--list"],
    "groups": ["groups", "--list"],
    "produce": ["produce", "--topic", "orders"],
    "consume": ["consume", "--topic", "orders", "--from-beginning"],
}


@pytest.fixture
def fail(capsys, monkeypatch):
    """Runs a command that must fail; returns its one line on standard error."""
    monkeypatch.setattr(client, "BOOTSTRAP_TIMEOUT_MS", 300)

    def run(command, server, *more):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a line\n")))
        assert main([*COMMANDS[command], "--bootstrap-server", server, *more]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return run


@pytest.fixture
def refusing():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def misadvertised(refusing):
    with Broker({"advertised.listeners": f"PLAINTEXT://{refusing}"}) as broker:
        broker.create_topic("orders")
        yield broker.bootstrap_servers


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_listens_there(fail, command, refusing):
    line = fail(command, refusing)
    assert line.startswith(
        f"Error: KafkaTimeout: Unable to bootstrap from ['{refusing}']: nothing listens on {refusing}"
    )


def test_something_else_listens_there(fail):
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler))
        server.RequestHandlerClass.log_message = lambda *args: None
        server.handle_error = lambda *args: None  # the client does not wait for its page
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.shutdown)
        line = fail("topics", f"127.0.0.1:{server.server_address[1]}")
    assert "is not a Kafka broker: it speaks HTTP" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_the_broker_advertises_an_address_that_cannot_be_reached(fail, command, misadvertised, refusing):
    line = fail(command, misadvertised)
    assert f"The broker at {misadvertised} answers" in line
    assert f"{refusing} (node 1): nothing listens on" in line
    assert "advertised.listeners" in line


@pytest.mark.parametrize(
    ("command", "option"),
    [("topics", "--command-config"), ("produce", "--producer-property"), ("consume", "--consumer-property")],
)
def test_the_client_speaks_tls_and_the_broker_does_not(fail, tmp_path, command, option):
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\n")
    with Broker() as broker:
        given = str(properties) if option == "--command-config" else "security.protocol=SSL"
        line = fail(command, broker.bootstrap_servers, option, given)
    assert "is a Kafka broker without TLS" in line


def test_a_broker_that_can_be_reached_is_not_blamed(barnabas):
    outcome = barnabas("groups", "--describe", "--group", "nobody")
    assert outcome.code == 1
    assert "reach" not in outcome.err
