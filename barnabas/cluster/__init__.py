"""The cluster: the metadata log and its image, the controller, and partitions.

Knows nothing of requests and sockets. A change is appended to ``__cluster_metadata`` as a record, then applied to the
image, then published to listeners, always in this order.
"""
