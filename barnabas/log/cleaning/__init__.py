"""Compaction: a partition's closed segments written anew with the latest record of each key.

Must not decide which log is cleaned, nor put the new files in place of the old ones.
"""
