"""A broker with a registry, and a client that uses it over sockets."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from barnabas.testing import Broker


class Client:
    def __init__(self, url):
        self.url = url
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def __call__(self, method, path, body=None, **headers):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        self.connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = self.connection.getresponse()
        data = answer.read()
        self.type = answer.getheader("content-type")
        return answer.status, json.loads(data) if data else None

    def register(self, subject, schema, *, query="", **fields):
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self("POST", f"/subjects/{subject}/versions{query}", {"schema": text, **fields})


@pytest.fixture(scope="session")
def registry_broker():
    with Broker(barnabas_schema_registry_listener="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def broker(registry_broker):
    registry_broker.reset()
    return registry_broker


@pytest.fixture
def client(broker):
    return Client(broker.schema_registry_url)
