"""The metrics that clients have pushed, kept until a scrape shows them (KIP-714).

Knows nothing of requests. Clients are not trusted with names and values: the number of series is bounded, and names get
a prefix.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import Metric

from barnabas.broker.telemetry import LEAST_EXPIRY_MS, Instance, Pushed
from barnabas.metrics.declared import COUNTER, GAUGE
from barnabas.metrics.otlp import Point, points_of
from barnabas.metrics.samples import Sample

PREFIX: Final = "kafka_client_"
APACHES: Final = "org.apache.kafka."
"""The prefix of all client metrics that Apache Kafka defines. :data:`PREFIX` replaces it."""

MOST_SERIES: Final = 20_000
"""The most series of all clients. Points of further series are dropped: a scrape would block the loop for too long."""

MOST_CHARACTERS: Final = 200
MOST_LABELS: Final = 20

_no_letter = re.compile(r"[^a-zA-Z0-9_]")

Labels = tuple[tuple[str, str], ...]


class Series:
    """One metric with its labels."""

    __slots__ = ("help", "kind", "value")

    def __init__(self, kind: str, help: str) -> None:
        self.kind = kind
        self.help = help
        self.value = 0.0


class Client:
    """The metrics that one client instance has pushed."""

    __slots__ = ("attributes", "expires", "series")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.expires = 0.0
        self.series: dict[tuple[str, Labels], Series] = {}


class PushedMetrics:
    """The metrics of all clients that have pushed lately. A collector of prometheus_client.

    A client that has terminated is shown as long as a silent one: otherwise no scrape would see the last metrics of
    most clients.

    :param now: the monotonic time in seconds
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._clients: dict[bytes, Client] = {}
        self.dropped = 0  #: points that were not kept: of another kind, or of too many series

    def receive(self, pushed: Pushed) -> None:
        """Stores the metrics that a client has pushed. :raises ValueError: they cannot be read"""
        points = list(points_of(pushed.data))
        self._expire()
        instance = pushed.instance
        client = self._clients.get(instance.instance_id)
        if client is None:
            client = self._clients[instance.instance_id] = Client(described(instance))
        client.expires = self._now() + max(LEAST_EXPIRY_MS, 3 * instance.interval_ms) / 1000
        left = MOST_SERIES - sum(len(each.series) for each in self._clients.values())
        for point in points:
            if point is None:
                self.dropped += 1
                continue
            key = name_of(point.name), labels_of(point, client.attributes)
            series = client.series.get(key)
            if series is None:
                if left <= 0:
                    self.dropped += 1
                    continue
                left -= 1
                series = client.series[key] = Series(COUNTER if point.is_sum else GAUGE, point.help[:MOST_CHARACTERS])
            series.value = series.value + point.value if point.is_delta else point.value

    def _expire(self) -> None:
        now = self._now()
        for instance_id in [key for key, client in self._clients.items() if client.expires <= now]:
            del self._clients[instance_id]

    def collect(self) -> Iterator[Metric]:
        """Yields the stored metrics. If clients disagree on the type of a metric, that of the first one counts."""
        self._expire()
        found: dict[str, Metric] = {}
        for client in self._clients.values():
            for (name, labels), series in client.series.items():
                metric = found.get(name)
                if metric is None:
                    metric = found[name] = Metric(name, series.help or "Pushed by clients.", series.kind)
                if metric.type == series.kind:
                    suffix = "_total" if series.kind == COUNTER else ""
                    metric.add_sample(name + suffix, dict(labels), series.value)
        yield from found.values()

    def samples(self) -> Iterator[Sample]:
        """Yields a sample for each client, with its attributes as labels."""
        self._expire()
        yield Sample("barnabas_telemetry_dropped_points", self.dropped)
        for client in self._clients.values():
            yield Sample("barnabas_telemetry_client_info", 1, tuple(client.attributes.values()))


def described(instance: Instance) -> dict[str, str]:
    """Returns the attributes of a client in the order of the labels of barnabas_telemetry_client_info."""
    names = ("client_id", "client_instance_id", "client_software_name", "client_software_version")
    return {name: (instance.attributes.get(name) or "")[:MOST_CHARACTERS] for name in names}


def name_of(name: str) -> str:
    """Returns the name of a metric's family: that of a counter is without ``_total``.

    >>> name_of("org.apache.kafka.producer.record.send.total")
    'kafka_client_producer_record_send'
    """
    plain = _no_letter.sub("_", name.removeprefix(APACHES)[:MOST_CHARACTERS])
    return PREFIX + (plain.removesuffix("_total") or "_")


def labels_of(point: Point, client: dict[str, str]) -> Labels:
    """Returns the labels of a point. The labels that identify the client cannot be overridden by the point."""
    labels = {}
    for name, value in list(point.attributes.items())[:MOST_LABELS]:
        plain = _no_letter.sub("_", name[:MOST_CHARACTERS]).lstrip("_")
        labels[plain if plain[:1].isalpha() else "a_" + plain] = value[:MOST_CHARACTERS]
    for name in ("client_id", "client_instance_id"):
        labels[name] = client[name]
    return tuple(sorted(labels.items()))
