"""The settings of one listener; prefixes and fallbacks as in Apache Kafka's ``valuesWithPrefixOverride``."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError

OWN = "listener.name.inside.ssl.client.auth"


def test_the_listeners_own_value_goes_before_that_of_all():
    settings = BrokerConfig({"ssl.client.auth": "none", OWN: "required"})
    assert ListenerConfigs(settings, "INSIDE")["ssl.client.auth"] == "required"
    assert ListenerConfigs(settings, "OUTSIDE")["ssl.client.auth"] == "none"
    assert ListenerConfigs(settings, "INSIDE").is_own("ssl.client.auth")
    assert not ListenerConfigs(settings, "OUTSIDE").is_own("ssl.client.auth")


def test_a_plain_value_set_at_run_time_is_below_the_listeners_own():
    settings = BrokerConfig({OWN: "required"}, {}, {"ssl.client.auth": "requested"})
    assert ListenerConfigs(settings, "INSIDE")["ssl.client.auth"] == "required"
    assert ListenerConfigs(settings, "OUTSIDE")["ssl.client.auth"] == "requested"


def test_layers():
    settings = BrokerConfig({OWN: "none"}, {OWN: "requested"}, {OWN: "required"})
    assert ListenerConfigs(settings, "INSIDE")["ssl.client.auth"] == "required"
    assert dict(ListenerConfigs(settings, "INSIDE").own()) == {"ssl.client.auth": "required"}


def test_a_mechanisms_values():
    settings = BrokerConfig({
        "sasl.jaas.config": "ignored, as in Kafka",
        "connections.max.reauth.ms": "5000",
        "listener.name.inside.connections.max.reauth.ms": "4000",
        "listener.name.inside.scram-sha-256.connections.max.reauth.ms": "3000",
        "listener.name.inside.plain.sasl.jaas.config": "Module required;",
    })  # fmt: skip
    inside, outside = ListenerConfigs(settings, "INSIDE"), ListenerConfigs(settings, "OUTSIDE")
    assert inside.of_mechanism("SCRAM-SHA-256", "connections.max.reauth.ms") == 3000
    assert inside.of_mechanism("PLAIN", "connections.max.reauth.ms") == 4000
    assert outside.of_mechanism("PLAIN", "connections.max.reauth.ms") == 5000
    assert inside.of_mechanism("PLAIN", "sasl.jaas.config") == "Module required;"
    assert inside.of_mechanism("OAUTHBEARER", "sasl.jaas.config") is None
    assert outside.of_mechanism("PLAIN", "sasl.jaas.config") is None
    assert inside.is_own("plain.sasl.jaas.config")


def test_a_bad_value_of_a_listener_stops_the_start():
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({"listener.name.plaintext.ssl.client.auth": "maybe"})
    assert caught.value.name == "ssl.client.auth"


def test_an_unknown_name_passes():
    BrokerConfig.from_properties({"listener.name.plaintext.custom.thing": "x"})
