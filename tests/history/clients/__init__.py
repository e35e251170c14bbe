"""The clients of random operations, with a common interface; by name in `CLIENTS`."""

from collections.abc import Callable
from typing import NamedTuple

from tests.history.clients.base import Consumer, Producer

NEWER = "confluent-kafka-848"
"""The client whose groups are of the consumer protocol (KIP-848)."""


class Client(NamedTuple):
    """Creates this client's producers (bootstrap, transactional id or None) and consumers."""

    producer: Callable[..., Producer]
    consumer: Callable[..., Consumer]


def client(name: str) -> Client:
    """Returns the client of this name, and imports its library."""
    if name == "confluent-kafka":
        from tests.history.clients import confluent_kafka as module
    elif name == NEWER:
        from tests.history.clients import confluent_kafka

        return Client(confluent_kafka.Producer, confluent_kafka.NewerConsumer)
    elif name == "kafka-python":
        from tests.history.clients import kafka_python as module
    elif name == "aiokafka":
        from tests.history.clients import aiokafka as module
    elif name in ("raw-v1", "raw-v2"):
        from tests.history.clients import raw

        return Client(raw.V1Producer if name == "raw-v1" else raw.V2Producer, raw.Consumer)
    else:
        raise ValueError(f"no client is called {name}")
    return Client(module.Producer, module.Consumer)


__all__ = ["NEWER", "Client", "Consumer", "Producer", "client"]
