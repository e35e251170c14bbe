"""Partitions as this node hosts them: appending, what is safe, and what fetches wait for.

Knows nothing of requests.
"""
