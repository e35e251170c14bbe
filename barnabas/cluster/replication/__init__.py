"""The partitions of this node: appends, acknowledgements, watermarks, and replication from and to other nodes.

Knows nothing of requests.
"""
