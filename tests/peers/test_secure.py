"""Requests to a node over TLS and SASL, by each mechanism, over real sockets."""

import asyncio
import importlib.util
import shutil
from contextlib import contextmanager
from functools import partial
from random import Random
from types import SimpleNamespace

import pytest

from barnabas.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.validators import ConfigError
from barnabas.errors import NetworkException
from barnabas.peers.network import NetworkPeers
from barnabas.peers.secure import SecureConnect
from barnabas.testing import Broker
from barnabas.testing.certificates import Authority
from barnabas.wire.messages.metadata import MetadataRequest

MODULE = "org.apache.kafka.common.security"
MECHANISM = "sasl.mechanism.inter.broker.protocol"
METADATA = MetadataRequest(topics=None)


@pytest.fixture(scope="module")
def authority():
    return Authority()


def stores(authority, own):
    """The stores of a node."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": own.key,
        "ssl.keystore.certificate.chain": own.certificate,
        **trusts(authority),
    }


def trusts(authority):
    return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate}


def jaas(protocol, mechanism, module, options=""):
    name = f"listener.name.{protocol.lower()}.{mechanism.lower()}.sasl.jaas.config"
    return {name: f"{MODULE}.{module} required {options};"}


def asks(protocol, port, configs, *, times=1, host="127.0.0.1", after_each=lambda: None, scheduler=None):
    """Sends requests to the node at that port. Returns the error, or None, and the connections.

    :param scheduler: for the ends of sessions
    """

    async def test():
        loop = asyncio.get_running_loop()
        config = BrokerConfig({"listeners": "PLAINTEXT://:0", **configs})
        timing = {"cluster_clock": SystemClock(), "cluster_scheduler": loop, "scheduler": scheduler or loop}
        node = SimpleNamespace(node_id=1, config=config, **timing, random=Random(0))
        connect = SecureConnect(node, protocol, protocol, MECHANISM)
        peers = NetworkPeers(node, lambda node_id: Endpoint(protocol, host, port, protocol), connect)
        for _ in range(times):
            answered = loop.create_future()
            peers.send(2, METADATA, lambda *answer: answered.set_result(answer))  # noqa: B023
            response, error = await asyncio.wait_for(answered, 30)
            if error is not None:
                break
            assert response.cluster_id
            after_each()
        connections = [lane._connection for lane in peers._lanes.values()]
        peers.close()
        await asyncio.sleep(0)
        return error, connections

    return asyncio.run(test())


def broker_with(protocol, configs):
    return Broker({"listeners": f"{protocol}://127.0.0.1:0", "security.inter.broker.protocol": protocol, **configs})


@contextmanager
def listening(protocol, configs):
    with broker_with(protocol, configs) as broker:
        yield broker.port


# ------------------------------------------------------------ TLS


def test_tls_with_certificates_on_both_sides(authority):
    own = authority.for_hosts("127.0.0.1")
    configs = {**stores(authority, own), "ssl.client.auth": "required"}
    with listening("SSL", configs) as port:
        assert asks("SSL", port, configs, times=3)[0] is None


def test_the_listeners_own_stores_go_first(authority):
    configs = stores(authority, authority.for_hosts("127.0.0.1"))
    of_listener = {f"listener.name.ssl.{name}": value for name, value in trusts(authority).items()}
    with listening("SSL", configs) as port:
        assert asks("SSL", port, {**of_listener, **trusts(Authority())})[0] is None


def test_a_node_that_is_not_trusted(authority, caplog):
    configs = stores(authority, authority.for_hosts("127.0.0.1"))
    with listening("SSL", configs) as port:
        error, _ = asks("SSL", port, trusts(Authority()))
        assert isinstance(error, NetworkException)
    assert "certificate verify failed" in caplog.text


def test_the_name_of_a_node_is_checked_unless_configured_otherwise(authority):
    configs = stores(authority, authority.for_hosts("another.example"))
    with listening("SSL", configs) as port:
        assert isinstance(asks("SSL", port, trusts(authority))[0], NetworkException)
        unchecked = {**trusts(authority), "ssl.endpoint.identification.algorithm": ""}
        assert asks("SSL", port, unchecked)[0] is None


def test_no_certificate_where_one_is_required(authority):
    configs = {**stores(authority, authority.for_hosts("127.0.0.1")), "ssl.client.auth": "required"}
    with listening("SSL", configs) as port:
        assert isinstance(asks("SSL", port, trusts(authority))[0], NetworkException)


# ------------------------------------------------------------ SASL

USER = 'username="admin" password="secret, of = all"'
LOGIN_MODULES = {
    "PLAIN": ("plain.PlainLoginModule", USER),
    "SCRAM-SHA-256": ("scram.ScramLoginModule", USER),
    "SCRAM-SHA-512": ("scram.ScramLoginModule", USER),
}


@pytest.fixture(scope="module", params=[False, True], ids=["SASL_PLAINTEXT", "SASL_SSL"])
def secured(request):
    with Broker(users={"admin": "secret, of = all"}, tls=request.param) as broker:
        yield broker


def of_client(broker, mechanism, module, options):
    found = {MECHANISM: mechanism, **jaas(broker.security.protocol, mechanism, module, options)}
    return {**found, **(trusts(broker.security._authority) if broker.security.tls else {})}


@pytest.mark.parametrize("mechanism", LOGIN_MODULES)
def test_mechanisms(secured, mechanism):
    configs = of_client(secured, mechanism, *LOGIN_MODULES[mechanism])
    assert asks(secured.security.protocol, secured.port, configs, times=2)[0] is None


@pytest.mark.parametrize("mechanism", LOGIN_MODULES)
def test_a_wrong_password(secured, mechanism, caplog):
    configs = of_client(secured, mechanism, LOGIN_MODULES[mechanism][0], 'username="admin" password="wrong"')
    error, _ = asks(secured.security.protocol, secured.port, configs)
    assert isinstance(error, NetworkException)
    assert "Authentication failed" in caplog.text
    assert "wrong" not in caplog.text


def test_a_mechanism_that_is_not_enabled_there(secured, caplog):
    configs = of_client(secured, "OAUTHBEARER", "oauthbearer.OAuthBearerLoginModule", "")
    assert isinstance(asks(secured.security.protocol, secured.port, configs)[0], NetworkException)
    assert "OAUTHBEARER is not enabled there, but PLAIN" in caplog.text


@pytest.mark.parametrize(
    "configs",
    [
        {MECHANISM: "PLAIN"},  # no login module
        {MECHANISM: "PLAIN", **jaas("SASL_PLAINTEXT", "PLAIN", "plain.PlainLoginModule", 'user_a="b"')},
        {MECHANISM: "DIGEST-MD5"},
    ],
)
def test_configs_that_no_login_can_be_made_of(configs):
    with pytest.raises(ConfigError) as refused:
        asks("SASL_PLAINTEXT", 1, configs)
    assert "user_a" not in str(refused.value)


def oauthbearer(options="", *, max_reauth_ms=0):
    module = "oauthbearer.OAuthBearerLoginModule"
    prefix = "listener.name.sasl_plaintext.oauthbearer"
    handler = f"{MODULE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        MECHANISM: "OAUTHBEARER",
        f"{prefix}.sasl.server.callback.handler.class": handler,
        f"{prefix}.connections.max.reauth.ms": max_reauth_ms,
        **jaas("SASL_PLAINTEXT", "OAUTHBEARER", module, options),
    }


CLAIMS = 'unsecuredLoginStringClaim_sub="admin"'


def texts(configs):
    return {name: str(value) for name, value in configs.items()}


def test_oauthbearer_without_signatures():
    configs = texts(oauthbearer(CLAIMS))
    with listening("SASL_PLAINTEXT", configs) as port:
        assert asks("SASL_PLAINTEXT", port, configs)[0] is None


def test_oauthbearer_with_a_token_in_a_file(tmp_path):
    import time

    from barnabas.security.login.oauth_tokens import unsecured_token

    file = tmp_path / "token"
    file.write_text(unsecured_token({"unsecuredLoginStringClaim_sub": "admin"}, time.time()).text)
    server = texts(oauthbearer(CLAIMS))
    client = {**server, "listener.name.sasl_plaintext.sasl.oauthbearer.token.endpoint.url": file.as_uri()}
    with listening("SASL_PLAINTEXT", server) as port:
        assert asks("SASL_PLAINTEXT", port, client)[0] is None
        file.unlink()
        assert isinstance(asks("SASL_PLAINTEXT", port, client)[0], NetworkException)


def test_an_oauthbearer_token_that_is_refused(caplog):
    server = texts(oauthbearer(CLAIMS))
    with listening("SASL_PLAINTEXT", server) as port:
        client = texts(oauthbearer(CLAIMS + ' unsecuredLoginLifetimeSeconds="-10"'))
        assert isinstance(asks("SASL_PLAINTEXT", port, client)[0], NetworkException)
    assert "invalid_token" in caplog.text


class Sessions:
    """A scheduler of re-authentications, which begin when the test says so."""

    def __init__(self):
        self.delays = []
        self.renew = lambda: None

    def call_later(self, delay, callback, *args):
        self.delays.append(delay)
        self.renew = partial(callback, *args)


@pytest.mark.parametrize("is_prolonged", [True, False])
def test_a_session_is_prolonged_on_the_same_connection(is_prolonged):
    configs = texts(oauthbearer(CLAIMS, max_reauth_ms=60_000))
    sessions = Sessions()

    def later():
        broker.clock.advance(seconds=40)
        if is_prolonged:
            sessions.renew()

    with broker_with("SASL_PLAINTEXT", configs) as broker:
        options = {"times": 4, "after_each": later, "scheduler": sessions}
        error, connections = asks("SASL_PLAINTEXT", broker.port, configs, **options)
    if is_prolonged:
        assert error is None
        assert len(connections) == 1
        assert len(sessions.delays) == 4, "one login and three renewals"
    else:
        assert isinstance(error, NetworkException)
    assert all(60 * 0.85 <= delay <= 60 * 0.95 for delay in sessions.delays)


def test_gssapi():
    for package in ("gssapi", "k5test"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")
    if shutil.which("krb5kdc") is None and shutil.which("krb5kdc", path="/usr/sbin") is None:
        pytest.skip("krb5-kdc is not installed")
    import k5test

    realm = k5test.K5Realm()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in realm.env.items():
            patch.setenv(name, value)
        module = f'com.sun.security.auth.module.Krb5LoginModule required keyTab="{realm.keytab}" serviceName="host";'
        configs = {
            "sasl.enabled.mechanisms": "GSSAPI",
            MECHANISM: "GSSAPI",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": module,
        }
        with listening("SASL_PLAINTEXT", configs) as port:
            assert asks("SASL_PLAINTEXT", port, configs, host=realm.hostname)[0] is None
    realm.stop()
