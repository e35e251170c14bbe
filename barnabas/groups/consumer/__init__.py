"""Consumer groups: the broker says who reads what, member by member (KIP-848).

Knows nothing of requests, sockets or logs.
"""
