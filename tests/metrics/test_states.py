"""Metrics of what is not a request: authentications, replicas in sync, elections, quotas, flushes, share groups."""

import contextlib
import time

import pytest
import trustme
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, QuotaAlteration
from barnabas.cluster.image.image import MetadataDelta, MetadataImage, PartitionImage, TopicImage
from barnabas.metrics.changes import ELECTIONS, EXPANDS, FROM_ELIGIBLE, SHRINKS, UNCLEAN, Changes
from barnabas.metrics.counting import AT_STRIDE, MOST_CLIENTS, TIMED, Counting
from barnabas.metrics.counts import OTHERS, ApiCounts
from barnabas.metrics.reading import acknowledgements_of
from barnabas.testing import Broker, Cluster
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from tests.metrics.scraping import Scrape
from tests.raw import Client
from tests.security.tls.stores import inline
from tests.server.test_tls import TlsClient, port_of

LISTENER = "127.0.0.1:0"


def produce(settings, topic="orders", records=1):
    producer = Producer(settings)
    for _ in range(records):
        producer.produce(topic, b"v" * 100)
    assert producer.flush(30) == 0


def until(condition):
    """Scrapes until it is so; a scrape takes its time."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline


def test_authentications_by_listener_and_mechanism():
    with Broker(users={"alice": "secret"}, barnabas_metrics_listener=LISTENER) as broker:
        settings = broker.client_settings("confluent", user="alice", mechanism="SCRAM-SHA-256")
        name = "kafka_server_socketservermetrics_"
        (listener,) = (
            dict(labels)["listener"] for metric, labels in Scrape(broker).values if metric == name + "connection_count"
        )
        at = {"listener": listener, "mechanism": "SCRAM-SHA-256"}
        produce(settings)
        scrape = Scrape(broker)
        assert scrape(name + "successful_authentication_total", **at) >= 1
        assert scrape(name + "failed_authentication_total", **at) == 0
        client = AdminClient({**settings, "sasl.password": "guess"})
        with pytest.raises(Exception, match=r"_TRANSPORT|_TIMED_OUT|broker"):
            client.list_topics(timeout=2)
        until(lambda: Scrape(broker)(name + "failed_authentication_total", **at) >= 1)


def test_handshakes_count_as_authentications():
    authority = trustme.CA()
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "barnabas.metrics.listener": LISTENER,
    }
    name = "kafka_server_socketservermetrics_{}_authentication_total"
    with Broker({**settings, **inline(authority, authority.issue_cert("127.0.0.1"))}) as broker:
        counted = {("SSL", "successful"): 1, ("SSL", "failed"): 2, ("SASL_SSL", "failed"): 1}
        with TlsClient(port_of(broker, "SSL"), authority) as client:
            assert client.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
        for listener in ("SSL", "SSL", "SASL_SSL"):
            with Client(port_of(broker, listener)) as stranger, contextlib.suppress(ConnectionResetError):
                stranger.send(b"GET / HTTP/1.1\r\n\r\n")
                while stranger.socket.recv(1000):
                    pass
        scrape = Scrape(broker)
        found = {
            (dict(labels)["listener"], outcome): value
            for outcome in ("successful", "failed")
            for (metric, labels), value in scrape.values.items()
            if metric == name.format(outcome) and dict(labels)["mechanism"] == "SSL"
        }
        assert found == counted


def test_times_of_queue_and_sending_and_what_clients_did():
    with Broker(barnabas_metrics_listener=LISTENER) as broker:
        produce({"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop", "linger.ms": 0}, records=10)
        scrape, name = Scrape(broker), "kafka_network_requestmetrics_"
        count = scrape(name + "requests_total", request="Produce", version="10")
        assert count >= 1
        for times in ("localtimems", "totaltimems", "responsesendtimems"):
            assert scrape(f"{name}{times}_count", request="Produce") == count
            assert scrape(f"{name}{times}_sum", request="Produce") > 0
        assert scrape(name + "requestqueuetimems_count", request="Metadata") >= 1
        assert scrape(name + "failed_total", request="Produce") == 0
        assert scrape("barnabas_client_requests_total", client_id="shop") >= count
        bytes_in = scrape("kafka_server_brokertopicmetrics_bytesin_total", topic="orders")
        assert scrape("barnabas_client_bytesin_total", client_id="shop") == bytes_in > 1000


def test_throttled_requests_by_kind_of_quota():
    with Broker(barnabas_metrics_listener=LISTENER) as broker:
        values = [("producer_byte_rate", 5.0)]
        broker._submit(AlterClientQuotas([QuotaAlteration({"client-id": "shop"}, values)]))
        produce({"bootstrap.servers": broker.bootstrap_servers, "client.id": "shop"})
        scrape = Scrape(broker)
        assert scrape("barnabas_throttled_requests_total", quota="producer_byte_rate") >= 1
        assert scrape("barnabas_throttle_seconds_total", quota="producer_byte_rate") > 0
        assert scrape("barnabas_throttled_requests_total", quota="consumer_byte_rate") == 0


def test_flushes_and_the_cleaner():
    with Broker(barnabas_metrics_listener=LISTENER) as broker:
        broker.create_topic("orders", configs={"flush.messages": "1"})
        produce({"bootstrap.servers": broker.bootstrap_servers, "acks": "all"})
        scrape = Scrape(broker)
        assert scrape("kafka_log_logflushstats_logflushrateandtimems_count") >= 1
        assert scrape("kafka_log_logflushstats_logflushrateandtimems_sum") > 0
        assert ("kafka_log_logcleanermanager_uncleanable_partitions_count", frozenset()) in scrape.values


def test_replicas_that_leave_the_isr_and_leaders_that_are_elected():
    with Cluster(3, barnabas_metrics_listener=LISTENER) as cluster:
        cluster.create_topic("orders")
        leader = cluster.leader("orders")
        other = next(node for node in (1, 2, 3) if node != leader)

        def total(name, *nodes):
            return sum(Scrape(cluster.metrics_url(node))(name) for node in nodes)

        cluster.stop(other)
        shrinks = "kafka_server_replicamanager_isrshrinks_total"
        expands = "kafka_server_replicamanager_isrexpands_total"
        until(lambda: total(shrinks, leader) >= 1)
        assert total(expands, leader) == 0
        cluster.start(other)
        cluster.wait_in_sync("orders")
        until(lambda: total(expands, leader) >= 1)
        cluster.stop(leader)
        controller = cluster.active_controller
        until(lambda: total("barnabas_leader_elections_total", controller) >= 1)
        assert total("kafka_controller_controllerstats_uncleanleaderelections_total", controller) == 0


# ------------------------------------------------------------ without a broker


def image(leader, isr, elr=()):
    partition = PartitionImage((1, 2, 3), isr, (), (), leader, 1, 1, (), elr)
    return MetadataImage(topics_by_id={b"id": TopicImage("orders", b"id", {0: partition})})


@pytest.mark.parametrize(
    ("before", "after", "counted"),
    [
        (image(1, (1, 2)), image(1, (1,)), {SHRINKS}),
        (image(1, (1,)), image(1, (1, 2)), {EXPANDS}),
        (image(2, (1, 2)), image(2, (2,)), set()),
        (image(2, (1, 2)), image(1, (1,)), {ELECTIONS}),
        (image(2, (2,)), image(3, (3,)), {ELECTIONS, UNCLEAN}),
        (image(-1, (), (3,)), image(3, (3,)), {ELECTIONS, FROM_ELIGIBLE}),
        (image(2, (2,)), image(-1, (2,)), set()),
    ],
)
def test_what_a_change_of_a_partition_counts_as(before, after, counted):
    changes, delta = Changes(1, before, lambda: True), MetadataDelta()
    delta.partitions[b"id"] = {0}
    changes.follow(after, delta)
    assert {sample.name for sample in changes.samples() if sample.value} == counted


class Countdown:
    """Counts requests as the function that handles them does."""

    def __init__(self):
        self.left, self.stand_for = 1, []
        self.counts = ApiCounts(self.add)

    def add(self, more):
        self.left += more
        return self.left

    def send(self, number):
        for _ in range(number):
            self.left -= 1
            if not self.left:
                self.stand_for.append(self.counts.begin_timed(AT_STRIDE))


def test_of_many_requests_some_are_timed_and_stand_for_the_others():
    api = Countdown()
    api.send(1 + 100 * TIMED)
    assert api.counts.requests == 1 + 100 * TIMED
    api.counts.set_stride(TIMED)
    assert (api.counts.stride, api.left) == (100, 100)
    before = len(api.stand_for)
    api.send(1000)
    assert api.stand_for[before + 1 :] == [100] * 9
    assert sum(api.stand_for) == api.counts.requests == 1001 + 100 * TIMED
    api.send(10)
    api.counts.set_stride(TIMED)
    assert (api.counts.stride, api.left, api.counts.weight) == (50, 50, 60)
    assert api.counts.requests == 1011 + 100 * TIMED


def test_a_burst_after_a_quiet_period_is_not_timed_request_by_request():
    api = Countdown()
    api.send(40_000)
    assert len(api.stand_for) <= 12 * AT_STRIDE
    assert sum(api.stand_for) + api.counts.weight - api.left == api.counts.requests == 40_000


def test_of_burst_after_burst_fewer_are_timed():
    api = Countdown()
    api.send(40_000)
    for periods in (1, 1, 2, 3):
        for _ in range(periods):
            api.counts.set_stride(TIMED)
        before = len(api.stand_for)
        api.send(40_000)
        assert len(api.stand_for) - before <= (4 + periods) * AT_STRIDE
    for _ in range(10):
        api.counts.set_stride(TIMED)
    assert (api.counts.stride, api.left) == (1, 1)  # each request of an API with few is timed again


def test_clients_beyond_the_limit_are_summed():
    counting = Counting(lambda: 0.0)
    for number in range(MOST_CLIENTS + 10):
        counting.client(f"client-{number}").requests += 1
    assert len(counting.clients) == MOST_CLIENTS + 1
    assert counting.clients[OTHERS].requests == 10


def test_records_that_a_share_group_acknowledges_by_type():
    topic = ShareAcknowledgeRequest.AcknowledgeTopic
    batch = topic.AcknowledgePartition.AcknowledgementBatch
    batches = [
        batch(first_offset=0, last_offset=9, acknowledge_types=[1]),
        batch(first_offset=10, last_offset=12, acknowledge_types=[1, 2, 0]),
    ]
    partition = topic.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
    topics = [topic(topic_id=bytes(16), partitions=[partition])]
    request = ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=topics)
    assert acknowledgements_of(request) == {1: 11, 2: 1, 0: 1}
