"""Compaction: rewrites a partition's closed segments with the latest record of each key.

Knows nothing of which log is cleaned, nor of how the new files replace the old ones.
"""
