"""Who may use the console, and what is changed by whom."""

import http.client

import pytest
from starlette.testclient import TestClient

from barnabas.cli.client import Cluster
from barnabas.config import BrokerConfig, ConfigError
from barnabas.console.access import within
from barnabas.console.application import Console
from barnabas.console.service import new_service
from barnabas.server.server import Server
from barnabas.testing import Broker


def test_a_form_without_the_token_changes_nothing(pages):
    assert pages.post("/topics", data={"name": "forged"}).status_code == 403
    pages.get("/topics")
    assert pages.post("/topics", data={"name": "forged", "csrf": "0" * 64}).status_code == 403
    assert pages.post("/topics", data={"name": "forged", "csrf": "ä"}).status_code == 403
    assert pages.get("/topics/forged").status_code == 404


def test_a_forged_cookie_is_no_session(broker):
    console = TestClient(Console(Cluster(broker.bootstrap_servers, {}), "secret").application())
    (name,) = console.post("/login?then=/", data={"token": "secret"}, follow_redirects=False).cookies
    session = console.cookies[name].partition(".")[0]
    console.cookies.clear()
    for signature in ("", "0" * 64, "\xe4"):
        headers = {"cookie": f"{name}={session}.{signature}".encode("latin-1")}
        assert console.get("/topics", headers=headers, follow_redirects=False).status_code == 303


def test_a_topic_is_created_altered_and_deleted_by_its_name(pages):
    made = pages.submit("/new-topic", "/topics", name="made", partitions="2", configs="retention.ms=1000")
    assert made.status_code == 303 and made.headers["location"] == "/topics/made"
    text = pages.get("/topics/made").text
    assert "<td>1000</td><td>this topic</td>" in text.replace("\n", "") and 'partition=1"' in text
    form = "/topics/made?config=retention.ms"
    pages.submit(form, "/topics/made/configs", config="retention.ms", value="2000")
    assert "<td>2000</td>" in pages.get("/topics/made").text
    pages.submit(form, "/topics/made/configs", config="retention.ms", reset="yes")
    assert "<td>2000</td>" not in pages.get("/topics/made").text
    refused = pages.submit(form, "/topics/made/configs", config="retention.ms", value="soon")
    assert refused.status_code == 409 and "retention.ms" in refused.text
    wrong = pages.submit("/topics/made/delete", "/topics/made/delete", name="other")
    assert wrong.status_code == 400 and "Nothing was deleted" in wrong.text and "2 partitions" in wrong.text
    assert pages.submit("/topics/made/delete", "/topics/made/delete", name="made").status_code == 303
    assert pages.get("/topics/made").status_code == 404


def test_with_a_token_users_log_in(broker):
    console = TestClient(Console(Cluster(broker.bootstrap_servers, {}), "secret").application())
    closed = console.get("/topics?search=a", follow_redirects=False)
    assert closed.status_code == 303 and closed.headers["location"] == "/login?then=%2Ftopics%3Fsearch%3Da"
    assert "orders" not in console.get("/nowhere").text
    assert console.post("/topics", data={"name": "forged"}).status_code == 401
    assert console.post(closed.headers["location"], data={"token": "wrong"}).status_code == 403
    assert console.get("/topics", follow_redirects=False).status_code == 303
    entered = console.post(closed.headers["location"], data={"token": "secret"}, follow_redirects=False)
    assert entered.status_code == 303 and entered.headers["location"] == "/topics?search=a"
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secret" not in cookie
    assert "orders" in console.get("/topics").text
    stranger = TestClient(Console(Cluster(broker.bootstrap_servers, {}), "secret").application())
    headers = {"authorization": "Bearer secret"}
    assert stranger.get("/topics/orders/records.json", headers=headers).status_code == 200


@pytest.mark.parametrize("address", ["//elsewhere", "http://elsewhere", "/\\elsewhere", "/\r\nx: y", ""])
def test_a_login_leads_to_no_other_site(address):
    assert within(address) == "/"


def get(url, path="/", **headers):
    host, port = url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_broker_serves_its_own_console_to_this_machine():
    with Broker(barnabas_console_listener="127.0.0.1:0") as broker:
        (service,) = [each for each in broker._server.http_services if each.name == "console"]
        status, text = get(service.url)
        assert status == 200 and broker.bootstrap_servers in text
        assert get(service.url, "/static/htmx.min.js")[0] == 200
        assert get(service.url, Host="rebound.example")[0] == 403
        assert get(service.url, Origin="http://elsewhere.example")[0] == 403


def test_it_is_elsewhere_only_with_a_token(tmp_path):
    properties = {"log.dirs": str(tmp_path), "barnabas.console.listener": "0.0.0.0:0"}
    with pytest.raises(ConfigError, match=r"barnabas\.console\.token"):
        new_service(Server(BrokerConfig.from_properties(properties)))
    new_service(Server(BrokerConfig.from_properties({**properties, "barnabas.console.token": "t"})))
    wrong = {**properties, "barnabas.console.token": "t", "barnabas.console.client.config": "/nowhere"}
    with pytest.raises(ConfigError, match="a file"):
        new_service(Server(BrokerConfig.from_properties(wrong)))


def test_a_broker_with_users_needs_one_for_its_console(tmp_path):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{module} username="own" password="own" user_own="own" '
        'user_viewer="hidden";',
        "barnabas.console.listener": "127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
    }
    (tmp_path / "data").mkdir()
    with pytest.raises(ConfigError, match=r"barnabas\.console\.client\.config"):
        new_service(Server(BrokerConfig.from_properties(properties)))
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} username="viewer" password="hidden";\n'
    )
    with Broker({**properties, "barnabas.console.client.config": str(file)}) as broker:
        (service,) = [each for each in broker._server.http_services if each.name == "console"]
        status, text = get(service.url)
    assert status == 200 and "Brokers" in text and "hidden" not in text
