"""What ``barnabas check-log`` looks at: everything in a data directory, against everything else in it.

Knows nothing of options and of printing. Batches, indexes, snapshots and checkpoints are read here, by ``struct``, and
not by ``barnabas.log``, whose work is checked; only what the metadata records and transaction markers say is left to
``barnabas.cluster`` and ``barnabas.records``, once their batches were found good.
"""
