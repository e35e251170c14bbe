"""The broker: puts metadata, logs, partitions, groups and sessions together, and is what a handler asks.

Knows nothing of requests, responses or sockets.
"""

from barnabas.broker.broker import Broker

__all__ = ["Broker"]
