"""GSSAPI with a key distribution center of this test, if installed, and the checks without it."""

import contextlib
import importlib.util
import random
import shutil
import socket
import sys

import pytest

from barnabas.config.validators import ConfigError
from barnabas.errors import CloseConnection
from barnabas.security.principals import Principal
from barnabas.security.sasl.gssapi import NO_LAYER, from_login
from barnabas.security.sasl.mechanism import AuthenticationRefused

DEFAULT = ["DEFAULT"]
CHANCE = random.SystemRandom()


@pytest.fixture(scope="module")
def realm():
    """A realm with a service and a user."""
    for package in ("gssapi", "k5test"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    if shutil.which("krb5kdc") is None and shutil.which("krb5kdc", path="/usr/sbin") is None:
        pytest.skip("krb5-kdc is not installed")
    import k5test

    with pytest.MonkeyPatch.context() as patch:
        realm = k5test.K5Realm(portbase=free_ports())
        for name, value in realm.env.items():
            patch.setenv(name, value)
        yield realm
        realm.stop()


def free_ports():
    """Returns the first of ten unused ports, outside the range where connections of other tests take theirs."""
    while True:
        first = CHANCE.randrange(10_000, 32_000)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + 10):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


@pytest.fixture
def mechanism(realm):
    return from_login({"keyTab": realm.keytab, "principal": realm.host_princ}, "host", DEFAULT)


def client(realm):
    import gssapi

    service = gssapi.Name(realm.host_princ, gssapi.NameType.kerberos_principal)
    return gssapi.SecurityContext(name=service, usage="initiate", mech=gssapi.MechType.kerberos)


def established(exchange, context):
    """Continues until the server offers its security layers, and returns them."""
    token = context.step()
    while not context.complete:
        answer, result = exchange.evaluate(token)
        assert result is None
        token = context.step(answer) or b""
    answer, result = exchange.evaluate(token)
    assert result is None
    return context.unwrap(answer).message


def test_a_client_with_a_ticket_is_let_in(realm, mechanism):
    exchange, context = mechanism.begin(lambda: 0), client(realm)
    assert established(exchange, context) == b"\1\0\0\0"
    answer, result = exchange.evaluate(context.wrap(b"\1\0\0\0whoever", False).message)
    assert (answer, result.principal, result.expires_at_ms) == (b"", Principal("User", "user"), None)


@pytest.mark.parametrize("choice", [b"", b"\4\0\1\0", b"\1"])
def test_another_layer_is_refused(realm, mechanism, choice):
    exchange, context = mechanism.begin(lambda: 0), client(realm)
    established(exchange, context)
    with pytest.raises(AuthenticationRefused):
        exchange.evaluate(context.wrap(choice, False).message)


def test_no_rule_for_the_principal(realm):
    strict = from_login({"keyTab": realm.keytab}, "host", ["RULE:[2:$1]"])
    exchange, context = strict.begin(lambda: 0), client(realm)
    established(exchange, context)
    with pytest.raises(CloseConnection, match="No rules apply to user@"):
        exchange.evaluate(context.wrap(bytes([NO_LAYER, 0, 0, 0]), False).message)


@pytest.mark.parametrize("token", [b"", b"no ticket", b"\x60\x82" + b"x" * 100_000])
def test_what_is_no_ticket(realm, mechanism, token):
    with pytest.raises(AuthenticationRefused):
        mechanism.begin(lambda: 0).evaluate(token)


def test_an_invalid_wrapped_message(realm, mechanism):
    exchange, context = mechanism.begin(lambda: 0), client(realm)
    established(exchange, context)
    with pytest.raises(AuthenticationRefused):
        exchange.evaluate(b"not wrapped")


def test_a_login_without_a_key(realm, tmp_path):
    with pytest.raises(ConfigError, match="the login of a Kerberos principal"):
        from_login({"keyTab": str(tmp_path / "none"), "principal": realm.host_princ}, "host", DEFAULT)


@pytest.mark.parametrize(("options", "config"), [({}, None), ({"serviceName": "a"}, "b")])
def test_the_service_has_one_name(options, config):
    with pytest.raises(ConfigError, match=r"sasl\.kerberos\.service\.name"):
        from_login(options, config, DEFAULT)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"barnabas\[gssapi\]"):
        from_login({}, "kafka", DEFAULT)
