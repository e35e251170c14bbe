"""One value of a metric.

Knows nothing of where it comes from.
"""

from typing import NamedTuple


class Sample(NamedTuple):
    """A value of a metric of :mod:`barnabas.metrics.declared`, with the values of its labels in their order.

    With fewer values than the metric has labels, the sample has the first labels only.
    """

    name: str
    value: float
    labels: tuple[str, ...] = ()
    suffix: str = ""  #: of a summary: _count or _sum
    quantile: str = ""  #: of a summary
