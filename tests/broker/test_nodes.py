"""Nodes are built on the first use, and again only when a broker has changed."""

import pytest

from barnabas.broker.nodes import Node, Nodes
from barnabas.cluster.image.image import BrokerImage
from barnabas.config.endpoints import Endpoint


def broker(number, *listeners, **fields):
    endpoints = {name: Endpoint(name, f"{name}-{number}", 9092, "PLAINTEXT") for name in listeners}
    return BrokerImage(number, 0, bytes(16), endpoints, **{"fenced": False, **fields})


@pytest.fixture
def cluster():
    """Returns the brokers of the newest image, which a test replaces, as a new image does, with another mapping."""

    class Cluster:
        brokers = {1: broker(1, "IN", "OUT"), 2: broker(2, "IN", rack="r"), 3: broker(3, "IN", fenced=True)}

    return Cluster


@pytest.fixture
def nodes(cluster):
    return Nodes(lambda: cluster.brokers)


def test_the_nodes_of_a_listener(nodes):
    assert nodes.of("OUT") == {1: Node(1, "OUT-1", 9092, None, False)}
    assert nodes.of("IN") == {1: Node(1, "IN-1", 9092, None, False), 2: Node(2, "IN-2", 9092, "r", False)}
    assert list(nodes.of("IN", include_fenced=True)) == [1, 2, 3]
    assert nodes.of("IN", include_fenced=True)[3].is_fenced
    assert nodes.of("nosuch") == {}


def test_a_description_is_made_once(nodes):
    described = []

    def describe(node):
        described.append(node.id)
        return node.host

    assert nodes.described("IN", describe) is nodes.described("IN", describe)
    assert nodes.described("IN", describe) == ["IN-1", "IN-2"]
    assert nodes.described("IN", describe, include_fenced=True) == ["IN-1", "IN-2", "IN-3"]
    assert nodes.described("OUT", describe) == ["OUT-1"]
    assert described == [1, 2, 1, 2, 3, 1]


def test_a_change_is_seen(cluster, nodes):
    assert list(nodes.of("OUT")) == nodes.described("OUT", lambda node: node.id) == [1]
    cluster.brokers = {**cluster.brokers, 3: broker(3, "OUT")}
    assert list(nodes.of("OUT")) == [1, 3]
    assert nodes.described("OUT", int_id) == [1, 3]
    cluster.brokers = {}
    assert nodes.described("OUT", int_id) == []


def int_id(node):
    return node.id
