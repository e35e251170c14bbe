"""The metrics after requests of clients of every kind, parsed by Prometheus's own parser."""

import shutil
import subprocess
import urllib.request
from collections import defaultdict
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from barnabas.errors import NotLeaderOrFollower, RequestTimedOut
from barnabas.metrics.counting import MOST_TOPICS, Counting
from barnabas.metrics.counts import BUCKETS, OTHERS, Times
from barnabas.metrics.declared import COUNTER, METRICS
from barnabas.metrics.reading import MOST_ENTRIES, errors_of
from barnabas.records.builder import build_batch
from barnabas.testing import Broker, Cluster
from barnabas.wire.messages.metadata import MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.metrics.scraping import Scrape
from tests.raw import Client


@pytest.fixture(scope="module")
def metered_broker():
    with Broker(barnabas_metrics_listener="127.0.0.1:0") as broker:
        yield broker


@pytest.fixture
def broker(metered_broker):
    metered_broker.reset()
    return metered_broker


def produce(broker, topic, count, *, acks="all"):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "acks": acks, "linger.ms": 50})
    for number in range(count):
        producer.produce(topic, b"%05d" % number, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_records_and_bytes_of_a_topic(broker, acks):
    topic = f"orders-{acks}"
    broker.create_topic(topic)
    before = Scrape(broker)
    produce(broker, topic, 100, acks=acks)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert len(consumer.consume(100, timeout=30)) == 100
    after = Scrape(broker)
    name = "kafka_server_brokertopicmetrics_"
    assert after(name + "messagesin_total", topic=topic) == 100
    assert after(name + "messagesin_total") - before(name + "messagesin_total") == 100
    log_size = after("kafka_log_log_size", topic=topic, partition="0")
    assert after(name + "bytesin_total", topic=topic) == log_size > 500
    assert after(name + "bytesout_total", topic=topic) >= log_size
    assert after("kafka_log_log_logendoffset", topic=topic, partition="0") == 100
    consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)
    place = {"consumergroup": "readers", "topic": topic, "partition": "0"}
    scrape = Scrape(broker)
    assert scrape("kafka_consumergroup_current_offset", **place) == 40
    assert scrape("kafka_consumergroup_lag", **place) == 60
    consumer.close()


def test_requests_by_version_and_error_and_their_times(broker):
    produce(broker, "orders", 1)
    produce(broker, "orders", 1)
    scrape, name = Scrape(broker), "kafka_network_requestmetrics_"
    requests = {
        dict(labels)["request"]: value
        for (each, labels), value in scrape.values.items()
        if each == name + "requests_total"
    }
    assert requests["Produce"] >= 2
    assert requests["ApiVersions"] >= 2
    assert scrape(name + "errors_total", request="Produce", error="NONE") >= 2
    assert scrape(name + "totaltimems", request="Produce", quantile="0.5") > 0
    assert scrape("barnabas_request_seconds_count", request="Produce") == requests["Produce"]
    assert scrape("barnabas_request_seconds_bucket", request="Produce", le="+Inf") == requests["Produce"]


def test_refused_batches_count_as_failed(broker):
    broker.create_topic("small", configs={"max.message.bytes": "100"})
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    failures = []
    producer.produce("small", b"v" * 1000, on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures[0] is not None
    scrape, name = Scrape(broker), "kafka_server_brokertopicmetrics_"
    assert scrape(name + "failedproducerequests_total", topic="small") == 1
    assert scrape(name + "totalproducerequests_total", topic="small") == 1
    assert scrape(name + "messagesin_total", topic="small") == 0
    assert scrape("kafka_network_requestmetrics_errors_total", request="Produce", error="MESSAGE_TOO_LARGE") >= 1


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({}, "UNKNOWN_TOPIC_OR_PARTITION"),
        (
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
            "TOPIC_AUTHORIZATION_FAILED",
        ),
    ],
)
def test_each_of_many_failed_requests_counts(given, error):
    """Most of them are not timed."""
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=build_batch([(None, b"v", 0)]))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic(name="none", partition_data=[partition])])
    with Broker(barnabas_metrics_listener="127.0.0.1:0", **given) as broker, Client(broker.port) as client:
        for _ in range(100):
            assert client.ask(request, 9).responses[0].partition_responses[0].error_code
        scrape, name = Scrape(broker), "kafka_network_requestmetrics_errors_total"
        assert scrape(name, request="Produce", error=error) == 100
        assert scrape(name, request="Produce", error="NONE") == 0


def test_errors_that_handlers_raise_count():
    def fail(request, context):
        raise NotLeaderOrFollower

    api = SimpleNamespace(key=0, handle=fail)
    context = SimpleNamespace(broker=SimpleNamespace(authorizer=None), api_version=9, client_id="x", has_errors=False)
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=b"")
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic(name="orders", partition_data=[partition])])
    counting = Counting(lambda: 0.0)
    handle = counting.new_handle(api, 9)
    for _ in range(100):
        handle(api, request, context)
    assert counting.apis[0, 9].errors == {NotLeaderOrFollower.code: 100}


