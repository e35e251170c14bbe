"""The configs of the broker, topics and groups: Kafka's names, defaults and sources.

Knows nothing of the broker that uses them.
"""

from barnabas.config.broker import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.topic import TopicConfig
from barnabas.config.validators import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Endpoint", "TopicConfig"]
