"""The records of share groups (KIP-932): which are acquired, which are done, and the coordinator that stores that.

Knows nothing of the members of a group, nor of requests and files.
"""
