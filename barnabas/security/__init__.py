"""Who a client is, and what it may do: principals, ACLs, mechanisms, quotas.

Knows nothing of sockets, requests or topics.
"""
