"""Where Spark finds the data source: it imports top-level packages called ``pyspark_*`` and asks for ``DefaultSource``.

Knows nothing of what the source does.
"""

from barnabas.pipelines.source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
