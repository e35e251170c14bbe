"""The broker: combines metadata, logs, partitions, groups and sessions, and provides them to the handlers.

Knows nothing of requests, responses or sockets.
"""

from barnabas.broker.broker import Broker
from barnabas.broker.node import Node

__all__ = ["Broker", "Node"]
