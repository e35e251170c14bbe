"""The schema registry's client: settings, credentials, retries, several URLs, TLS, and what it caches."""

import base64
import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from barnabas.pipelines.values.registry import Reference, Registry, RegistryFailed
from barnabas.pipelines.values.registry_client import Refused, RegistryClient, Unreachable

NOT_FOUND = (404, {"error_code": 40401, "message": "Subject not found."})
BEARER = {"bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": "pool-1"}
OAUTH = {
    **BEARER,
    "bearer.auth.credentials.source": "OAUTHBEARER",
    "bearer.auth.client.id": "me",
    "bearer.auth.client.secret": "hidden",
    "bearer.auth.scope": "schemas",
}


class Server:
    """Returns the planned responses in order, the last one repeatedly, and records the requests."""

    def __init__(self, *answers: tuple[int, Any], scheme: str = "http") -> None:
        self.answers, self.scheme, self.port = list(answers), scheme, 0
        self.requests: list[tuple[str, str, Message, bytes]] = []

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [f"{method} {path}" for method, path, _, _ in self.requests]

    def headers(self, number: int) -> Message:
        return self.requests[number][2]


@contextlib.contextmanager
def serving(*answers: tuple[int, Any], tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.requests.append((self.command, self.path, self.headers, body))
            status, answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", f"{server.url}/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Prints nothing."""

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Prints nothing: clients refuse the server's certificate in some tests."""

    server = Server(*answers, scheme="http" if tls is None else "https")
    http = Quiet(("127.0.0.1", 0), Handler)
    server.port = http.server_port
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class Client(RegistryClient):
    """A client whose time and pauses the test sets."""

    def __init__(self, url: str, **settings: str) -> None:
        self.pauses: list[float] = []
        self.time = 0.0
        given = {"url": url, **settings}
        super().__init__(given, pause=self.pauses.append, chance=lambda: 0.5, now=lambda: self.time)


def test_requests_are_those_of_the_registrys_api() -> None:
    with serving((200, {"id": 7, "version": 3, "schema": '"string"'})) as server:
        registry = Registry.at(f"{server.url}/base/")
        assert registry.by_id(7, serialized=True).text == '"string"'
        assert registry.latest("a/b c-value").schema_id == 7
        references = [Reference("other", "other-value", 2)]
        assert registry.register("orders", "message A {}", "PROTOBUF", references) == 7
        assert registry.version_of("orders", '"string"', "AVRO") == 3
    assert server.paths == [
        "GET /base/schemas/ids/7?format=serialized",
        "GET /base/subjects/a%2Fb%20c-value/versions/latest",
        "POST /base/subjects/orders/versions",
        "POST /base/subjects/orders",
    ]
    assert json.loads(server.requests[2][3]) == {
        "schema": "message A {}",
        "schemaType": "PROTOBUF",
        "references": [{"name": "other", "subject": "other-value", "version": 2}],
    }
    assert json.loads(server.requests[3][3]) == {"schema": '"string"'}
    assert server.headers(2)["Content-type"] == "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"url": "ftp://host"}, "url is 'ftp://host', but must be like http://host:8081"),
        ({"url": "http://a,b"}, "url is 'b', but must be like"),
        ({"url": "ftp://me:secret@host"}, "url is 'host', but must be like"),
        ({"max.retries": "-1"}, r"registry\.max\.retries is '-1', but must be a number >= 0"),
        ({"timeout": "0"}, r"registry\.timeout is '0', but must be a number >= 0\.001"),
        ({"colour": "red"}, "unknown settings colour"),
        ({"timeout": "soon"}, r"registry\.timeout is 'soon', but must be a number"),
        ({"basic.auth.user.info": "me"}, "must be user:password"),
        ({"url": "http://me:x@a", "basic.auth.user.info": "me:x"}, "a user in the URL too"),
        ({"ssl.key.location": "key.pem"}, "need ssl.certificate.location"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, r"cannot load the files of the settings ssl\.\*"),
        ({"bearer.auth.token": "t"}, "bearer.auth.credentials.source is '', but must be one of STATIC_TOKEN"),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, r"needs bearer\.auth\.token"),
        ({**OAUTH}, r"needs bearer\.auth\.issuer\.endpoint\.url"),
        ({**OAUTH, "bearer.auth.issuer.endpoint.url": "x", "bearer.auth.token": "t"}, "does not allow"),
        ({**BEARER, "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS"}, "endpoint.query or"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RegistryClient({"url": "http://one", **settings})


def test_credentials_in_the_url_are_sent_and_not_shown() -> None:
    with serving((401, {"error_code": 401, "message": "Unauthorized"})) as server:
        registry = Registry.at(server.url.replace("//", "//me:s%40fe@"))
        with pytest.raises(RegistryFailed) as refused:
            registry.latest("orders")
    assert server.headers(0)["Authorization"] == "Basic " + base64.b64encode(b"me:s@fe").decode()
    assert len(server.requests) == 1, "a refusal is final"
    assert registry.url == server.url
    assert "s%40fe" not in f"{registry}{refused.value}"


def test_a_proxys_credentials_are_not_shown() -> None:
    registry = Registry.at("http://one", {"proxy": "http://me:hidden@proxy:3128"})
    assert "hidden" not in repr(registry)
    assert "http://proxy:3128" in repr(registry)


def test_it_tries_again_after_passing_errors_with_longer_and_longer_pauses() -> None:
    unavailable = (503, b"<html>busy</html>")
    with serving(unavailable, unavailable, unavailable, (200, {"id": 1})) as server:
        client = Client(server.url, **{"retries.max.wait.ms": "3000"})
        assert client.get("x") == {"id": 1}
        assert client.pauses == [0.5, 1.0, 1.5]
        server.answers = [unavailable]
        with pytest.raises(Refused, match=r"<html>busy</html> \(HTTP 503, error -1\)"):
            client.get("x")
        assert len(server.requests) == 8


def test_the_next_url_is_used_when_one_fails() -> None:
    with serving((200, {"id": 2})) as second:
        with serving((500, b"")) as first:
            client = Client(f"{first.url}, {second.url}", **{"max.retries": "1"})
            assert client.get("x") == {"id": 2}
            assert (len(first.requests), len(second.requests)) == (2, 1)
            first.answers = [NOT_FOUND]
            with pytest.raises(Refused, match="Subject not found"):
                client.get("x")
            assert len(second.requests) == 1, "what one of them does not have, the others do not have either"
        assert client.get("x") == {"id": 2}
    with pytest.raises(Unreachable, match="refused"):
        client.get("x")


def test_a_redirection_is_not_followed() -> None:
    with serving((302, b"")) as server:
        with pytest.raises(Refused, match="HTTP 302"):
            Client(server.url, **{"basic.auth.user.info": "me:x"}).get("x")
        assert server.paths == ["GET /x"]


def test_an_answer_that_is_not_json_is_no_answer() -> None:
    with serving((200, b"<html>")) as server, pytest.raises(Unreachable, match="JSONDecodeError"):
        Client(server.url, **{"max.retries": "0"}).get("x")


def test_it_gives_up_a_registry_that_is_silent() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}", **{"timeout": "0.05", "max.retries": "0"})
        with pytest.raises(Unreachable, match="timed out"):
            client.get("x")


