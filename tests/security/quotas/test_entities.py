"""Which of several quotas holds for a client: Kafka's order of precedence."""

import itertools

import pytest

from barnabas.security.quotas.addresses import numeric_address
from barnabas.security.quotas.entities import Limit, ip_limit_of, limit_of

ALICE, ANYBODY = ("user", True, "alice"), ("user", False, "")
APP, ANY_APP = ("client-id", True, "app"), ("client-id", False, "")

BY_PRECEDENCE = [
    ((APP, ALICE), ("alice", "app")),
    ((ANY_APP, ALICE), ("alice", "app")),
    ((ALICE,), ("alice", "")),
    ((APP, ANYBODY), ("alice", "app")),
    ((ANY_APP, ANYBODY), ("alice", "app")),
    ((ANYBODY,), ("alice", "")),
    ((APP,), ("", "app")),
    ((ANY_APP,), ("", "app")),
]


@pytest.mark.parametrize("stronger, weaker", list(itertools.combinations(range(8), 2)))
def test_the_more_specific_quota_holds(stronger, weaker):
    limits = {BY_PRECEDENCE[weaker][0]: 1.0, BY_PRECEDENCE[stronger][0]: 2.0}
    assert limit_of(limits, "alice", "app") == Limit(2.0, *BY_PRECEDENCE[stronger][1])


def test_the_quotas_of_others_do_not_hold():
    limits = {entity: 1.0 for entity, _ in BY_PRECEDENCE if ANYBODY not in entity and entity != (ANY_APP,)}
    assert limit_of(limits, "bob", "other") is None
    assert limit_of({}, "alice", "app") is None


def test_an_address_has_its_own_quota_or_the_default():
    limits = {(("ip", True, "10.0.0.1"),): 1.0}
    assert ip_limit_of(limits, "10.0.0.1") == 1.0
    assert ip_limit_of(limits, "10.0.0.2") is None
    assert ip_limit_of(limits | {(("ip", False, ""),): 5.0}, "10.0.0.2") == 5.0


@pytest.mark.parametrize(
    "text, address",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("1", "0.0.0.1"),
        ("010.1.2.3", "10.1.2.3"),
        ("10.1.515", "10.1.2.3"),
        ("256.1.1.1", None),
        ("1.2.3.256", None),
        ("1.2.3.4.5", None),
        ("::1", "::1"),
        ("0:0:0::1", "::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("localhost", None),
        ("", None),
        ("1.2.3.4 x", None),
    ],
)
def test_addresses_are_read_as_java_reads_them(text, address):
    assert numeric_address(text) == address
