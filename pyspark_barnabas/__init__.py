"""The entry point for Spark, which imports top-level packages called ``pyspark_*`` and uses their ``DefaultSource``.

Knows nothing of the source itself.
"""

from barnabas.pipelines.source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
