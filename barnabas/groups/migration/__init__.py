"""Online migration (KIP-848): groups that change between the classic and the consumer protocol while they have members.

Knows nothing of requests, sockets or logs.
"""
