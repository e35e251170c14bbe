"""An ASGI application is served beside the listeners, in the broker's own loop."""

import asyncio
import http.client as http_client
import socket
import sys
import threading
from types import SimpleNamespace

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.validators import ConfigError
from barnabas.server import http, http_services
from barnabas.server.http import Address, HttpService, require
from barnabas.testing import Broker

LOCAL = Address("127.0.0.1", 0)


def ask(address, path="/"):
    connection = http_client.HTTPConnection(address.host, address.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def application():
    async def tell_thread(scope, receive, send):
        if scope["type"] == "lifespan":
            raise RuntimeError("not supported")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(threading.get_ident()).encode()})

    return tell_thread


def test_it_is_answered_in_the_loop_of_whoever_serves_it():
    async def run():
        service = HttpService("numbers", LOCAL, application)
        await service.start()
        answers = [await asyncio.to_thread(ask, service.address) for _ in range(2)]
        await service.stop()
        return service, answers

    service, answers = asyncio.run(run())
    assert answers == [(200, str(threading.get_ident()).encode())] * 2
    assert service.url == f"http://127.0.0.1:{service.address.port}"
    with pytest.raises(ConnectionRefusedError):
        ask(service.address)


def test_a_service_that_nobody_asks_makes_no_application():
    async def run():
        service = HttpService("nobody", LOCAL, lambda: pytest.fail("made"))
        await service.start()
        await service.stop()
        await service.stop()

    asyncio.run(run())


def test_an_address_that_is_taken_is_an_error():
    async def run(port):
        await HttpService("late", Address("127.0.0.1", port), application).start()

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="cannot listen"):
        asyncio.run(run(taken.getsockname()[1]))


def test_an_application_that_cannot_be_made_is_logged_and_refused(caplog):
    def fail():
        raise RuntimeError("no templates")

    async def run():
        service = HttpService("pages", LOCAL, fail)
        await service.start()
        with pytest.raises(OSError):
            await asyncio.to_thread(ask, service.address)
        await service.stop()

    asyncio.run(run())
    assert "Cannot serve the pages" in caplog.text


def test_a_request_that_never_ends_does_not_keep_the_broker(monkeypatch):
    begun = threading.Event()

    async def stream(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await asyncio.sleep(3600)

    async def run():
        service = HttpService("tail", LOCAL, lambda: stream)
        await service.start()
        client = socket.create_connection(service.address[:2])
        client.send(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await asyncio.to_thread(begun.wait, 10)
        await service.stop()
        client.close()

    monkeypatch.setattr("barnabas.server.http.LAST_ANSWERS_S", 0.05)
    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "address", "shown", "is_local"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0), "127.0.0.1:0", True),
        ("http://localhost:8080/", ("localhost", 8080), "localhost:8080", True),
        (":80", ("", 80), ":80", False),
        ("[::1]:80", ("::1", 80), "[::1]:80", True),
        ("0.0.0.0:80", ("0.0.0.0", 80), "0.0.0.0:80", False),
    ],
)
def test_addresses(text, address, shown, is_local):
    found = Address.parse("barnabas.admin.listener", text)
    assert (found, str(found), found.is_local) == ((*address, False), shown, is_local)


def test_an_address_of_https_is_for_services_that_have_a_certificate():
    https = Address.parse("barnabas.console.listener", "https://:8443/", allows_https=True)
    assert https == ("", 8443, True)
    with pytest.raises(ConfigError, match=r"barnabas\.admin\.listener"):
        Address.parse("barnabas.admin.listener", "https://:8443")


@pytest.mark.parametrize("text", ["8080", "localhost", "localhost:port", "localhost:70000", "https://localhost"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError, match=r"an address like 127\.0\.0\.1:8080"):
        Address.parse("barnabas.admin.listener", text)


def test_a_missing_extra_is_named():
    require("barnabas.admin.listener", "admin")
    with pytest.raises(ConfigError, match=r"pip install 'barnabas\[console\]'"):
        require("barnabas.console.listener", "console", "no_such_package")


def test_all_missing_extras_are_named_at_once(monkeypatch):
    monkeypatch.setattr(http, "has_packages", lambda *_: False)
    services = ("console", "metrics", "schema.registry")
    config = BrokerConfig({f"barnabas.{each}.listener": "127.0.0.1:0" for each in services})
    server = SimpleNamespace(config=config)
    with pytest.raises(ConfigError, match=r"pip install 'barnabas\[console,metrics,registry\]'"):
        http_services.new_services(server, config)


def test_a_server_has_the_services_whose_config_is_set(monkeypatch):
    module = type(sys)("barnabas_numbers")
    module.new_service = lambda server: HttpService("numbers", LOCAL, application)
    monkeypatch.setitem(sys.modules, "barnabas_numbers", module)
    monkeypatch.setattr(http_services, "MODULES", {"barnabas.compatible.with": "barnabas_numbers"})
    with Broker() as broker:
        assert broker._server.http_services == []
    with Broker(compatible_with="3.9") as broker:
        (service,) = broker._server.http_services
        assert ask(service.address)[0] == 200
