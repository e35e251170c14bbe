"""Groups that change their kind while they are read: classic and consumer members in one group (KIP-848).

Knows nothing of requests, sockets or logs.
"""
