"""The cluster: the metadata log and its image, the controller, and partitions.

Knows nothing of requests and sockets. A change is a record that was appended to ``__cluster_metadata``, then applied to
the image, then published to listeners; never the other way round.
"""
