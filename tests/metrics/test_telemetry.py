"""Metrics that clients push (KIP-714): librdkafka's and raw requests' are shown by the next scrape."""

import json
import time
from io import FileIO

import pytest
from confluent_kafka import Producer
from google.protobuf.json_format import Parse
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

from barnabas.broker.telemetry import Instance, Pushed
from barnabas.config.dynamic import CLIENT_METRICS_RESOURCE
from barnabas.config.validators import ConfigError
from barnabas.metrics import pushed as module
from barnabas.metrics.pushed import PushedMetrics, name_of
from barnabas.metrics.pushed_file import PushedFile, line_of
from barnabas.server.server import promise
from barnabas.testing import Broker
from barnabas.uuids import uuid_text
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.wire.messages.push_telemetry import PushTelemetryRequest
from tests.metrics.scraping import Scrape
from tests.raw import CLIENT_ID, Client

KEYS = {71, 72}
DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA
CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
GIVE_UP_S = 60


@pytest.fixture(scope="module")
def broker():
    with Broker(barnabas_metrics_listener="127.0.0.1:0") as broker:
        yield broker


def subscribe(client, name, **configs):
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    settings = [
        kind.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = kind(resource_type=CLIENT_METRICS_RESOURCE, resource_name=name, configs=settings)
    answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert [each.error_code for each in answer.responses] == [0]


def advertised(port):
    with Client(port) as client:
        answer = client.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 3)
        return {each.api_key for each in answer.api_keys} & KEYS


def test_it_is_advertised_where_metrics_are_on_and_nowhere_else(broker):
    assert advertised(broker.port) == KEYS
    with Broker() as without:
        assert not advertised(without.port)


@pytest.mark.parametrize(("release", "there"), [("3.6", False), ("3.7", True), ("4.3", True)])
def test_a_release_that_had_it_has_it(release, there):
    assert promise(release, telemetry=True).apis.keys() & KEYS == (KEYS if there else set())
    assert not promise(release).apis.keys() & KEYS


def test_raw_requests(broker):
    with Client(broker.port) as client:
        subscribe(client, "raw", metrics="org.apache.kafka.", interval_ms="1000", match=f"client_id={CLIENT_ID}")
        subscription = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
        assert (subscription.error_code, subscription.push_interval_ms) == (0, 1000)
        assert subscription.telemetry_max_bytes == 1_048_576
        assert list(subscription.accepted_compression_types) == [4, 3, 1, 2]
        assert list(subscription.requested_metrics) == ["org.apache.kafka."]
        assert subscription.delta_temporality
        again = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=subscription.client_instance_id), 0)
        assert (again.error_code, again.client_instance_id, again.subscription_id) == (89, bytes(16), 0)
        listed = client.ask(ListConfigResourcesRequest(), 0)
        assert "raw" in [each.resource_name for each in listed.config_resources]
        data = payload(("org.apache.kafka.producer.record.send.total", 3, True, DELTA))
        push = PushTelemetryRequest(
            client_instance_id=subscription.client_instance_id,
            subscription_id=subscription.subscription_id,
            terminating=False,
            compression_type=0,
            metrics=data,
        )
        assert client.ask(push, 0).error_code == 0
        labels = {"client_id": CLIENT_ID, "client_instance_id": uuid_text(subscription.client_instance_id)}
        scrape = Scrape(broker)
        assert scrape("kafka_client_producer_record_send_total", **labels) == 3
        assert scrape("kafka_server_client_metrics_plugin_export_total") >= 1
        info = {"client_software_name": "unknown", "client_software_version": "unknown"}
        assert scrape("barnabas_telemetry_client_info", **labels, **info) == 1


def test_librdkafka_pushes(broker):
    with Client(broker.port) as client:
        subscribe(
            client, "rdkafka", metrics="*", interval_ms="200", match="client_software_name=.*librdkafka.*|confluent.*"
        )
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "teller"})
    name, until, latest = "kafka_client_producer_node_request_latency_max", time.monotonic() + GIVE_UP_S, 0.0
    while not latest:  # an interval in which nothing was produced has none
        assert time.monotonic() < until, "librdkafka has not pushed"
        producer.produce("orders", b"a")
        assert producer.flush(30) == 0
        values = Scrape(broker).values
        latest = max(
            (value for (each, labels), value in values.items() if each == name and ("client_id", "teller") in labels),
            default=0.0,
        )


