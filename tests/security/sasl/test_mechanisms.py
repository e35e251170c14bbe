"""How the mechanisms of a listener are made from its configs, and which configs stop a start."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.security.sasl.mechanisms import Surroundings, enabled

MODULES = "org.apache.kafka.common.security"
PLAIN = f'{MODULES}.plain.PlainLoginModule required user_alice="secret";'
OTHER = f'{MODULES}.plain.PlainLoginModule required user_bob="hush";'
SCRAM = f"{MODULES}.scram.ScramLoginModule required;"
OWN = "listener.name.inside.plain.sasl.jaas.config"
NAMES = "listener.name.inside.sasl.enabled.mechanisms"


def made(**configs):
    return enabled(ListenerConfigs(BrokerConfig(configs), "INSIDE"), Surroundings(None, bytes))


def lets_in(mechanisms, token):
    return str(mechanisms["PLAIN"].mechanism.begin(lambda: 0).evaluate(token)[1].principal)


def test_mechanisms_in_the_order_of_the_config():
    scram = {f"listener.name.inside.scram-sha-{size}.sasl.jaas.config": SCRAM for size in (256, 512)}
    mechanisms = made(**{NAMES: "SCRAM-SHA-512,PLAIN,SCRAM-SHA-256", OWN: PLAIN}, **scram)
    assert list(mechanisms) == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
    assert [each.mechanism.name for each in mechanisms.values()] == list(mechanisms)
    assert lets_in(mechanisms, b"\0alice\0secret") == "User:alice"


def test_the_login_module_of_the_listener_and_mechanism_goes_first():
    general = {NAMES: "PLAIN", "sasl.jaas.config": OTHER}
    assert lets_in(made(**general), b"\0bob\0hush") == "User:bob"
    assert lets_in(made(**general, **{OWN: PLAIN}), b"\0alice\0secret") == "User:alice"


@pytest.mark.parametrize(
    ("configs", "limit_ms"),
    [
        ({}, 0),
        ({"connections.max.reauth.ms": "7"}, 7),
        ({"connections.max.reauth.ms": "7", "listener.name.inside.connections.max.reauth.ms": "8"}, 8),
        ({"listener.name.inside.plain.connections.max.reauth.ms": "9", "connections.max.reauth.ms": "7"}, 9),
        ({"listener.name.inside.scram-sha-256.connections.max.reauth.ms": "9"}, 0),
    ],
)
def test_sessions_last_as_long_as_the_mechanism_has_it(configs, limit_ms):
    assert made(**{NAMES: "PLAIN", OWN: PLAIN}, **configs)["PLAIN"].max_reauth_ms == limit_ms


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({NAMES: "PLAIN,NOPE", OWN: PLAIN}, "NOPE"),
        ({NAMES: "PLAIN"}, r"listener\.name\.inside\.plain\.sasl\.jaas\.config"),
        ({NAMES: "PLAIN", OWN: PLAIN + SCRAM}, "contains 2 login modules, should be 1 module"),
        ({NAMES: "PLAIN", OWN: PLAIN[:-1]}, "not terminated by semi-colon"),
        ({NAMES: "PLAIN", OWN: PLAIN.replace("required", "needed")}, "Invalid login module control flag 'needed'"),
        ({NAMES: "PLAIN", OWN: PLAIN.replace(MODULES, "x")}, "PlainLoginModule"),
    ],
)
def test_what_stops_a_start(configs, words):
    with pytest.raises(ConfigError, match=words) as error:
        made(**configs)
    assert "secret" not in str(error.value)
