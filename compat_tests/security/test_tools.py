"""Apache Kafka's tools for ACLs, users, quotas and tokens, over SASL_SSL, and their effects on clients."""

import itertools
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from compat_tests.apache_kafka.apache import CURRENT, PREVIOUS, KafkaUnavailable, jars, run_java
from compat_tests.apache_kafka.test_console_tools import Tools
from compat_tests.go.program import built

from .secured import PASSWORD, Secured, login, write

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
PROGRAM = Path(__file__).parent.parent / "tls" / "java" / "Secured.java"
SECONDS = 30.0
numbers = itertools.count(1)


class Release(NamedTuple):
    """A release of the tools, and the configs of their login."""

    version: str
    acls: str
    protocol: str
    mechanism: str
    principal: str


RELEASES = [
    Release(CURRENT, "org.apache.kafka.tools.AclCommand", "SASL_SSL", "SCRAM-SHA-512", "User:alice"),
    Release(PREVIOUS, "kafka.admin.AclCommand", "SSL", "", "User:client"),
]


class Command:
    """Runs tools, one after the other in one JVM, with a --command-config."""

    def __init__(self, secured: Secured, release: Release) -> None:
        self.release = release
        properties = secured.properties(release.protocol, release.mechanism)
        self.file = write(secured.home / f"{release.version}.properties", properties)
        self.tools = Tools(secured.bootstrap(release.protocol), release.version)

    def __call__(self, main: str, *arguments: str, fails: bool = False) -> str:
        return self.tools(main, "--command-config", self.file, *arguments, fails=fails)

    def acls(self, *arguments: str) -> str:
        return self(self.release.acls, *arguments)


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: release.version)
def command(request: pytest.FixtureRequest, secured: Secured) -> Iterator[Command]:
    try:
        jars(request.param.version)
    except KafkaUnavailable as reason:
        pytest.skip(str(reason))
    made = Command(secured, request.param)
    yield made
    assert made.tools.process.stdin is not None
    made.tools.process.stdin.close()
    made.tools.process.wait(10)


@pytest.fixture
def name() -> str:
    return f"tools-{next(numbers)}"


def of_bob(secured: Secured, mechanism: str = "PLAIN", user: str = "bob", password: str = PASSWORD) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.bootstrap("SASL_SSL"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "ssl.ca.location": secured.authority,
    }


def produced(secured: Secured, topic: str) -> int:
    """Returns the error of bob's produce request, 0 for none."""
    found: list[int] = []
    producer = Producer({**of_bob(secured), "message.timeout.ms": 30_000})
    producer.produce(topic, b"bob's", on_delivery=lambda error, _: found.append(error.code() if error else 0))
    producer.flush(SECONDS)
    return found[0]


def transacted(secured: Secured, topic: str) -> None:
    producer = Producer({**of_bob(secured), "transactional.id": topic})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"in a transaction")
    producer.commit_transaction(SECONDS)


