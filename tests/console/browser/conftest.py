"""Debian's chromium, driven by playwright, at the console of a broker. Without it these tests are skipped.

Nothing is fetched: axe-core, which checks pages for accessibility, is looked for where BARNABAS_AXE names it.
"""

import os
import shutil
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

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
    with Broker(**given) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        admin.create_topics({"orders": {"num_partitions": 3, "replication_factor": 1}})
        admin.close()
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(200):
            producer.send("orders", b'{"number":%d}' % number, b"k%d" % number, partition=number % 3)
        producer.send("orders", HTML.encode(), HTML.encode(), [("h", HTML.encode())], partition=0)
        producer.close()
        yield broker


@pytest.fixture(scope="module")
def url(broker):
    return next(each.url for each in broker._server.http_services if each.name == "console")


@pytest.fixture
def page(browser, url):
    """A page that fails its test where a script fails, or the Content-Security-Policy refuses something."""
    context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith(url) else problems.append(request.url))
    yield page
    context.close()
    assert [each for each in problems if "status of 4" not in each] == []


@pytest.fixture(scope="module")
def axe():
    """The text of axe-core."""
    where = os.environ.get("BARNABAS_AXE", "node_modules/axe-core/axe.min.js")
    if not Path(where).is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    return Path(where).read_text("utf-8")
