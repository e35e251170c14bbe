"""The console in a browser: scripts, keys, history and sizes."""

import os
from pathlib import Path

import pytest
from kafka import KafkaProducer

from barnabas.testing import Broker
from tests.cli.test_transactions import STRANGER, leave_open
from tests.console.browser.conftest import ADDRESSES, address_of, commit, does
from tests.console.test_users import WITH_USERS

pytestmark = pytest.mark.xdist_group("browser")  # one browser, without tests of other modules at the same time

ACL = (
    "resource_type=TOPIC&resource_name=orders&pattern_type=LITERAL&principal=User:alice&host=*"
    "&operation=READ&permission=ALLOW"
)

PAGES = (
    "/", "/topics", "/new-topic", "/topics/orders", "/topics/orders?config=retention.ms", "/topics/orders/delete",
    "/topics/orders/records", "/topics/orders/records?partition=1", "/topics/orders/records/1/3", "/topics/orders/tail",
    "/topics/orders/produce",
    "/topics/orders/log?partition=0&offset=0", "/topics/orders/records?partition=all&search=k1", "/groups",
    "/groups/kitchen", "/groups/kitchen/reset?topic=orders&target=earliest", "/groups/kitchen/delete", "/transactions",
    "/access", f"/access/acls/remove?{ACL}", "/access/users/delete?user=alice&mechanism=SCRAM-SHA-512",
    "/access/quotas/remove?user=alice&quota=producer_byte_rate", "/schemas", "/schemas/orders-value?version=2&before=1",
    "/faults", "/topics/nowhere",
)  # fmt: skip


def test_each_page_and_each_action_has_a_test():
    done = {address_of("GET", path) for path in PAGES}
    for each in globals().values():
        done |= getattr(each, "does", frozenset())
    assert {f"{method} {path}" for method, path in ADDRESSES} == done


@does("POST /topics", "POST /topics/{topic}/produce", "GET /topics/{topic}/search", "POST /topics/{topic}/delete",
      "GET /topics/{topic}/records.json")  # fmt: skip
def test_a_topic_is_made_written_searched_and_deleted_by_hand(page):
    page.goto("/")
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="New topic").click()
    page.get_by_label("Name").fill("parcels")
    page.get_by_role("button", name="Create topic").click()
    page.get_by_role("link", name="Produce").click()
    page.get_by_label("Key (empty: none)").fill("p-1")
    page.get_by_label("Value", exact=True).fill('{"weight": 3}')
    page.get_by_role("button", name="Produce").click()
    page.wait_for_url("**/topics/parcels/records/0/0")
    assert "kcat -b" in page.text_content("main")
    page.goto("/topics/parcels/records.json?partition=0")
    assert '"p-1"' in page.text_content("body")
    page.goto("/topics/parcels/records")
    page.get_by_role("searchbox").fill("$.weight = 3")
    page.locator("select[name=where]").select_option("json")
    page.get_by_role("button", name="Search").click()
    page.wait_for_selector("#found li")
    assert "1 found" in page.wait_for_selector("text=That is all").text_content()
    assert "search=" in page.url, "an address that can be shared"
    page.go_back()
    assert page.url.endswith("/topics/parcels/records")
    page.goto("/topics/parcels/delete")
    page.get_by_label("Type its name").fill("parcels")
    page.get_by_role("button", name="Delete parcels").click()
    page.wait_for_url("**/topics")
    assert "parcels" not in page.text_content("main")


@does("GET /topics/{topic}/tail/step")
def test_records_appear_live_until_stopped(page, broker):
    page.goto("/topics/orders/tail")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("orders", b"seen live").get(timeout=60)
    page.wait_for_selector("#found li:has-text('seen live')")
    page.get_by_role("button", name="Stop").click()
    page.wait_for_selector("button:has-text('Go on')")
    producer.send("orders", b"seen later").get(timeout=60)
    producer.close()
    assert page.locator("#found li").count() == 1
    page.get_by_role("button", name="Go on").click()
    page.wait_for_selector("#found li:has-text('seen later')")


@does("GET /groups/{group:path}/lag", "POST /groups/{group:path}/reset", "POST /groups/{group:path}/delete")
def test_a_group_is_watched_reset_after_a_preview_and_deleted_by_its_name(page, broker):
    commit(broker, "cellar/one", 40)
    page.goto("/groups")
    page.get_by_role("link", name="cellar/one").click()
    page.wait_for_selector(".chart svg")
    page.get_by_role("link", name="Reset offsets").click()
    page.get_by_role("button", name="Preview").click()
    assert "40" in page.text_content("tr.own")
    page.get_by_role("button", name="Reset 1 offsets of cellar/one").click()
    page.wait_for_url("**/groups/cellar%2Fone")
    assert page.locator("td", has_text="40").count() == 0
    page.get_by_role("link", name="Delete").click()
    assert "offsets of 1 partitions" in page.text_content("main")
    page.get_by_label("Type its name").fill("cellar/one")
    page.get_by_role("button", name="Delete cellar/one").click()
    page.wait_for_url("**/groups")
    assert "cellar/one" not in page.text_content("main")