# ------------------------------------------------------------ what is kept


def payload(*metrics, client=()):
    """Sums and gauges: name, value, is it monotonic (None for a gauge), temporality; and attributes of the point."""
    data = MetricsData()
    resource = data.resource_metrics.add()
    for key, value in client:
        resource.resource.attributes.add(key=key).value.string_value = value
    found = resource.scope_metrics.add().metrics
    for name, value, is_sum, temporality, *attributes in metrics:
        metric = found.add(name=name)
        if is_sum is None:
            point = metric.gauge.data_points.add(as_double=value)
        else:
            metric.sum.is_monotonic, metric.sum.aggregation_temporality = is_sum, temporality
            point = metric.sum.data_points.add(as_int=value)
        for key, text in attributes:
            point.attributes.add(key=key).value.string_value = text
    return data.SerializeToString()


class Bench:
    def __init__(self):
        self.now = 0.0
        self.metrics = PushedMetrics(lambda: self.now)

    def push(self, *metrics, client=(), client_id="teller", number=1, interval_ms=1000):
        attributes = {"client_id": client_id, "client_instance_id": str(number)}
        instance = Instance(bytes([number] * 16), attributes, ("*",), interval_ms, 1)
        self.metrics.receive(Pushed(instance, payload(*metrics, client=client)))

    def shown(self):
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for metric in self.metrics.collect()
            for sample in metric.samples
        }


TELLER = ("client_id", "teller"), ("client_instance_id", "1")


def test_sums_grow_by_deltas_and_are_what_is_told_otherwise():
    bench = Bench()
    for value in (2, 3):
        bench.push(
            ("org.apache.kafka.a.total", value, True, DELTA), ("b", value, True, CUMULATIVE), ("c", value, None, 0)
        )
    assert bench.shown() == {
        ("kafka_client_a_total", *TELLER): 5, ("kafka_client_b_total", *TELLER): 3, ("kafka_client_c", *TELLER): 3,
    }  # fmt: skip


def test_labels_of_the_client_and_of_the_point():
    bench = Bench()
    bench.push(
        ("a", 1, None, 0, ("node.id", "7"), ("client_id", "another"), ("__x", "y"), ("1", "z")),
        client=[("group_id", "readers")],
    )
    (labels,) = (dict(each[1:]) for each in bench.shown())
    assert labels == {**dict(TELLER), "group_id": "readers", "node_id": "7", "x": "y", "a_1": "z"}


def test_names_are_safe():
    assert name_of("org.apache.kafka.consumer.poll.idle.ratio") == "kafka_client_consumer_poll_idle_ratio"
    assert name_of('a"b\nc{d}') == "kafka_client_a_b_c_d_"
    assert name_of("") == "kafka_client__"
    assert len(name_of("x" * 5000)) < 300


def test_what_is_silent_is_forgotten():
    bench = Bench()
    bench.push(("a", 1, None, 0), number=1)
    bench.now = 59
    bench.push(("a", 1, None, 0), number=2, interval_ms=30_000)
    bench.now = 60
    assert len(bench.shown()) == 1
    bench.now = 59 + 90
    assert not bench.shown()
    assert [each.value for each in bench.metrics.samples()] == [0]


def test_series_are_bounded_over_all_clients(monkeypatch):
    monkeypatch.setattr(module, "MOST_SERIES", 3)
    bench = Bench()
    bench.push(("a", 1, None, 0), ("b", 1, None, 0), number=1)
    bench.push(("a", 1, None, 0), ("b", 1, None, 0), number=2)
    assert len(bench.shown()) == 3
    assert bench.metrics.dropped == 1
    bench.push(("a", 2, None, 0), number=2)
    assert sorted(bench.shown().values()) == [1, 1, 2]


def test_clients_that_disagree_on_a_kind_do_not_spoil_the_scrape():
    bench = Bench()
    bench.push(("a", 1, None, 0), number=1)
    bench.push(("a.total", 1, True, DELTA), number=2)
    assert bench.shown() == {("kafka_client_a", *TELLER): 1}


