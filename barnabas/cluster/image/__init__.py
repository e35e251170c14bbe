"""The metadata image: the committed state of the cluster, its deltas and its snapshots.

Knows nothing of the writer of the metadata log.
"""
