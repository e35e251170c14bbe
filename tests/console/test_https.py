"""The console by HTTPS: as a service of a broker, and as a command that asks for the cluster's users."""

import http.client
import os
import re
import signal
import ssl
import subprocess
import sys
from urllib.parse import urlencode, urlsplit

import pytest
import trustme
from click.testing import CliRunner

from barnabas.config import BrokerConfig, ConfigError
from barnabas.console.command import TOKEN, console
from barnabas.console.service import new_service
from barnabas.server.server import Server
from barnabas.testing import Broker
from tests.console.test_users import WITH_USERS

AUTHORITY = trustme.CA()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    file = tmp_path_factory.mktemp("console") / "console.pem"
    AUTHORITY.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(file)
    return str(file)


def call(url, method, path, body=None, **headers):
    """The status, the headers and the text, from a server whose certificate was verified."""
    context = ssl.create_default_context()
    AUTHORITY.configure_trust(context)
    parts = urlsplit(url)
    assert parts.scheme == "https"
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=30, context=context)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def topics_as(url, user, password):
    """The page of topics, after a login."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode({"user": user, "password": password})
    status, headers, _ = call(url, "POST", "/login?then=/topics", body, **form)
    assert (status, headers["location"]) == (303, "/topics")
    cookie = headers["set-cookie"]
    assert "secure" in cookie.lower()
    status, _, text = call(url, "GET", "/topics", Cookie=cookie.partition(";")[0])
    assert status == 200
    return text


def test_a_broker_serves_its_console_by_https(certificate):
    settings = {
        **WITH_USERS,
        "barnabas.console.listener": "https://127.0.0.1:0",
        "barnabas.console.sasl.mechanism": "PLAIN",
        "listener.name.console.ssl.keystore.type": "PEM",
        "listener.name.console.ssl.keystore.location": certificate,
    }
    with Broker(settings) as broker:
        (service,) = [each for each in broker._server.http_services if each.name == "console"]
        assert call(service.url, "GET", "/topics")[0] == 303
        assert "Log out own" in topics_as(service.url, "own", "own")
        plain = http.client.HTTPConnection("127.0.0.1", urlsplit(service.url).port, timeout=30)
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.request("GET", "/login")
            plain.getresponse()
        plain.close()


@pytest.mark.parametrize(
    ("store", "named"), [(None, r"listener\.name\.console\.ssl\.keystore\.location"), ("/nowhere.pem", "/nowhere.pem")]
)
def test_https_needs_a_key_store(tmp_path, store, named):
    properties = {"log.dirs": str(tmp_path), "barnabas.console.listener": "https://127.0.0.1:0"}
    if store is not None:
        properties |= {
            "listener.name.console.ssl.keystore.type": "PEM",
            "listener.name.console.ssl.keystore.location": store,
        }
    with pytest.raises(ConfigError, match=named):
        new_service(Server(BrokerConfig.from_properties(properties)))


def test_the_command_asks_for_users_of_the_cluster_by_https(certificate):
    with Broker(WITH_USERS) as broker:
        command = [
            sys.executable, "-m", "barnabas", "console", "--bootstrap-server", broker.bootstrap_servers, "--listener",
            "127.0.0.1:0", "--sasl-mechanism", "PLAIN", "--certificate", certificate,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            url = re.search(r"https://\S+", line)[0]
            assert "Log out own" in topics_as(url, "own", "own")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()
        assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--certificate", "/nowhere.pem"], "/nowhere.pem cannot be read: No such file or directory"),
        (["--certificate", __file__], "is not a key in PEM"),
        (["--listener", "https://127.0.0.1:0"], "an address like 127.0.0.1:8080"),
        (["--sasl-mechanism", "GSSAPI"], "is not one of"),
        (["--sasl-mechanism", "PLAIN", "--admin-api", "http://127.0.0.1:1"], "No ACL protects faults"),
        (["--listener", "203.0.113.1:1", "--sasl-mechanism", "PLAIN"], "--listener: cannot listen on 203.0.113.1:1"),
    ],
)
def test_the_command_says_what_it_cannot_use(given, said):
    result = CliRunner().invoke(console, ["--listener", "127.0.0.1:0", *given])
    assert result.exit_code != 0 and said in result.output


def test_a_token_and_users_exclude_each_other():
    arguments = ["--listener", "127.0.0.1:0", "--sasl-mechanism", "PLAIN"]
    result = CliRunner().invoke(console, arguments, env={**os.environ, TOKEN: "t"})
    assert result.exit_code == 2 and TOKEN in result.output