@does("POST /transactions/abort")
def test_a_hanging_transaction_is_found_and_aborted(page, broker):
    leave_open(broker, 2, STRANGER, topic="orders")
    page.goto("/transactions")
    page.get_by_label("Topic").fill("orders")
    page.get_by_role("button", name="Look").click()
    page.get_by_role("button", name=f"Abort the transaction of producer {STRANGER} on orders-2").click()
    page.wait_for_url("**/transactions")
    page.goto("/transactions?topic=orders&minutes=0")
    assert "None hangs on orders" in page.text_content("main")


@does("POST /access/acls", "POST /access/acls/remove", "POST /access/users", "POST /access/users/delete",
      "POST /access/quotas", "POST /access/quotas/remove")  # fmt: skip
def test_rights_are_given_and_taken(page):
    def taken(link, button):
        page.get_by_role("link", name=link).click()
        assert "This destroys" in page.text_content("main")
        page.get_by_role("button", name=button).click()
        page.wait_for_url("**/access")
        assert page.get_by_role("link", name=link).count() == 0

    def form(summary, button, **fields):
        page.get_by_text(summary).click()
        for label, text in fields.items():
            page.locator("details[open]").get_by_label(label).fill(text)
        page.get_by_role("button", name=button).click()
        page.wait_for_url("**/access")

    page.goto("/access")
    form("Add an ACL", "Add ACL", Name="orders", Principal="User:alice")
    form("Set a user's password", "Set password", User="alice", Password="s3cret")
    form("Set a quota", "Set quota", User="alice", Value="2048")
    assert "s3cret" not in page.content()
    taken("Remove ALLOW READ on orders to User:alice", "Remove this ACL")
    taken("Delete SCRAM-SHA-256 of user alice", "Delete the credential of alice")
    taken("Remove producer_byte_rate of user alice", "Remove producer_byte_rate")


def test_two_versions_of_a_schema_are_compared(page):
    page.goto("/schemas")
    page.get_by_role("link", name="orders-value").click()
    page.locator("select[name=before]").select_option("1")
    page.get_by_role("button", name="Show").click()
    assert "note" in page.text_content(".diff-add:has-text('note')")


@does("GET /login", "POST /login", "POST /logout")
def test_a_user_of_the_broker_logs_in_and_out(page):
    given = {"barnabas.console.listener": "127.0.0.1:0", "barnabas.console.sasl.mechanism": "PLAIN"}
    with Broker({**WITH_USERS, **given}) as broker:
        own = next(each.url for each in broker._server.http_services if each.name == "console")
        page.allowed.append(own)
        page.goto(f"{own}/topics")
        page.get_by_label("User").fill("viewer")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        assert "refuses this user" in page.text_content("[role=alert]")
        page.get_by_label("User").fill("viewer")
        page.get_by_label("Password").fill("s3cret")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/topics")
        page.get_by_role("link", name="New topic").click()
        page.get_by_label("Name").fill("tea")
        page.get_by_role("button", name="Create topic").click()
        assert "The user viewer may not do this" in page.text_content("[role=alert]")
        page.get_by_role("button", name="Log out viewer").click()
        page.wait_for_url("**/login")
        page.goto(f"{own}/topics")
        page.wait_for_url("**/login?**", wait_until="networkidle")
        page.goto("/")  # of the other broker, since this one stops


@does("POST /topics/{topic}/configs", "POST /faults")
def test_a_config_is_altered_in_place_and_a_fault_is_set_and_lifted(page):
    page.goto("/topics/orders")
    page.get_by_role("link", name="Change max.message.bytes").click()
    page.get_by_label("Value of max.message.bytes").fill("2000000")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("tr.own:has-text('2000000')")
    page.goto("/faults")
    page.get_by_label("A script of rules").fill("Produce nth=9 error=NOT_LEADER_OR_FOLLOWER topic=none")
    page.get_by_role("button", name="Set rules").click()
    page.get_by_role("button", name="Lift rule").click()
    page.wait_for_selector("text=No faults are set")


def test_html_in_records_stays_text(page):
    for address in ("/topics/orders/records?partition=0&offset=60", "/topics/orders/records"):
        page.goto(address)
        assert page.locator("main img").count() == 0 and page.locator("main script").count() == 0
        assert "<img src=x" in page.text_content("main")
    page.goto("/topics/orders/records?partition=0&search=<img")
    page.wait_for_selector("#found li")
    assert page.locator("main img").count() == 0 and "broken in" not in page.title()


def test_keys_and_dark_or_light(page):
    page.goto("/topics")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.wait_for_url("**/groups")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark or light").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.reload()
    assert light != dark == page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("width", [400, pytest.param(3840, marks=pytest.mark.long)])
def test_no_page_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(page, axe, scheme):
    page.emulate_media(color_scheme=scheme)
    found = {}
    for path in PAGES:
        page.goto(path)
        page.evaluate(axe)
        rules = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
        wrong = page.evaluate("rules => axe.run(document, rules)", rules)["violations"]
        if wrong:
            found[path] = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in wrong]
    assert found == {}


@pytest.mark.long
@pytest.mark.skipif("BARNABAS_SCREENSHOTS" not in os.environ, reason="BARNABAS_SCREENSHOTS names no directory")
@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (1280, "light"), (1280, "dark"), (3840, "dark")])
def test_screenshots(page, width, scheme):
    """Takes screenshots, without checks."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for number, path in enumerate(PAGES):
        page.goto(path)
        page.wait_for_timeout(300)
        page.screenshot(path=Path(os.environ["BARNABAS_SCREENSHOTS"]) / f"{number:02}-{width}-{scheme}.png")
