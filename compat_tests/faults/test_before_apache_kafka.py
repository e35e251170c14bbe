"""The table of docs/how-to/faults-and-clients.md, with the faults in a proxy before Apache Kafka: the same results."""

import itertools
from collections.abc import Iterator

import kafka
import kafka.admin
import pytest

from barnabas.testing import Proxy
from compat_tests.apache_kafka.apache import ApacheKafka, KafkaUnavailable, jars

from .clients import TOPIC, Client, Failed, Options
from .test_table import ABOUT_GROUPS, NAMES, REQUEST_TIMEOUTS_MS, ROWS, TIMES, of_an_offset

pytestmark = pytest.mark.long

numbers = itertools.count()


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    try:
        jars()
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as broker:
        create(broker, TOPIC)
        yield broker


def create(broker: ApacheKafka, topic: str) -> None:
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])
    admin.close()


def count(broker: ApacheKafka, topic: str) -> int:
    with kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = kafka.TopicPartition(topic, 0)
        return int(consumer.end_offsets([partition])[partition])


def of_a_record(broker: ApacheKafka, client: Client, servers: dict[str, str], options: Options) -> str:
    error = None
    try:
        client.send(servers, options)
    except Failed as failed:
        error = failed.name
    times = count(broker, options.topic)
    return TIMES[times] if error is None else f"{error} ({times})"


@pytest.mark.parametrize("rule", [each for each in ROWS if "tls=" not in each])
def test_what_clients_are_seen_to_do(apache: ApacheKafka, client: Client, rule: str) -> None:
    for request_timeout_ms in REQUEST_TIMEOUTS_MS:
        seen = behaviour(apache, client, rule, request_timeout_ms)
        if seen == ROWS[rule][NAMES.index(client.name)]:
            return
    assert seen == ROWS[rule][NAMES.index(client.name)]


def behaviour(apache: ApacheKafka, client: Client, rule: str, request_timeout_ms: int) -> str:
    topic = f"t-{next(numbers)}"
    create(apache, topic)
    with Proxy(apache.bootstrap) as proxy:
        name = "bootstrap_servers" if client.settings_name in ("kafka-python", "aiokafka") else "bootstrap.servers"
        servers = {name: proxy.bootstrap_servers}
        (set_rule,) = proxy.faults.script(rule.replace("topic=t", f"topic={topic}"))
        if rule.startswith(ABOUT_GROUPS):
            seen: str = of_an_offset(client, servers)
        else:
            timeouts = {"request_timeout_ms": request_timeout_ms, "delivery_timeout_ms": 3 * request_timeout_ms}
            seen = of_a_record(apache, client, servers, Options(topic=topic, **timeouts))
        assert set_rule.hits >= 1
    return seen