def test_kinds_that_clients_need_not_have_are_dropped():
    data = MetricsData()
    data.resource_metrics.add().scope_metrics.add().metrics.add(name="h").histogram.data_points.add(count=1)
    metrics = PushedMetrics(lambda: 0.0)
    metrics.receive(Pushed(Instance(bytes(16), {}, ("*",), 1000, 1), data.SerializeToString()))
    assert (list(metrics.collect()), metrics.dropped) == ([], 1)


def test_bytes_that_are_no_metrics():
    with pytest.raises(ValueError, match="parsing"):
        PushedMetrics(lambda: 0.0).receive(Pushed(Instance(bytes(16), {}, (), 1000, 1), b"\xff\xff"))


# ------------------------------------------------------------ the file


def test_pushes_are_appended_to_a_named_file(tmp_path):
    path = tmp_path / "clients.jsonl"
    path.write_bytes(b"{}\n")
    configs = {"barnabas_metrics_listener": "127.0.0.1:0", "barnabas_metrics_clients_file": str(path)}
    with Broker(**configs) as broker, Client(broker.port) as client:
        subscribe(client, "raw", metrics="*", interval_ms="1000")
        subscription = client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), 0)
        data = payload(("a.total", 3, True, DELTA), client=[("client_id", "another"), ("group_id", "readers")])
        for metrics, terminating, error in ((data, False, 0), (b"\xff", True, 87)):
            push = PushTelemetryRequest(
                client_instance_id=subscription.client_instance_id, subscription_id=subscription.subscription_id,
                terminating=terminating, compression_type=0, metrics=metrics,
            )  # fmt: skip
            assert client.ask(push, 0).error_code == error
        first, line = path.read_text().splitlines()  # what cannot be read is not appended
    assert first == "{}"
    assert json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["name"] == "a.total"
    (resource,) = Parse(line, MetricsData()).resource_metrics
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert attributes["client_instance_id"] == uuid_text(subscription.client_instance_id)
    assert (attributes["client_id"], attributes["group_id"]) == (CLIENT_ID, "readers")
    (point,) = resource.scope_metrics[0].metrics[0].sum.data_points
    assert point.as_int == 3


def test_a_file_that_cannot_be_opened_is_named_at_the_start(tmp_path):
    with pytest.raises(ConfigError, match=r"barnabas\.metrics\.clients\.file is '.*', but must be a file .*: Is a dir"):
        Broker(barnabas_metrics_listener="127.0.0.1:0", barnabas_metrics_clients_file=str(tmp_path)).start()


def test_a_full_disk_is_a_warning_once_a_minute(caplog):
    times = iter((0.0, 0.0, 59.0, 60.0, 60.0))  # a warning reads the clock twice
    instance = Instance(bytes(16), {"client_id": "teller"}, ("*",), 1000, 1)
    with FileIO("/dev/full", "ab") as full:
        file = PushedFile(full, lambda: next(times))
        for _ in range(3):
            file.receive(Pushed(instance, payload(("a", 1, None, 0))))
    assert [each.getMessage() for each in caplog.records] == [
        "Cannot append metrics of clients to /dev/full: No space left on device"
    ] * 2


class ShortOnce(FileIO):
    """A file whose disk has room for 10 bytes at its first write."""

    has_room = False

    def write(self, line):
        line, self.has_room = line if self.has_room else line[:10], True
        return super().write(line)


def test_a_push_after_a_torn_line_has_a_line_of_its_own(tmp_path, caplog):
    path = tmp_path / "clients.jsonl"
    path.write_bytes(b'{"torn')  # by an earlier broker
    pushed = Pushed(Instance(bytes(16), {"client_id": "teller"}, ("*",), 1000, 1), payload(("a", 1, None, 0)))
    with ShortOnce(path, "ab+") as written:
        file = PushedFile(written, lambda: 0.0)
        for _ in range(3):
            file.receive(pushed)
    line = line_of(pushed)
    assert path.read_bytes() == b'{"torn\n' + line[:9] + b"\n" + line + line
    assert [each.getMessage() for each in caplog.records] == [
        f"Cannot append metrics of clients to {path}: 10 of {len(line) + 1} bytes were written"
    ]
