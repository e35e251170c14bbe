"""Debian's chromium, driven by playwright, at the console of a broker. Without it these tests are skipped.

Nothing is downloaded: axe-core, which checks the accessibility of pages, is expected at BARNABAS_AXE.
"""

import json
import os
import shutil
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata
from starlette.routing import compile_path

from barnabas.console import pages
from barnabas.console.access import LOGIN, LOGOUT
from barnabas.testing import Broker

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HTML = "<img src=x onerror=\"document.title='broken in'\"><script>document.title='broken in'</script>"


@pytest.fixture(scope="module")
def browser():
    """The browser, for one module: until it ends, playwright's event loop runs in this thread, and no other can."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def broker():
    given = {f"barnabas_{each}_listener": "127.0.0.1:0" for each in ("admin", "console", "schema_registry")}
    given["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    given["super.users"] = "User:ANONYMOUS"
    with Broker(**given) as broker:
        register(broker.schema_registry_url, "")
        register(broker.schema_registry_url, ',{"name":"note","type":"string","default":""}')
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics({"orders": {"num_partitions": 3, "replication_factor": 1}})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(200):
            producer.send("orders", b'{"number":%d}' % number, b"k%d" % number, partition=number % 3)
        newest_ms = int(time.time() * 1000) + 1000  # it is among the newest, also if all are of one millisecond
        html = HTML.encode()
        producer.send("orders", html, html, [("h", html)], partition=0, timestamp_ms=newest_ms)
        producer.close()
        commit(broker, "kitchen", 40)
        yield broker


def register(registry: str, more: str) -> None:
    schema = f'{{"type":"record","name":"R","fields":[{{"name":"a","type":"int"}}{more}]}}'
    body = json.dumps({"schema": schema}).encode()
    address = f"{registry}/subjects/orders-value/versions"
    urllib.request.urlopen(urllib.request.Request(address, body, {"content-type": "application/json"})).read()


def commit(broker: Broker, group: str, offset: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group)
    consumer.commit({TopicPartition("orders", 1): OffsetAndMetadata(offset, "", -1)})
    consumer.close()


@pytest.fixture(scope="module")
def url(broker):
    return next(each.url for each in broker._server.http_services if each.name == "console")


ADDRESSES = [
    *((each.method, each.path) for each in pages.routes()),
    *(("GET", LOGIN), ("POST", LOGIN), ("POST", LOGOUT)),
]  # fmt: skip
"""All pages and actions of the console."""

PATTERNS = [(method, path, compile_path(path)[0]) for method, path in ADDRESSES]


def address_of(method: str, url: str) -> str | None:
    """Returns the page or action of a request; None for static files."""
    path = urlsplit(url).path
    found = (f"{each} {known}" for each, known, pattern in PATTERNS if each == method and pattern.match(path))
    return next(found, None)


def does(*actions: str) -> Callable:
    """Declares which ``ADDRESSES`` a test uses; its ``page`` checks that it did."""

    def marked(test: Callable) -> Callable:
        test.does = frozenset(actions)
        return test

    return marked


@pytest.fixture
def page(request, browser, url):
    """A page that fails its test if a script fails, or the Content-Security-Policy refuses something."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.allowed = [url]
    page.on("request", lambda each: None if each.url.startswith(tuple(page.allowed)) else problems.append(each.url))
    requests = set()
    page.on("request", lambda each: requests.add(address_of(each.method, each.url)))
    yield page
    context.close()
    assert getattr(request.function, "does", frozenset()) - requests == set()
    assert [each for each in problems if "status of 4" not in each] == []


@pytest.fixture(scope="module")
def axe():
    """Returns the text of axe-core."""
    where = os.environ.get("BARNABAS_AXE", "node_modules/axe-core/axe.min.js")
    if not Path(where).is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    return Path(where).read_text("utf-8")