def test_a_request_without_a_response_counts_as_closed(broker):
    before = Scrape(broker)("kafka_network_requestmetrics_closed_total", request="Produce")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "acks": 0, "message.timeout.ms": 2000})
    broker.create_topic("small", configs={"max.message.bytes": "100"})
    producer.produce("small", b"v" * 1000)
    producer.flush(10)
    assert Scrape(broker)("kafka_network_requestmetrics_closed_total", request="Produce") > before


def test_groups_and_transactions_by_state(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "teller"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"a")
    producer.flush(30)
    assert Scrape(broker)("barnabas_transactions", state="Ongoing") == 1
    producer.commit_transaction(30)
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    consumer.poll(5)
    name = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    assert Scrape(broker)(name, type="classic", state="Stable") == 1
    consumer.close()
    assert Scrape(broker)(name, type="classic", state="Empty") == 1


def poll_until_assigned(members, partitions):
    """Polls consumers until each of them has this number of partitions."""
    while any(len(each.assignment()) != partitions for each in members):
        for each in members:
            each.poll(0.1)


@pytest.mark.parametrize(
    ("protocol", "name", "intervals"),
    [
        ("classic", "group_completed_rebalance_count", {"heartbeat.interval.ms": 100}),
        ("consumer", "consumer_group_rebalance_count", {}),  # the broker's config has the interval
    ],
)
def test_rebalances_of_groups(broker, protocol, name, intervals):
    broker.create_topic("orders", partitions=2)
    name = f"kafka_server_group_coordinator_metrics_{name}_total"
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    config = {**servers, "group.id": protocol, "group.protocol": protocol, **intervals}
    members = [Consumer(config) for _ in range(2)]
    counts = [Scrape(broker)(name)]
    for number, member in enumerate(members, start=1):
        member.subscribe(["orders"])
        poll_until_assigned(members[:number], 2 // number)
        scrape = Scrape(broker)
        counts.append(scrape(name))
        assert scrape("kafka_consumergroup_members", consumergroup=protocol) == number
    members[0].close()
    poll_until_assigned(members[1:], 2)  # close() may hang in a rebalance: librdkafka's issue 4041
    members[1].close()
    assert counts == sorted(set(counts)), "each new member is a rebalance"


def test_the_state_of_replicas_and_of_the_controller(broker):
    broker.create_topic("orders", partitions=3)
    scrape, name = Scrape(broker), "kafka_server_replicamanager_"
    assert scrape(name + "leadercount") == scrape(name + "partitioncount") >= 3
    assert scrape(name + "underreplicatedpartitions") == 0
    assert scrape(name + "atminisrpartitioncount") >= 3
    name = "kafka_controller_kafkacontroller_"
    assert scrape(name + "activecontrollercount") == 1
    assert scrape(name + "activebrokercount") == 1
    assert scrape(name + "globalpartitioncount") >= 3
    with Client(broker.port):
        assert Scrape(broker)("kafka_server_socketservermetrics_connection_count", listener="PLAINTEXT") >= 1


def test_each_declared_metric_is_exposed_and_nothing_else(broker):
    produce(broker, "orders", 1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "teller"})
    producer.init_transactions(30)
    scrape = Scrape(broker)
    found = {name for name in scrape.families if not name.startswith(("process_", "python_"))}
    of_others = {  # of followers, SASL listeners, share groups and clients that push
        "kafka_server_fetcherlagmetrics_consumerlag",
        "kafka_server_socketservermetrics_successful_authentication",
        "kafka_server_socketservermetrics_failed_authentication",
        "kafka_server_sharegroupmetrics_recordacknowledgements",
        "barnabas_share_group_records_in_flight",
        "barnabas_telemetry_client_info",
        "barnabas_telemetry_dropped_points",
    }
    assert found == {each.name for each in METRICS} - of_others
    by_name = {each.name: each for each in METRICS}
    labels = defaultdict(set)
    for name in found:
        for sample in scrape.families[name].samples:
            labels[name] |= sample.labels.keys() - {"le", "quantile"}
        assert labels[name] <= set(by_name[name].labels)
        assert (by_name[name].kind == COUNTER) == (scrape.families[name].type == "counter")


