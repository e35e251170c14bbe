"""The clients behind one interface, so that tests of all clients are written once.

A factory for each, by name. Adapters know the client's library, and nothing of any broker.
"""

from collections.abc import Callable, Mapping

from compat_tests.adapters.aiokafka import AiokafkaClient
from compat_tests.adapters.base import (
    Client,
    Consumer,
    Fenced,
    OffsetOutOfRange,
    Place,
    Producer,
    Record,
    Refused,
    Transactional,
)
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.adapters.kafka_python import KafkaPythonClient

CLIENTS: Mapping[str, Callable[[str], Client]] = {
    "aiokafka": AiokafkaClient,
    "confluent_kafka": ConfluentClient,
    "kafka_python": KafkaPythonClient,
}

__all__ = [
    "CLIENTS",
    "Client",
    "Consumer",
    "Fenced",
    "OffsetOutOfRange",
    "Place",
    "Producer",
    "Record",
    "Refused",
    "Transactional",
]
