"""Registrations and heartbeats as commands of the controller, with defaults for most fields."""

from barnabas.cluster.controller.commands.nodes import BrokerHeartbeat, RegisterBroker
from barnabas.cluster.features import SUPPORTED
from barnabas.config.endpoints import Endpoint

CLUSTER_ID = "a-cluster-of-the-tests"
FEATURES = {name: (feature.first, feature.last) for name, feature in sorted(SUPPORTED.items())}


def directory_id(broker_id):
    return bytes([broker_id]) * 16


def endpoint(port, name="PLAINTEXT"):
    return Endpoint(name, "127.0.0.1", port, "PLAINTEXT")


def registration(broker_id, incarnation=1, endpoints=None, **fields):
    """Returns the registration of a broker with one directory."""
    return RegisterBroker(
        broker_id,
        incarnation.to_bytes(16, "big"),
        endpoints or [endpoint(9091 + broker_id)],
        **{"log_dirs": [directory_id(broker_id)], "features": FEATURES, "cluster_id": CLUSTER_ID, **fields},
    )


def heartbeat(broker_id, epoch, **fields):
    return BrokerHeartbeat(broker_id, epoch, **fields)