def test_a_schema_is_requested_once_and_the_newest_again_after_its_time() -> None:
    with serving((200, {"id": 1, "schema": "{}"})) as server:
        client = Client(server.url, **{"cache.latest.ttl.sec": "60"})
        for _ in range(2):
            client.get_immutable("schemas/ids/1")
            client.get_latest("subjects/a/versions/latest")
        client.time = 60
        client.get_latest("subjects/a/versions/latest")
        assert server.paths == ["GET /schemas/ids/1", *["GET /subjects/a/versions/latest"] * 2]
        uncached = Client(server.url)
        for _ in range(2):
            uncached.get_latest("subjects/a/versions/latest")
        assert len(server.requests) == 5


def test_a_fixed_token() -> None:
    with serving((200, {})) as server:
        token = {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "abc"}
        Client(server.url, **BEARER, **token).get("x")
    headers = server.headers(0)
    assert headers["Authorization"] == "Bearer abc"
    assert (headers["Target-sr-cluster"], headers["Confluent-identity-pool-id"]) == ("lsrc-1", "pool-1")


def test_a_token_of_an_oauth_server_is_used_until_it_is_old() -> None:
    token = {"access_token": "one", "expires_in": 100, "token_type": "Bearer"}
    with serving((200, {})) as server, serving((200, token)) as issuer:
        client = Client(server.url, **OAUTH, **{"bearer.auth.issuer.endpoint.url": f"{issuer.url}/token"})
        for client.time in (0, 79, 80):
            client.get("x")
    assert issuer.paths == ["POST /token"] * 2
    assert issuer.headers(0)["Authorization"] == "Basic " + base64.b64encode(b"me:hidden").decode()
    form = {"grant_type": ["client_credentials"], "scope": ["schemas"]}
    assert parse_qs(issuer.requests[0][3].decode()) == form
    assert [server.headers(number)["Authorization"] for number in range(3)] == ["Bearer one"] * 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((404, b"no such page"), r"the server that issues tokens refuses: no such page \(HTTP 404"),
        ((200, {"error": "invalid_scope"}), "did not return access_token"),
        ((200, None), "did not return access_token"),
        ((200, {"access_token": "a", "expires_in": "soon"}), "did not return access_token and expires_in"),
    ],
)
def test_a_token_that_is_not_issued_is_no_missing_schema(answer: tuple[int, Any], message: str) -> None:
    with serving((200, {"id": 1})) as server, serving(answer) as issuer:
        settings = {**OAUTH, "bearer.auth.issuer.endpoint.url": f"{issuer.url}/token", "max.retries": "0"}
        with pytest.raises(RegistryFailed, match=message):
            Registry.at(server.url, settings).latest("orders")
    assert server.requests == []


