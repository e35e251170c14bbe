"""The metadata image: the committed state of the cluster, its deltas and its snapshots.

Knows nothing of who writes the metadata log.
"""