def consumed(secured: Secured, topic: str, group: str) -> bytes | int:
    """Returns the first value that bob reads in the group, or his error."""
    consumer = Consumer({**of_bob(secured), "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline = time.monotonic() + SECONDS
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None:
                error = message.error()
                return error.code() if error else message.value() or b""
    finally:
        consumer.close()
    raise TimeoutError("nothing was read")


def listed(outcomes: str) -> set[tuple[str, ...]]:
    """Returns type, name, pattern type, principal, host, operation and permission of each ACL in the output."""
    found: set[tuple[str, ...]] = set()
    pattern: tuple[str, ...] = ()
    for line in outcomes.splitlines():
        resource = re.search(r"ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)", line)
        pattern = resource.groups() if resource else pattern
        entry = re.search(r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line)
        if entry:
            found.add((*pattern, *entry.groups()))
    return found


def test_acls_of_a_producer_and_a_consumer(command: Command, secured: Secured, name: str) -> None:
    command(TOPICS, "--create", "--topic", name)
    assert produced(secured, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    bob = ("--allow-principal", "User:bob", "--topic", name)
    added = command.acls("--add", *bob, "--producer", "--transactional-id", name)
    expected = {("TOPIC", name, "LITERAL", "User:bob", "*", operation, "ALLOW") for operation in
                ("WRITE", "DESCRIBE", "CREATE")} | {
        ("TRANSACTIONAL_ID", name, "LITERAL", "User:bob", "*", operation, "ALLOW") for operation in
        ("WRITE", "DESCRIBE")
    }  # fmt: skip
    assert listed(added) == expected
    assert listed(command.acls("--list")) == expected
    assert produced(secured, name) == 0
    transacted(secured, name)
    assert consumed(secured, name, name) == KafkaError.GROUP_AUTHORIZATION_FAILED
    command.acls("--add", *bob, "--consumer", "--group", name)
    assert consumed(secured, name, name) == b"bob's"
    command.acls("--remove", "--force", *bob, "--consumer", "--group", name)
    command.acls("--remove", "--force", *bob, "--producer", "--transactional-id", name)
    assert command.acls("--list").strip() == ""
    assert produced(secured, name) == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_prefixed_acls_and_denials(command: Command, secured: Secured, name: str) -> None:
    command(TOPICS, "--create", "--topic", f"{name}-orders")
    prefixed = ("--topic", name, "--resource-pattern-type", "prefixed")
    command.acls("--add", "--allow-principal", "User:bob", "--operation", "Write", "--operation", "Read", *prefixed)
    assert produced(secured, f"{name}-orders") == 0
    denied = ("--deny-principal", "User:bob", "--deny-host", "127.0.0.1", "--operation", "Write",
              "--topic", f"{name}-orders")  # fmt: skip
    command.acls("--add", *denied)
    assert produced(secured, f"{name}-orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED
    matching = command.acls("--list", "--topic", f"{name}-orders", "--resource-pattern-type", "match")
    assert listed(matching) == {
        ("TOPIC", name, "PREFIXED", "User:bob", "*", "WRITE", "ALLOW"),
        ("TOPIC", name, "PREFIXED", "User:bob", "*", "READ", "ALLOW"),
        ("TOPIC", f"{name}-orders", "LITERAL", "User:bob", "127.0.0.1", "WRITE", "DENY"),
    }
    assert listed(command.acls("--list", "--principal", "User:nobody")) == set()
    command.acls("--remove", "--force", *denied)
    assert produced(secured, f"{name}-orders") == 0
    command.acls("--remove", "--force", *prefixed)
    assert command.acls("--list").strip() == ""


def test_scram_credentials(command: Command, secured: Secured) -> None:
    carol = ("--entity-type", "users", "--entity-name", "carol")
    mechanism, first, second = "SCRAM-SHA-512", "her-first-password", "her-second-password"
    altered = command(CONFIGS, "--alter", *carol, "--add-config", f"{mechanism}=[iterations=8192,password={first}]")
    assert altered.strip() == "Completed updating config for user carol."
    described = command(CONFIGS, "--describe", *carol)
    assert described.strip() == f"SCRAM credential configs for user-principal 'carol' are {mechanism}=iterations=8192"
    assert logs_in(secured, mechanism, first)
    command(CONFIGS, "--alter", *carol, "--add-config", f"{mechanism}=[password={second}]")
    assert logs_in(secured, mechanism, second)
    assert not logs_in(secured, mechanism, first)
    refused = command(CONFIGS, "--alter", *carol, "--add-config", f"{mechanism}=[iterations=5,password=x]", fails=True)
    assert "4096" in refused
    command(CONFIGS, "--alter", *carol, "--delete-config", mechanism)
    assert not logs_in(secured, mechanism, second)
    assert command(CONFIGS, "--describe", *carol).strip() == ""
    assert "does not exist" in command(CONFIGS, "--alter", *carol, "--delete-config", mechanism, fails=True)


def logs_in(secured: Secured, mechanism: str, password: str) -> bool:
    """Returns whether carol can log in: librdkafka reports either result at once, and retries."""
    said: list[KafkaError] = []
    found: dict[str, Any] = {**of_bob(secured, mechanism, "carol", password), "error_cb": said.append}
    admin = AdminClient(found)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            return bool(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            admin.poll(0)
        if any(error.code() == KafkaError._AUTHENTICATION for error in said):
            return False
    raise TimeoutError(f"neither in nor out: {said}")


QUOTAS = [
    (("--entity-type", "users", "--entity-name", "dave"), "user-principal 'dave'", "producer_byte_rate=1024.0"),
    (("--entity-type", "users", "--entity-default"), "the default user-principal", "consumer_byte_rate=2048.0"),
    (("--entity-type", "clients", "--entity-name", "app"), "client-id 'app'", "request_percentage=12.5"),
    (
        ("--entity-type", "users", "--entity-name", "dave", "--entity-type", "clients", "--entity-name", "app"),
        "user-principal 'dave', client-id 'app'",
        "controller_mutation_rate=3.0",
    ),
    (("--entity-type", "ips", "--entity-name", "192.0.2.1"), "ip '192.0.2.1'", "connection_creation_rate=5.0"),
]


@pytest.mark.parametrize(("entity", "named", "quota"), QUOTAS, ids=[named for _, named, _ in QUOTAS])
def test_quotas(command: Command, entity: tuple[str, ...], named: str, quota: str) -> None:
    command(CONFIGS, "--alter", *entity, "--add-config", quota)
    assert command(CONFIGS, "--describe", *entity).strip() == f"Quota configs for {named} are {quota}"
    command(CONFIGS, "--alter", *entity, "--delete-config", quota.partition("=")[0])
    assert command(CONFIGS, "--describe", *entity).strip() == ""


def test_configs_of_a_broker(command: Command) -> None:
    for entity in (("--entity-name", "1"), ("--entity-default",)):
        brokers = ("--entity-type", "brokers", *entity)
        command(CONFIGS, "--alter", *brokers, "--add-config", "log.retention.ms=86400000")
        assert "log.retention.ms=86400000 sensitive=false" in command(CONFIGS, "--describe", *brokers)
        command(CONFIGS, "--alter", *brokers, "--delete-config", "log.retention.ms")
        assert "log.retention.ms=86400000" not in command(CONFIGS, "--describe", *brokers)
    described = command(CONFIGS, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "delegation.token.secret.key=null sensitive=true" in described
    assert "a key of this test" not in described and PASSWORD not in described


def test_a_certificate_is_read_again(command: Command, secured: Secured) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    store = f"listener.name.sasl_ssl.ssl.keystore.location={secured.home / 'server.pem'}"
    command(CONFIGS, "--alter", *broker, "--add-config", f"{store},listener.name.sasl_ssl.ssl.keystore.type=PEM")
    missing = f"listener.name.sasl_ssl.ssl.keystore.location={secured.home / 'no-such.pem'}"
    command(CONFIGS, "--alter", *broker, "--add-config", missing, fails=True)
    assert store in command(CONFIGS, "--describe", *broker)
    names = ",".join(f"listener.name.sasl_ssl.ssl.keystore.{name}" for name in ("location", "type"))
    command(CONFIGS, "--alter", *broker, "--delete-config", names)


class Token(NamedTuple):
    """The first columns of a row of kafka-delegation-tokens.sh."""

    token_id: str
    hmac: str
    owner: str


def rows(outcomes: str) -> list[Token]:
    lines = outcomes.splitlines()
    heading = next(index for index, line in enumerate(lines) if line.startswith("TOKENID"))
    return [Token(*line.split()[:3]) for line in lines[heading + 1 :] if line.strip()]


def test_delegation_tokens(command: Command, secured: Secured, name: str, tmp_path: Path) -> None:
    owner = command.release.principal
    (token,) = rows(command(TOKENS, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"))
    assert token.owner == owner
    (described,) = rows(command(TOKENS, "--describe", "--owner-principal", owner))
    assert (described.token_id, described.hmac) == (token.token_id, token.hmac)
    found = command(TOKENS, "--renew", "--renew-time-period", "3600000", "--hmac", token.hmac)
    assert "Completed renew operation." in found

    jaas = login("SCRAM-SHA-512", token.token_id, token.hmac, ' tokenauth="true"')
    file = write(tmp_path / "token.properties", secured.properties("SASL_SSL", "SCRAM-SHA-512", jaas))
    done = run_java(command.release.version, str(PROGRAM), file, f"{name}-java", "30", "10000", timeout=110)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == ["30"]
    connected = ("--bootstrap-server", secured.bootstrap("SASL_SSL"), "--command-config", file)
    status, output, complaints = command.tools.run(TOKENS, *connected, "--create", "--max-life-time-period", "-1")
    assert status and "Delegation Token requests are not allowed" in complaints, output + complaints

    assert by_token(secured, token, f"{name}-go", tmp_path).returncode == 0
    expired = command(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac)
    assert "Completed expire operation." in expired
    assert rows(command(TOKENS, "--describe", "--owner-principal", owner)) == []
    late = by_token(secured, token, f"{name}-go", tmp_path)
    assert late.returncode and "invalid credentials" in late.stderr, late.stderr


def by_token(secured: Secured, token: Token, topic: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Runs franz-go with the token."""
    file = home / "token.json"
    how = {
        "bootstrap": secured.bootstrap("SASL_SSL"),
        "authority": secured.authority,
        "mechanism": "SCRAM-SHA-256",
        "user": token.token_id,
        "password": token.hmac,
        "byToken": True,
    }
    file.write_text(json.dumps(how))
    return subprocess.run(
        [str(built()), "secured", str(file), topic, "30"],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
