"""Quotas of clients: how much of the broker a user, a client id or an address may use (KIP-13, KIP-219, KIP-599).

Knows nothing of sockets, requests or topics. The time is passed in.
"""
