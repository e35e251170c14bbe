"""Record batches as columns: Arrow in, batches out, and back, at a cost per batch rather than per record.

Knows nothing of Spark, of connections or of the broker; a batch is bytes to it, as it is to ``barnabas.records``.
"""
