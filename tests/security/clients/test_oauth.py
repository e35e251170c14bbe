import base64
import http.server
import json
import threading

import pytest
from kafka.errors import SaslAuthenticationFailedError

from barnabas.security.clients.oauth import token_provider


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def endpoint():
    """A token endpoint that counts its tokens, and records the requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        requests = []

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.requests.append((self.headers["Authorization"], body))
            answer = {"access_token": f"token {len(self.requests)}", "expires_in": 100}
            self.send_response(200 if self.path == "/token" else 401)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", Handler.requests
        server.shutdown()
        thread.join()


def decoded(part):
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_an_unsecured_token_has_the_claims_of_the_options():
    clock = Clock()
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_nbf": "5",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginExtension_region": "north",
    }
    provider = token_provider({}, options, clock)
    header, claims, signature = provider.token().split(".")
    assert decoded(header) == {"alg": "none"} and signature == ""
    assert decoded(claims) == {
        "iat": clock.now,
        "exp": clock.now + 3600,
        "sub": "alice",
        "nbf": 5.0,
        "scope": ["a", "b"],
    }
    assert provider.extensions() == {"region": "north"}


def test_a_file_is_read_for_each_connection(tmp_path):
    file = tmp_path / "token"
    provider = token_provider({"sasl.oauthbearer.token.endpoint.url": file.as_uri()}, {})
    for text in ("first", "second"):
        file.write_text(f"{text}\n")
        assert provider.token() == text


def test_a_token_is_requested_again_when_most_of_the_lifetime_has_passed(endpoint):
    url, requests = endpoint
    clock = Clock()
    properties = {"sasl.oauthbearer.token.endpoint.url": f"{url}/token"}
    provider = token_provider(properties, {"clientId": "me", "clientSecret": "s", "scope": "a b"}, clock)
    assert [provider.token(), provider.token()] == ["token 1", "token 1"]
    assert requests == [
        ("Basic " + base64.b64encode(b"me:s").decode(), "grant_type=client_credentials&scope=a+b"),
    ]
    clock.now += 81
    assert provider.token() == "token 2"


def test_an_endpoint_that_refuses(endpoint):
    url, _ = endpoint
    options = {"clientId": "me", "clientSecret": "the secret"}
    provider = token_provider({"sasl.oauthbearer.token.endpoint.url": f"{url}/other"}, options)
    with pytest.raises(SaslAuthenticationFailedError, match="Unauthorized") as refused:
        provider.token()
    assert "the secret" not in str(refused.value)
