"""Converts record batches to Arrow columns and back, at a cost per batch instead of per record.

Knows nothing of Spark, connections or the broker. A batch is bytes here, as in ``barnabas.records``.
"""
