"""The plugin, in a test run of its own: as a user's project sees it."""

import subprocess
import sys

pytest_plugins = ["pytester"]

TESTS = """
from kafka import KafkaProducer

def produce(broker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("t", b"v").get(10)
    producer.close()

def test_one(kafka_broker):
    assert kafka_broker.records("t") == []
    produce(kafka_broker)
    assert [record.value for record in kafka_broker.records("t")] == [b"v"]

def test_two_starts_empty(kafka_broker):
    test_one(kafka_broker)
"""


def test_each_test_gets_an_empty_broker(pytester):
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_a_cluster_of_three_brokers(pytester):
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_cluster_config():
            return {"num.partitions": 2}
        """
    )
    pytester.makepyfile(
        """
        from kafka import KafkaConsumer, KafkaProducer

        def test_a_broker_dies(kafka_cluster):
            kafka_cluster.create_topic("orders")
            producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, acks="all")
            producer.send("orders", b"before").get(30)
            kafka_cluster.kill(kafka_cluster.leader("orders"))
            producer.send("orders", b"after").get(30)
            producer.close()
            consumer = KafkaConsumer(
                "orders", bootstrap_servers=kafka_cluster.bootstrap_servers, auto_offset_reset="earliest"
            )
            assert [next(consumer).value, next(consumer).value] == [b"before", b"after"]
            consumer.close()

        def test_each_test_has_another(kafka_cluster):
            assert kafka_cluster.node_ids == [1, 2, 3]
            kafka_cluster.create_topic("orders", partitions=-1)
            assert kafka_cluster.partition("orders", 1).replicas
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_users_override_its_configs(pytester):
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def kafka_broker_config():
            return {"num.partitions": 7}

        @pytest.fixture(scope="session")
        def kafka_broker_features():
            return {"transaction.version": 1}
        """
    )
    pytester.makepyfile(
        TESTS
        + """
def test_seven(kafka_broker):
    produce(kafka_broker)
    assert len(kafka_broker._server.broker.image.topics_by_name["t"].partitions) == 7

def test_one_after_all(kafka_broker):
    assert kafka_broker._server.broker.image.features["transaction.version"] == 1
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=4)


def test_tls_users_and_acls(pytester):
    pytester.makeconftest(
        """
        import pytest
        from barnabas.testing import allow

        @pytest.fixture(scope="session")
        def kafka_broker_security():
            return {"tls": True, "users": {"alice": "secret"}, "acls": [allow("alice", "all", topic="t")]}
        """
    )
    pytester.makepyfile(
        """
        from kafka import KafkaProducer

        def test_alice(kafka_broker):
            producer = KafkaProducer(**kafka_broker.client_settings("kafka-python", user="alice"))
            kafka_broker.create_topic("t")
            assert producer.send("t", b"v").get(30).offset == 0
            producer.close()
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_it_shows_among_the_fixtures_with_its_meaning(pytester):
    result = pytester.runpytest_subprocess("--fixtures")
    result.stdout.fnmatch_lines(["kafka_broker -- *", "*A running broker*"])


def test_it_imports_nothing_before_its_first_use():
    program = (
        "import sys, barnabas.testing.pytest_plugin\n"
        "loaded = sorted(name for name in sys.modules if name.startswith('barnabas.'))\n"
        "assert loaded == ['barnabas.testing', 'barnabas.testing.pytest_plugin'], loaded\n"
        "assert 'asyncio' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_failed_test_tells_which_faults_there_were(pytester):
    pytester.makepyfile(
        TESTS
        + """
def test_three(kafka_broker):
    kafka_broker.faults.add(api="Produce", first=1, delay=0.001)
    produce(kafka_broker)
    assert kafka_broker.records("t") == []

def test_four(kafka_broker):
    assert kafka_broker.fault_report() != ""
"""
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        ["*Faults of kafka_broker*", "*Produce *hit 1 of the rule [[]api=Produce first=1 delay=*"]
    )
    assert str(result.stdout).count("Faults of kafka_broker") == 1


def test_pytest_does_not_rewrite_the_brokers_assertions(pytester):
    pytester.makeconftest("from barnabas.testing import Broker")
    pytester.makepyfile(
        """
        import sys
        from _pytest.assertion.rewrite import AssertionRewritingHook

        def test_loaders(kafka_broker):
            broker = {name for name in sys.modules if name.startswith("barnabas.")} - {"barnabas.testing.pytest_plugin"}
            rewritten = {name for name in broker if isinstance(sys.modules[name].__loader__, AssertionRewritingHook)}
            assert len(broker) > 100
            assert rewritten <= {"barnabas.testing"}
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
