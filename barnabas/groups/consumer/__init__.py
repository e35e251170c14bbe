"""Consumer groups (KIP-848): the broker assigns the partitions, and each member moves to its assignment by itself.

Knows nothing of requests, sockets or logs, nor of groups that change their protocol (``migration/``).
"""
