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


def send(cluster, topic, value, **settings):
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "retry_backoff_ms": 20, **settings}
    with KafkaProducer(**settings) as producer:
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
    with pytest.raises(ImpossibleRule, match="there are 1, 2, 3"):
        cluster.faults.add(node=9, delay=1)
    with pytest.raises(ImpossibleRule, match="line 2"):
        cluster.faults.script("* delay=0.001\nNope delay=1")
    assert cluster.faults.rules(1) == ()


def test_a_script_whose_rules_name_one_another(cluster):
    cluster.create_topic("other")
    leader = cluster.leader("other")
    failing, found = cluster.faults.script(
        f"Produce node={leader} first=2 topic=other error=NOT_LEADER_OR_FOLLOWER\nMetadata after=1 delay=0.001"
    )
    send(cluster, "other", b"tea")
    assert failing.hits == 2
    send(cluster, "other", b"milk")  # by another producer, which needs the topic's metadata
    found.wait_for_hits(1)


def test_requests_are_seen_at_all_brokers_or_at_one(cluster):
    cluster.create_topic("seen")
    leader = cluster.leader("seen")
    other = next(node for node in cluster.node_ids if node != leader)
    with (
        cluster.expect("Produce", client_id="writer", node=leader, times=1) as expected,
        cluster.expect("Produce", client_id="writer", node=other, times=0),
    ):
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, client_id="writer")
        producer.send("seen", b"tea").get(30)
        connected = {each.node for each in cluster.connections() if each.client_software_name == "kafka-python"}
        producer.close()
    assert leader in connected
    assert [request.node for request in expected.requests] == [leader]
    cluster.stop(leader)
    cluster.start(leader)
    cluster.wait_in_sync("seen")
    with cluster.expect("Produce", client_id="second"):
        send(cluster, "seen", b"milk", client_id="second")
