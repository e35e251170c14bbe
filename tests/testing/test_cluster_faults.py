"""Faults of one broker of a cluster, and of all of them."""

import pytest
from kafka import KafkaProducer

from barnabas.faults.naming import ImpossibleRule
from barnabas.testing import Cluster


@pytest.fixture(scope="module")
def shared():
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    shared.faults.clear()
    return shared


def send(cluster, topic, value):
    with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, retry_backoff_ms=20) as producer:
        producer.send(topic, value).get(30)


def test_a_rule_of_one_broker(cluster):
    cluster.create_topic("one")
    leader = cluster.leader("one")
    other = next(node for node in cluster.node_ids if node != leader)
    error = {"api": "Produce", "first": 1, "error": "NOT_LEADER_OR_FOLLOWER"}
    hit, never = cluster.faults.add(node=leader, **error), cluster.faults.add(node=other, **error)
    send(cluster, "one", b"tea")
    hit.wait_for_hits(1)
    assert (hit.hits, never.hits) == (1, 0)
    assert f" broker {leader}: Produce" in cluster.fault_report()
    never.lift()
    assert cluster.faults.rules(other) == ()


def test_a_rule_of_all_brokers_outlives_a_restart(cluster):
    cluster.create_topic("all")
    rule = cluster.faults.add(api="Produce", delay=0.001)
    send(cluster, "all", b"tea")
    rule.wait_for_hits(1)
    for node in cluster.node_ids:
        cluster.stop(node)
        cluster.start(node)
    cluster.isolate(1)
    cluster.heal(1)
    before = rule.hits
    cluster.wait_in_sync("all")
    send(cluster, "all", b"milk")
    assert rule.hits > before
    with pytest.raises(TimeoutError, match=r"hits in 0\.01 s: api=Produce"):
        rule.wait_for_hits(1000, timeout=0.01)
    rule.lift()
    assert cluster.faults.rules(1) == ()


def test_scripts_and_scenarios(cluster):
    first, second = cluster.faults.script("Produce node=2 nth=1 error=NOT_LEADER_OR_FOLLOWER\n* delay=0.001")
    assert cluster.faults.rules(2) == (first, *[rule for rule in second.rules if rule in cluster.faults.rules(2)])
    assert len(cluster.faults.rules(1)) == 1
    cluster.faults.clear()
    with cluster.faults.coordinator_moves("cooks") as scenario:
        assert len(cluster.faults.rules(3)) == 2
    assert (scenario.hits, cluster.faults.rules(3)) == (0, ())
    cluster.faults.seed(3)
    with pytest.raises(ImpossibleRule):
        cluster.faults.add(api="Nope", delay=1)
    with pytest.raises(KeyError):
        cluster.faults.add(node=9, delay=1)