def test_openmetrics_for_those_who_ask_for_it(broker):
    produce(broker, "orders", 1)
    request = urllib.request.Request(
        broker.metrics_url + "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        assert response.headers["content-type"].startswith("application/openmetrics-text")
        shown = response.read().decode()
    assert shown.endswith("# EOF\n")
    families = {family.name for family in text_string_to_metric_families(shown)}  # stricter than Prometheus's own form
    assert {"kafka_server_brokertopicmetrics_messagesin", "barnabas_request_seconds"} <= families


PROMTOOL = shutil.which("promtool")
STYLE = 3
"""The exit code of a valid scrape with unusual names."""


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian's package prometheus)")
def test_promtool_accepts_a_scrape(broker):
    produce(broker, "orders", 1)
    scrape = Scrape(broker).text
    checked = subprocess.run([PROMTOOL, "check", "metrics"], input=scrape, capture_output=True, text=True, timeout=60)
    assert checked.returncode in (0, STYLE), checked.stderr
    # The checker's style differs from Apache Kafka's names, which are those of the JMX exporter.
    assert not [line for line in checked.stderr.splitlines() if line.startswith("barnabas_")]


@pytest.mark.parametrize(("path", "status"), [("live", "live"), ("ready", "ready")])
def test_health(broker, path, status):
    with urllib.request.urlopen(f"{broker.metrics_url}/health/{path}", timeout=30) as response:
        assert response.read() == b'{"status":"%s"}' % status.encode()


def test_the_address_without_a_path_leads_to_the_metrics(broker):
    with urllib.request.urlopen(broker.metrics_url, timeout=30) as response:
        assert response.url == f"{broker.metrics_url}/metrics"


# ------------------------------------------------------------ counting


def test_topics_beyond_the_limit_are_summed():
    counting = Counting(lambda: 0.0)
    for number in range(MOST_TOPICS + 10):
        counting.topic(f"topic-{number}").messages_in += 1
    assert len(counting.topics) == MOST_TOPICS + 1
    assert counting.topics[OTHERS].messages_in == 10


def test_topics_without_traffic_take_no_place_among_the_counted(broker):
    broker.create_topic("idle")
    broker.create_topic("busy")
    produce(broker, "busy", 1)
    scrape, name = Scrape(broker), "kafka_server_brokertopicmetrics_messagesin_total"
    topics = {dict(labels).get("topic") for each, labels in scrape.values if each == name}
    assert "busy" in topics
    assert "idle" not in topics


@pytest.mark.parametrize("base_offset, failed", [(-1, 1), (5, 0)])
def test_a_batch_that_was_appended_has_not_failed_for_its_topic(base_offset, failed):
    """As in Apache Kafka: an acks=all that is not safe in time is only an error of the request."""
    row = ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
        index=0, error_code=RequestTimedOut.code, base_offset=base_offset
    )
    topic = ProduceResponse.TopicProduceResponse(name="orders", partition_responses=[row])
    response = ProduceResponse(responses=[topic])
    api = SimpleNamespace(key=0, handle=lambda request, context: response)
    context = SimpleNamespace(
        broker=SimpleNamespace(authorizer=None), api_version=9, client_id="teller", has_errors=True
    )
    counting = Counting(lambda: 0.0)
    counting.new_handle(api, 9)(api, ProduceRequest(acks=-1, timeout_ms=1, topic_data=[]), context)
    assert counting.topic("orders").failed_batches == counting.topic("orders").batches == failed
    assert counting.apis[0, 9].errors == {RequestTimedOut.code: 1}


def test_quantiles_are_ends_of_buckets():
    counts = Times()
    counts.buckets[0], counts.buckets[3], counts.buckets[BUCKETS - 1] = 50, 49, 1
    assert [round(counts.quantile(part), 6) for part in (0.5, 0.75, 0.99)] == [0.0001, 0.0008, 0.0008]
    assert counts.quantile(0.999) == pytest.approx(0.0001 * 2 ** (BUCKETS - 1))


def test_what_coordinators_append_counts_for_their_topics(broker):
    """As in Apache Kafka, where ``ReplicaManager.appendToLocalLog`` counts."""
    broker.create_topic("invoices")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "teller"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("invoices", b"a")
    producer.commit_transaction(30)
    scrape, name = Scrape(broker), "kafka_server_brokertopicmetrics_messagesin_total"
    assert scrape(name, topic="invoices") == 2  # the record and the marker
    assert scrape(name, topic="__transaction_state") >= 3


def test_of_a_large_response_only_the_first_entries_are_looked_into():
    topic = MetadataResponse.MetadataResponseTopic
    topics = [
        topic(name=str(number), partitions=[], error_code=NotLeaderOrFollower.code)
        for number in range(MOST_ENTRIES + 50)
    ]
    response = MetadataResponse(brokers=[], topics=topics)
    assert errors_of(response, 12) == [NotLeaderOrFollower.code] * MOST_ENTRIES


def test_a_broker_without_metrics_says_how_to_have_them():
    with Broker() as broker, pytest.raises(RuntimeError, match="barnabas_metrics_listener"):
        _ = broker.metrics_url


def test_the_lag_of_a_follower():
    with Cluster(2, barnabas_metrics_listener="127.0.0.1:0") as cluster:
        cluster.create_topic("orders")
        leader = cluster.leader("orders")
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
        producer.produce("orders", b"a", partition=0)
        assert producer.flush(30) == 0
        scrape = Scrape(cluster.metrics_url(leader))
        (follower,) = {1, 2} - {leader}
        labels = {"topic": "orders", "partition": "0", "replica": str(follower)}
        assert scrape.values["kafka_server_fetcherlagmetrics_consumerlag", frozenset(labels.items())] == 0
        assert scrape("kafka_server_brokertopicmetrics_replicationbytesout_total") > 0
        assert scrape("kafka_controller_kafkacontroller_activecontrollercount") == 0
