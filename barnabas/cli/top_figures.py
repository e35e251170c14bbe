"""Computes figures from two scrapes of brokers: rates by topic, client and API, and the current lag of groups.

Knows nothing of HTTP or terminals. The names are those of the reference of metrics.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

LOOP_LAG: Final = "barnabas_loop_lag_seconds"
LAG: Final = "kafka_consumergroup_lag"
BUCKET: Final = "barnabas_request_seconds_bucket"
_TOPIC, _REQUEST = "kafka_server_brokertopicmetrics_", "kafka_network_requestmetrics_"

TOPIC_RATES: Final = {
    "messages_in": _TOPIC + "messagesin_total",
    "bytes_in": _TOPIC + "bytesin_total",
    "bytes_out": _TOPIC + "bytesout_total",
}
CLIENT_RATES: Final = {
    "requests": "barnabas_client_requests_total",
    "bytes_in": "barnabas_client_bytesin_total",
    "bytes_out": "barnabas_client_bytesout_total",
}
REQUEST_RATES: Final = {"requests": _REQUEST + "requests_total", "failed": _REQUEST + "failed_total"}

Labels = frozenset[tuple[str, str]]
Row = dict[str, Any]


class Scrape(NamedTuple):
    """The samples of some brokers at one moment, summed over them."""

    at_s: float
    values: Mapping[str, Mapping[Labels, float]]  #: by name and labels


def summed(at_s: float, texts: Iterable[str]) -> Scrape:
    """Returns the sum of the brokers' samples. :raises ValueError: a text is not in the format of Prometheus"""
    from prometheus_client.parser import text_string_to_metric_families

    values: dict[str, dict[Labels, float]] = defaultdict(dict)
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                of_name, labels = values[sample.name], frozenset(sample.labels.items())
                known = of_name.get(labels, 0.0)
                of_name[labels] = max(known, sample.value) if sample.name == LOOP_LAG else known + sample.value
    return Scrape(at_s, values)


class Between:
    """Two scrapes. A counter that has become smaller was reset, since its broker was restarted."""

    def __init__(self, before: Scrape, after: Scrape) -> None:
        self._before = before
        self._after = after
        self._seconds = max(after.at_s - before.at_s, 1e-9)

    def figures(self) -> Row:
        """Returns all figures; rates are per second."""
        return {
            "seconds": round(self._seconds, 3),
            "brokers": self._of_brokers(),
            "topics": self._rates("topic", TOPIC_RATES, "bytes_in", "bytes_out"),
            "clients": self._rates("client_id", CLIENT_RATES, "requests"),
            "groups": self._groups(),
            "requests": self._requests(),
        }

    def _of_brokers(self) -> Row:
        return {
            "requests": self._rate(REQUEST_RATES["requests"]),
            **{name: self._rate(metric, frozenset()) for name, metric in TOPIC_RATES.items()},
            "connections": int(sum(self._now("kafka_server_socketservermetrics_connection_count").values())),
            "cpu_percent": round(self._rate("process_cpu_seconds_total") * 100, 1),
            "memory_bytes": int(sum(self._now("process_resident_memory_bytes").values())),
            "loop_lag_ms": round(max(self._now(LOOP_LAG).values(), default=0.0) * 1000, 1),
            "under_replicated": int(sum(self._now("kafka_server_replicamanager_underreplicatedpartitions").values())),
        }

    def _now(self, metric: str) -> Mapping[Labels, float]:
        return self._after.values.get(metric, {})

    def _grown(self, metric: str) -> Iterator[tuple[Labels, float]]:
        """Yields the increase of each sample of a counter."""
        before = self._before.values.get(metric, {})
        for labels, value in self._now(metric).items():
            known = before.get(labels, 0.0)
            yield labels, value - known if value >= known else value

    def _rate(self, metric: str, labels: Labels | None = None) -> float:
        """Returns the rate of a counter over all labels, or of the sample with these."""
        grown = sum(value for each, value in self._grown(metric) if labels is None or each == labels)
        return round(grown / self._seconds, 1)

    def _by(self, label: str, metric: str) -> dict[str, float]:
        """Returns the increase of a counter by the value of a label; samples without the label are left out."""
        found: dict[str, float] = defaultdict(float)
        for labels, value in self._grown(metric):
            name = dict(labels).get(label)
            if name is not None:
                found[name] += value
        return found

    def _rates(self, label: str, metrics: Mapping[str, str], *order: str) -> list[Row]:
        """Returns a row for each value of a label with at least one rate that is not 0, the highest rates first."""
        grown = {name: self._by(label, metric) for name, metric in metrics.items()}
        names = {name for values in grown.values() for name, value in values.items() if value}
        rows = [
            {label: name, **{each: round(values.get(name, 0.0) / self._seconds, 1) for each, values in grown.items()}}
            for name in names
        ]
        return sorted(rows, key=lambda row: (-sum(row[each] for each in order), row[label]))

    def _groups(self) -> list[Row]:
        lags: dict[str, float] = defaultdict(float)
        for labels, value in self._now(LAG).items():
            lags[dict(labels)["consumergroup"]] += value
        before: dict[str, float] = defaultdict(float)
        for labels, value in self._before.values.get(LAG, {}).items():
            before[dict(labels)["consumergroup"]] += value
        rows = [{"group": name, "lag": int(lag), "grows": int(lag - before[name])} for name, lag in lags.items()]
        return sorted(rows, key=lambda row: (-row["lag"], row["group"]))

    def _requests(self) -> list[Row]:
        """Returns the APIs with requests since the first scrape, the slowest first."""
        local_s = self._by("request", _REQUEST + "localtimems_sum")
        counts = self._by("request", _REQUEST + "localtimems_count")
        rows = []
        for row in self._rates("request", REQUEST_RATES, "requests"):
            name = row["request"]
            row["handler_ms"] = round(local_s[name] / counts[name], 3) if counts[name] else None
            row["p99_ms"] = self._quantile(name, 0.99)
            rows.append(row)
        return sorted(rows, key=lambda row: (-(row["p99_ms"] or 0), row["request"]))

    def _quantile(self, request: str, part: float) -> float | None:
        """Returns a quantile of the times in milliseconds; None if nothing was timed."""
        buckets = sorted(
            (float(of["le"]), value)
            for labels, value in self._grown(BUCKET)
            if (of := dict(labels))["request"] == request
        )
        if not buckets or not buckets[-1][1]:
            return None
        bounded = [bound for bound, _ in buckets[:-1]]
        index = next(at for at, (_, value) in enumerate(buckets) if value >= part * buckets[-1][1])
        return round(bounded[min(index, len(bounded) - 1)] * 1000, 3)