def test_a_token_of_azures_metadata_service() -> None:
    with serving((200, {})) as server, serving((200, {"access_token": "two", "expires_in": "9"})) as service:
        source = {
            "bearer.auth.credentials.source": "OAUTHBEARER_AZURE_IMDS",
            "bearer.auth.issuer.endpoint.url": f"{service.url}/token?old=1",
            "bearer.auth.issuer.endpoint.query": "resource=schemas",
        }
        Client(server.url, **BEARER, **source).get("x")
    assert service.paths == ["GET /token?resource=schemas"]
    assert service.headers(0)["Metadata"] == "true"
    assert server.headers(0)["Authorization"] == "Bearer two"


def test_a_proxy_is_used_for_all_urls() -> None:
    with serving((200, {"id": 3})) as proxy:
        assert Client("http://registry.example:8081", proxy=proxy.url).get("x") == {"id": 3}
    assert proxy.paths == ["GET http://registry.example:8081/x"]


def test_tls_with_a_certificate_on_both_sides(tmp_path: Path) -> None:
    authority = trustme.CA()
    trusted, mine, key = tmp_path / "ca.pem", tmp_path / "me.pem", tmp_path / "key.pem"
    authority.cert_pem.write_to_path(trusted)
    own = authority.issue_cert("me@example.org")
    own.cert_chain_pems[0].write_to_path(mine)
    own.private_key_pem.write_to_path(key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving((200, {"id": 4}), tls=context) as server:
        settings = {
            "ssl.ca.location": str(trusted),
            "ssl.certificate.location": str(mine),
            "ssl.key.location": str(key),
        }
        assert Client(server.url, **settings).get("x") == {"id": 4}
        stranger = Client(server.url)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            stranger.get("x")
        assert stranger.pauses == [], "a certificate does not become right by waiting"
        with pytest.raises(Unreachable):
            Client(server.url, **{"ssl.ca.location": str(trusted), "max.retries": "0"}).get("x")
