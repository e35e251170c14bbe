"""The checks of ``barnabas check-log``: the files of a data directory, compared with one another.

Knows nothing of options and output. Batches, indexes, snapshots and checkpoints are read here with ``struct``, not with
``barnabas.log``, which wrote them. Only metadata records and transaction markers are decoded by ``barnabas.cluster``
and ``barnabas.records``, after their batches have passed the checks.
"""
