"""Formats counters and state for Prometheus, by ``prometheus_client``.

Knows nothing of HTTP.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric

from barnabas.errors import KafkaError
from barnabas.faults.naming import api_name
from barnabas.faults.naming import error_name as name_of
from barnabas.metrics.counting import Counting
from barnabas.metrics.counts import BUCKETS, FIRST_BUCKET_S, ApiCounts, Times
from barnabas.metrics.declared import COUNTER, HISTOGRAM, METRICS
from barnabas.metrics.samples import Sample

QUANTILES = (0.5, 0.75, 0.95, 0.99, 0.999)
BOUNDS = [f"{FIRST_BUCKET_S * 2**index:.10g}" for index in range(BUCKETS - 1)] + ["+Inf"]

_REQUEST, _TOPIC = "kafka_network_requestmetrics_", "kafka_server_brokertopicmetrics_"

TOPIC_COUNTS = {
    "messagesin": "messages_in",
    "bytesin": "bytes_in",
    "bytesout": "bytes_out",
    "totalproducerequests": "batches",
    "failedproducerequests": "failed_batches",
    "failedfetchrequests": "failed_fetches",
}
"""By metric, the attribute of :class:`barnabas.metrics.counts.TopicCounts`."""

REQUEST_TIMES = {
    "totaltimems": "total",
    "requestqueuetimems": "queue",
    "localtimems": "local",
    "remotetimems": "remote",
    "responsesendtimems": "send",
}
"""By metric, the attribute of :class:`barnabas.metrics.counts.ApiCounts`."""

Versions = dict[int, ApiCounts]
"""The counts of an API, by version."""

CLIENT_COUNTS = {"requests": "requests", "seconds": "seconds", "bytesin": "bytes_in", "bytesout": "bytes_out"}
"""By metric, the attribute of :class:`barnabas.metrics.counts.ClientCounts`."""

ACKNOWLEDGED = {0: "Gap", 1: "Accept", 2: "Release", 3: "Reject", 4: "Renew"}


class Collector:
    """The collector of all metrics of one node.

    :param samples: yields the samples of the node's state
    """

    def __init__(self, counting: Counting, samples: Callable[[], Iterable[Sample]]) -> None:
        self._counting = counting
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        """Yields each declared metric that has samples."""
        by_name: dict[str, list[Sample]] = defaultdict(list)
        for samples in (self._counted(), self._samples()):
            for sample in samples:
                by_name[sample.name].append(sample)
        for declared in METRICS:
            if declared.kind == HISTOGRAM:
                yield self._times(Metric(declared.name, declared.help, declared.kind))
            elif declared.name in by_name:
                metric = Metric(declared.name, declared.help, declared.kind)
                for sample in by_name[declared.name]:
                    labels = dict(zip(declared.labels, sample.labels, strict=False))
                    if sample.quantile:
                        labels["quantile"] = sample.quantile
                    suffix = "_total" if declared.kind == COUNTER else sample.suffix
                    metric.add_sample(declared.name + suffix, labels, sample.value)
                yield metric

    def _counted(self) -> Iterator[Sample]:
        for name, versions in self._apis():
            yield from requests(name, versions)
        for client_id, client in self._counting.clients.items():
            for metric, attribute in CLIENT_COUNTS.items():
                yield Sample("barnabas_client_" + metric, getattr(client, attribute), (client_id,))
        for kind, count in self._counting.acknowledged.items():
            name = ACKNOWLEDGED.get(kind, str(kind))
            yield Sample("kafka_server_sharegroupmetrics_recordacknowledgements", count, (name,))
        self._counting.read_all()
        topics = self._counting.topics
        for metric, attribute in TOPIC_COUNTS.items():
            values = {name: getattr(counts, attribute) for name, counts in topics.items()}
            yield Sample(_TOPIC + metric, sum(values.values()))
            for name, value in values.items():
                yield Sample(_TOPIC + metric, value, (name,))
        yield Sample(_TOPIC + "replicationbytesout", self._counting.replication_bytes_out)

    def _apis(self) -> Iterator[tuple[str, Versions]]:
        """Yields the name of each API, and its counts by version."""
        by_key: dict[int, Versions] = defaultdict(dict)
        for (api_key, version), counts in self._counting.apis.items():
            by_key[api_key][version] = counts
        for api_key, versions in by_key.items():
            yield api_name(api_key), versions

    def _times(self, metric: Metric) -> Metric:
        for name, versions in self._apis():
            seen, total = 0, Times().add_all(counts.total for counts in versions.values())
            for bound, count in zip(BOUNDS, total.buckets, strict=True):
                seen += count
                metric.add_sample(metric.name + "_bucket", {"request": name, "le": bound}, seen)
            metric.add_sample(metric.name + "_count", {"request": name}, seen)
            metric.add_sample(metric.name + "_sum", {"request": name}, total.total_s)
        return metric


def requests(name: str, versions: Versions) -> Iterator[Sample]:
    """Yields the samples of the requests of an API."""
    answered = failed = closed = 0
    errors: Counter[int] = Counter()
    for version, counts in versions.items():
        yield Sample(_REQUEST + "requests", counts.requests - counts.closed, (name, str(version)))
        answered += counts.requests - counts.closed
        failed += counts.failed
        closed += counts.closed
        errors.update(counts.errors)
    yield Sample(_REQUEST + "errors", answered - failed, (name, error_name(0)))
    for code, count in errors.items():
        yield Sample(_REQUEST + "errors", count, (name, error_name(code)))
    yield Sample(_REQUEST + "failed", failed, (name,))
    yield Sample(_REQUEST + "closed", closed, (name,))
    for metric, attribute in REQUEST_TIMES.items():
        times = Times().add_all(getattr(counts, attribute) for counts in versions.values())
        yield from summary(_REQUEST + metric, times, (name,))


def summary(name: str, times: Times, labels: tuple[str, ...]) -> Iterator[Sample]:
    """Yields the samples of a summary, in milliseconds. Quantiles cover the time since the start, and are upper bounds
    of buckets.
    """
    count = times.count
    if count:
        for quantile in QUANTILES:
            yield Sample(name, times.quantile(quantile) * 1000, labels, quantile=str(quantile))
    yield Sample(name, count, labels, suffix="_count")
    yield Sample(name, times.total_s * 1000, labels, suffix="_sum")


def error_name(code: int) -> str:
    """Returns Kafka's name of an error code: NONE, NOT_LEADER_OR_FOLLOWER."""
    kind = KafkaError.by_code.get(code)
    return "NONE" if code == 0 else str(code) if kind is None else name_of(kind)


def new_registry(*collectors: Any) -> CollectorRegistry:
    """Returns the registry with the metrics of the collectors, of the process and of Python."""
    registry = CollectorRegistry(auto_describe=False)
    for each in collectors:
        registry.register(each)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
