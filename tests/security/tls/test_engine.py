"""The TLS context of a listener's configs."""

import contextlib
import os
import ssl
import stat
from pathlib import Path

import pytest
import trustme

from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs
from barnabas.config.validators import ConfigError
from barnabas.security.tls.engine import Engine, weaker_than_configured
from tests.security.tls.stores import inline

NAMES = ("127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def configs(authority, common_name="server", **given):
    stores = inline(authority, authority.issue_cert(*NAMES, common_name=common_name, organization_unit_name="x"))
    return ListenerConfigs(
        BrokerConfig({**stores, **{name.replace("_", "."): value for name, value in given.items()}}), "SSL"
    )


def no_file(path):
    raise AssertionError(path)


def engine(authority, **given):
    return Engine(configs(authority, **given), no_file)


def negotiated(engine, authority, **client):
    """Returns the version and cipher that a client and the engine negotiate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    for name, value in client.items():
        if name == "ciphers":
            context.set_ciphers(value)
        else:
            setattr(context, name, value)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        context.wrap_bio(to_client, to_server, server_hostname="localhost"),
        engine.context.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return sides[0].version(), sides[0].cipher()[0]


def test_the_newest_version_is_spoken_and_the_one_before(authority):
    both = engine(authority)
    assert negotiated(both, authority)[0] == "TLSv1.3"
    assert negotiated(both, authority, maximum_version=ssl.TLSVersion.TLSv1_2)[0] == "TLSv1.2"


def test_only_the_enabled_versions(authority):
    old = engine(authority, ssl_enabled_protocols="TLSv1.2")
    assert negotiated(old, authority)[0] == "TLSv1.2"
    new = engine(authority, ssl_enabled_protocols="TLSv1.3")
    with pytest.raises(ssl.SSLError):
        negotiated(new, authority, maximum_version=ssl.TLSVersion.TLSv1_2)


def test_cipher_suites_have_javas_names(authority):
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    chosen = engine(authority, ssl_cipher_suites=suite)
    assert negotiated(chosen, authority) == ("TLSv1.2", "ECDHE-ECDSA-AES256-GCM-SHA384")
    with pytest.raises(ssl.SSLError):
        negotiated(chosen, authority, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
    new = engine(authority, ssl_cipher_suites="TLS_AES_256_GCM_SHA384")
    assert negotiated(new, authority)[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLError):
        negotiated(new, authority, maximum_version=ssl.TLSVersion.TLSv1_2)


def test_what_python_cannot_choose_is_said(authority):
    assert weaker_than_configured(configs(authority)) is None
    assert "TLS 1.3" in weaker_than_configured(configs(authority, ssl_cipher_suites="TLS_AES_256_GCM_SHA384"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl_enabled_protocols", "TLSv1.9"),
        ("ssl_cipher_suites", "TLS_NULL_WITH_NULL_NULL"),
        ("ssl_principal_mapping_rules", "nonsense"),
        ("ssl_keystore_type", "JKS"),
    ],
)
def test_what_stops_the_start(authority, name, value):
    with pytest.raises(ConfigError):
        engine(authority, **{name: value})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_if_they_are_configured(authority):
    ancient = engine(authority, ssl_enabled_protocols="TLSv1.1,TLSv1.3")
    assert ancient.context.minimum_version == ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        negotiated(ancient, authority, maximum_version=ssl.TLSVersion.TLSv1_2)


@pytest.mark.parametrize("has_memory_files", [True, False])
def test_a_key_is_in_no_file_that_others_could_read(authority, monkeypatch, has_memory_files):
    if not has_memory_files:
        monkeypatch.delattr(os, "memfd_create")
    seen = []
    load = ssl.SSLContext.load_cert_chain

    def spy(self, path):
        where = Path(path)
        modes = [] if has_memory_files else [where.stat().st_mode, where.parent.stat().st_mode]
        seen.append((path, [stat.S_IMODE(mode) for mode in modes]))
        load(self, path)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    engine(authority)
    ((path, modes),) = seen
    if has_memory_files:
        assert path.startswith("/proc/self/fd/")
    else:
        assert modes == [0o600, 0o700]
        assert not Path(path).exists()


def test_the_same_stores_are_not_exchanged(authority):
    first = configs(authority)
    now = Engine(first, no_file)
    assert now.exchanged(first) is now
    assert not now.has_other_configs(first)


def test_an_exchange_is_of_the_stores_only(authority):
    now = Engine(configs(authority, ssl_allow_dn_changes="true"), no_file)
    then = now.exchanged(configs(authority, ssl_client_auth="required"))
    assert then is not now
    assert then.context.verify_mode is ssl.CERT_NONE
    again = then.exchanged(configs(authority))
    assert again is not then and again._configs._first is now._configs


def test_what_an_exchange_is_refused_for(authority):
    now = Engine(configs(authority), no_file)
    with pytest.raises(ConfigError, match="Keystore DistinguishedName does not match"):
        now.exchanged(configs(authority, "stranger"))
    bare = Engine(ListenerConfigs(BrokerConfig({}), "SSL"), no_file)
    with pytest.raises(ConfigError, match="Cannot add SSL keystore to an existing listener"):
        bare.exchanged(configs(authority))
    with pytest.raises(ConfigError, match="Cannot remove the SSL keystore"):
        now.exchanged(ListenerConfigs(BrokerConfig({}), "SSL"))


def test_an_inter_broker_listener_trusts_itself(authority):
    Engine(configs(authority), no_file, is_inter_broker=True)
    stranger = trustme.CA().cert_pem.bytes().decode()
    with pytest.raises(ConfigError, match="can't connect to a server SSLEngine"):
        Engine(configs(authority, ssl_truststore_certificates=stranger), no_file, is_inter_broker=True)
