"""Share groups' records: what became of each that a group was given, and the coordinator that keeps it (KIP-932).

Knows nothing of who is in a group, nor of requests and files.
"""
