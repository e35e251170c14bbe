"""Defaults that depend on the node: Kafka's completions, the development profile, and those of a cluster of one node.

Knows nothing of where values come from. Also returns the warnings about configs without an effect.
"""

from collections.abc import Iterator, Mapping

from barnabas.config import authorization
from barnabas.config.bounds import BOUNDED
from barnabas.config.definition import ConfigDef
from barnabas.config.definitions import BROKER, TOPIC
from barnabas.config.settings import Settings
from barnabas.config.validators import ConfigError

#: Defaults on a cluster of one node, which cannot create internal topics with Kafka's (3 replicas, 2 in sync).
SINGLE_NODE: Mapping[str, int] = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}

#: Defaults of ``--dev``: one broker is enough, and joins and deletions have no delay.
DEV = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "group.initial.rebalance.delay.ms": "0",
    # Members of the newer kinds of groups converge by heartbeats: docs/decisions/0010.
    **{f"group.{kind}.heartbeat.interval.ms": "200" for kind in BOUNDED},
    **{f"group.{kind}.min.heartbeat.interval.ms": "100" for kind in BOUNDED},
    **{f"group.{kind}.min.session.timeout.ms": "6000" for kind in BOUNDED},
    **{f"group.{kind}.assignment.interval.ms": "0" for kind in BOUNDED},
    "group.streams.initial.rebalance.delay.ms": "0",
    **{name: str(value) for name, value in SINGLE_NODE.items()},
}

#: Kafka requires these; Barnabas has defaults.
_IDENTITY = {"process.roles": "broker,controller", "controller.listener.names": "CONTROLLER"}
DEFAULT_NODE_ID = "1"


def completed(properties: Mapping[str, str], *, dev: bool) -> dict[str, str]:
    """Returns the properties with the defaults for ids and roles, and those of the development profile."""
    given = {name: text for name, text in properties.items() if (name, text.strip()) != ("broker.id", "-1")}
    node_id = given.get("node.id", given.get("broker.id", DEFAULT_NODE_ID))
    return {**(DEV if dev else {}), **_IDENTITY, "node.id": node_id, "broker.id": node_id, **given}


def notices(properties: Mapping[str, str], values: Settings) -> Iterator[str]:
    """Yields a warning for each property without effect, in the order given."""
    for name in properties:
        config = BROKER.get(name)
        if config is None:
            if not name.startswith("listener.name.") and name not in authorization.OWN_CONFIGS:
                yield _unknown(name)
        elif not config.in_effect and values[name] != config.default:
            yield f"{name} is set, but has no effect in this version of Barnabas"


def topic_notices(topic: str, configs: Mapping[str, str]) -> Iterator[str]:
    """Yields a warning for each config of a topic without effect, in the order given."""
    for name, text in configs.items():
        config = TOPIC.get(name)
        if config is not None and not config.in_effect and not _is_default(config, text):
            yield f"{name} is set for topic {topic}, but has no effect in this version of Barnabas"


def _is_default(config: ConfigDef, text: str) -> bool:
    try:
        return bool(config.parse_set(text) == config.default)
    except ConfigError:
        return False  # other versions may know the value


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, BROKER, n=1, cutoff=0.8)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{name} is not a config of Apache Kafka 4.3, and has no effect{meant}"
