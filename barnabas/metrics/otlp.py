"""Decodes the points of metrics that a client has pushed (OTLP), by ``opentelemetry-proto``.

Knows nothing of clients, nor of how the points are used. Imported with the first push.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, MetricsData

DELTA = AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA


class Point(NamedTuple):
    """A value of one metric."""

    name: str
    attributes: dict[str, str]  #: attributes of the point, and of the client's resource
    value: float
    is_sum: bool  #: whether it is monotonic
    is_delta: bool  #: whether the value is a delta
    help: str


def points_of(data: bytes) -> Iterator[Point | None]:
    """Yields the points of sums and gauges, the kinds that clients have to push; None for each metric of another kind.

    :raises ValueError: the bytes are not those of a MetricsData
    """
    try:
        decoded = MetricsData.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    for resource in decoded.resource_metrics:
        shared = dict(_texts(resource.resource.attributes))
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                yield from _points(metric, shared)


def _points(metric: Any, shared: dict[str, str]) -> Iterator[Point | None]:
    kind = metric.WhichOneof("data")
    if kind not in ("sum", "gauge"):
        yield None
        return
    found = getattr(metric, kind)
    is_delta = kind == "sum" and found.aggregation_temporality == DELTA
    is_sum = kind == "sum" and found.is_monotonic
    for point in found.data_points:
        value = getattr(point, point.WhichOneof("value") or "as_double")
        yield Point(metric.name, shared | dict(_texts(point.attributes)), value, is_sum, is_delta, metric.description)


def _texts(attributes: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yields attributes that have one value, as texts."""
    for each in attributes:
        kind = each.value.WhichOneof("value")
        if kind == "bool_value":
            yield each.key, str(each.value.bool_value).lower()
        elif kind in ("string_value", "int_value", "double_value"):
            yield each.key, str(getattr(each.value, kind))
