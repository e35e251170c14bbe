"""What the broker and its topics are told to do: Kafka's own names, defaults and sources.

Knows nothing of the broker that goes by it.
"""

from barnabas.config.broker import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.topic import TopicConfig
from barnabas.config.validators import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Endpoint", "TopicConfig"]
