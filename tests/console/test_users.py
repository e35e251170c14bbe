"""The broker's own users log in to the console, and their ACLs hold there."""

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from barnabas.cli.acls import acls
from barnabas.cli.client import Cluster
from barnabas.cli.configs import configs
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig, ConfigError
from barnabas.console.access import LASTS_S
from barnabas.console.application import Console
from barnabas.console.service import new_service
from barnabas.console.users import ANSWERS_MS, Users
from barnabas.server.server import Server
from barnabas.testing import Broker
from tests.console.conftest import Browser

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SECRET = 'hidden "=,'
WITH_USERS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{MODULE} username="own" password="own" user_own="own" '
    'user_viewer="s3cret";',
    "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": SCRAM_MODULE,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:own",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    file = tmp_path_factory.mktemp("client") / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={MODULE} username="own" password="own";\n'
    )
    with Broker(WITH_USERS) as broker:
        broker.client_file = str(file)
        yield broker


def run(broker, command, *arguments):
    at = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", broker.client_file]
    result = CliRunner().invoke(command, [*arguments, *at])
    assert result.exit_code == 0, result.output


def console_of(broker, mechanism, clock=None):
    users = Users(broker.bootstrap_servers, {}, mechanism)
    return Browser(Console(Cluster(broker.bootstrap_servers, {}), users=users, clock=clock).application())


def log_in(browser, user, password):
    return browser.post("/login?then=/topics", data={"user": user, "password": password}, follow_redirects=False)


def test_a_user_sees_and_does_what_acls_allow(broker):
    own = console_of(broker, "PLAIN")
    assert own.get("/topics", follow_redirects=False).headers["location"] == "/login?then=%2Ftopics"
    assert log_in(own, "own", "own").headers["location"] == "/topics"
    for name in ("tea", "coffee"):
        assert own.submit("/new-topic", "/topics", name=name).status_code == 303
    run(broker, acls, "--add", "--allow-principal", "User:viewer", "--operation", "Describe", "--topic", "tea")
    viewer = console_of(broker, "PLAIN")
    assert log_in(viewer, "viewer", "s3cret").status_code == 303
    text = viewer.get("/topics").text
    assert "tea" in text and "coffee" not in text and "Log out viewer" in text and "s3cret" not in text
    refused = viewer.submit("/new-topic", "/topics", name="cocoa")
    assert refused.status_code == 403 and "The user viewer may not do this. " in refused.text
    assert "AuthorizationFailed" in refused.text
    assert viewer.submit("/topics/tea/delete", "/topics/tea/delete", name="tea").status_code == 403
    assert own.submit("/topics/tea/produce", "/topics/tea/produce", value="hot").status_code == 303
    read = viewer.get("/topics/tea/records?partition=0")
    assert read.status_code == 403 and "The user viewer may not do this. TopicAuthorizationFailed" in read.text
    assert "hot" in own.get("/topics/tea/records?partition=0").text and viewer.get("/topics/coffee").status_code == 403
    assert "coffee" in own.get("/topics").text and "Log out own" in own.get("/topics").text


def test_a_wrong_password_is_refused_and_shown_nowhere(broker, caplog):
    console = console_of(broker, "PLAIN")
    for user, password in (("viewer", SECRET), ("nobody", SECRET), ("", "")):
        refused = log_in(console, user, password)
        assert refused.status_code == 403 and "refuses this user" in refused.text and "hidden" not in refused.text
    assert console.get("/", follow_redirects=False).status_code == 303 and SECRET not in caplog.text
    foreign = console.post("/login", data={"user": "own", "password": "own"}, headers={"sec-fetch-site": "cross-site"})
    assert foreign.status_code == 403


def test_sessions_of_scram_users_end(broker):
    def credential(password):
        given = f"SCRAM-SHA-512=[password={password}]"
        run(broker, configs, "--alter", "--add-config", given, "--entity-type", "users", "--entity-name", "a=b,c")

    credential("first")
    clock = ManualClock()
    console = console_of(broker, "SCRAM-SHA-512", clock)
    assert log_in(console, "a=b,c", "first").status_code == 303
    assert console.get("/topics", follow_redirects=False).status_code == 200
    clock.advance(LASTS_S + 1)
    assert console.get("/topics", follow_redirects=False).status_code == 303
    log_in(console, "a=b,c", "first")
    kept = dict(console.cookies)
    assert console.submit("/topics", "/logout").headers["location"] == "/login"
    console.cookies.update(kept)
    assert console.get("/topics", follow_redirects=False).status_code == 303
    log_in(console, "a=b,c", "first")
    credential("second")
    assert ANSWERS_MS < 10_000, "what a page waits for a broker that refuses it"
    assert console.get("/topics", follow_redirects=False).headers["location"].startswith("/login")
    assert log_in(console, "a=b,c", "second").status_code == 303


def test_the_cookie_is_secure_by_https(broker):
    def cookie(**headers):
        form = {"user": "own", "password": "own"}
        response = browser.post("/login", data=form, headers=headers, follow_redirects=False)
        return response.headers["set-cookie"].lower()

    browser = console_of(broker, "PLAIN")
    assert "secure" not in cookie()
    browser = TestClient(browser.app, base_url="https://console.example")
    by_https = cookie()
    assert all(each in by_https for each in ("secure", "httponly", "samesite=strict"))
    browser = console_of(broker, "PLAIN")
    assert "secure" in cookie(**{"x-forwarded-proto": "https"})


def test_a_broker_that_is_away_is_said_at_the_login():
    console = Browser(Console(Cluster("127.0.0.1:1", {}), users=Users("127.0.0.1:1", {}, "PLAIN")).application())
    assert log_in(console, "own", "own").status_code == 502


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"barnabas.console.sasl.mechanism": "GSSAPI"}, r"barnabas\.console\.sasl\.mechanism"),
        ({"barnabas.console.sasl.mechanism": "SCRAM-SHA-256"}, "enabled by the first listener"),
        ({"barnabas.console.sasl.mechanism": "PLAIN", "barnabas.console.token": "t"}, r"barnabas\.console\.token"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, given, named):
    properties = {**WITH_USERS, "log.dirs": str(tmp_path), "barnabas.console.listener": "0.0.0.0:0"}
    with pytest.raises(ConfigError, match=named):
        new_service(Server(BrokerConfig.from_properties({**properties, **given})))
    right = {**properties, "barnabas.console.sasl.mechanism": "PLAIN"}
    service = new_service(Server(BrokerConfig.from_properties(right)))
    assert service.name == "console"
