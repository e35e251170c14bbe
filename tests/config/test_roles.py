"""What ``process.roles`` asks of listeners and voters; the messages were read from Apache Kafka 4.3.1."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.validators import InvalidValue

CONTROLLER = {"process.roles": "controller", "listeners": "CONTROLLER://:9093", "controller.quorum.voters": "1@a:9093"}
BROKER = {"process.roles": "broker", "controller.quorum.voters": "2@a:9093"}


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            BROKER | {"controller.quorum.voters": ""},
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
            "controllers or controller.quorum.voters must contain a parseable set of controllers.",
        ),
        (
            BROKER | {"controller.quorum.voters": "1@a:9093"},
            "If process.roles contains just the 'broker' role, the node id 1 must not be included in the set of voters "
            "controller.quorum.voters=Set(1)",
        ),
        (
            BROKER | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration when "
            "running KRaft with just the broker role",
        ),
        (
            CONTROLLER | {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"},
            "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
            "process.roles=controller",
        ),
        (
            CONTROLLER | {"controller.quorum.voters": "2@a:9093"},
            "If process.roles contains the 'controller' role, the node id 1 must be included in the set of voters "
            "controller.quorum.voters=Set(2)",
        ),
        (
            {"listeners": "CONTROLLER://:9093"},
            "There must be at least one broker advertised listener. Perhaps all listeners appear in "
            "controller.listener.names?",
        ),
        (
            {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093", "controller.listener.names": "CONTROLLER,OTHER"},
            "controller.listener.names must only contain values appearing in the 'listeners' configuration when "
            "running the KRaft controller role",
        ),
    ],
)
def test_what_stops_the_start(properties, text):
    with pytest.raises(InvalidValue) as caught:
        BrokerConfig.from_properties({"node.id": "1"} | properties)
    assert str(caught.value) == text


def test_a_controller_alone_has_no_listener_for_clients():
    config = BrokerConfig.from_properties(CONTROLLER)
    assert (config.is_controller, config.is_broker) == (True, False)
    assert config.listeners == ()
    assert [endpoint.name for endpoint in config.controller_listeners] == ["CONTROLLER"]


def test_a_broker_alone_knows_its_controllers_by_voters_or_by_addresses():
    for more in (BROKER, {"process.roles": "broker", "controller.quorum.bootstrap.servers": "a:9093"}):
        config = BrokerConfig.from_properties(more)
        assert (config.is_controller, config.is_broker) == (False, True)
        assert [endpoint.name for endpoint in config.listeners] == ["PLAINTEXT"]


def test_a_lone_combined_node_needs_neither_voters_nor_a_listener_of_its_controller():
    config = BrokerConfig.from_properties({})
    assert config.is_broker
    assert config.is_controller
    assert config.controller_listeners == ()
