"""The behaviour of clients in each scenario; docs/how-to/scenarios has a page for each."""

import itertools
import threading

import kafka
import pytest

from barnabas.testing import Broker, Cluster

from .clients import OFFSET, PATIENCE_S, TOPIC, AioKafka, Failed, Options


def servers(broker, client, **options):
    return broker.client_settings(client.settings_name, **options)


def values(broker):
    return [record.value for record in broker.records(TOPIC)]


def requests(broker, api):
    return [request.error for request in broker.requests(api)]


def test_the_leader_moves_in_mid_batch(broker, client):
    broker.record_requests()
    with broker.faults.leader_moves(TOPIC) as scenario:
        client.send(servers(broker, client), Options())
    assert scenario.rules[0].hits == 1
    assert requests(broker, "Produce") == ["NOT_LEADER_OR_FOLLOWER", None]
    assert values(broker) == [b"tea"]


def test_the_coordinator_moves(broker, client):
    broker.record_requests()
    with broker.faults.coordinator_moves("g") as scenario:
        assert client.commit(servers(broker, client)) == OFFSET
    assert scenario.hits == 2
    assert requests(broker, "OffsetCommit") == ["NOT_COORDINATOR", None]


def test_the_producer_is_fenced(broker, client):
    with broker.faults.producer_fenced("tx") as scenario, pytest.raises(Failed, match=r"(?i)fenced"):
        client.send(servers(broker, client), Options(transactional_id="tx"))
    assert scenario.hits == 1
    assert [record.value for record in broker.records(TOPIC, committed=True)] == []


@pytest.mark.parametrize("scenario", ["disk_full", "too_few_replicas"])
def test_nothing_can_be_appended_for_a_time(broker, client, scenario):
    with getattr(broker.faults, scenario)(TOPIC) as failing:
        sending = threading.Thread(target=client.send, args=(servers(broker, client), Options()))
        sending.start()
        failing.wait_for_hits(2)
        assert values(broker) == []
    sending.join(PATIENCE_S)
    assert values(broker) == [b"tea"]


GIVEN_UP = {"kafka-python": "KafkaTimeoutError", "confluent-kafka": "_MSG_TIMED_OUT", "Java": "TimeoutException"}


@pytest.mark.parametrize(
    ("scenario", "error"), [("disk_full", "KafkaStorage"), ("too_few_replicas", "NotEnoughReplicas")]
)
def test_nothing_can_be_appended_for_too_long(broker, client, scenario, error):
    """They raise an error after the delivery timeout, or the last error; aiokafka after the request timeout."""
    with getattr(broker.faults, scenario)(TOPIC) as failing:
        for delivery_timeout_ms in (400, 1600, 6400):  # until there is time for several requests on a busy machine
            before = failing.hits
            options = Options(request_timeout_ms=delivery_timeout_ms * 3 // 4, delivery_timeout_ms=delivery_timeout_ms)
            with pytest.raises(Failed) as caught:
                client.send(servers(broker, client), options)
            assert caught.value.name in (GIVEN_UP.get(client.name), f"{error}Error", f"{error}Exception")
            assert values(broker) == []
            if failing.hits > before + 2:
                return
    pytest.fail(f"{failing.hits - before} requests")


@pytest.mark.parametrize(("idempotent", "times"), [(False, 2), (True, 1)])
def test_a_lost_answer_is_a_duplicate_without_idempotence(broker, client, idempotent, times):
    with broker.faults.answer_lost(TOPIC) as scenario:
        client.send(servers(broker, client), Options(idempotent=idempotent))
    assert scenario.hits == 1
    assert values(broker) == [b"tea"] * times


def test_a_slow_consumer_is_evicted(broker, client):
    """A member's commit gets the same error as that of these consumers, which assign themselves."""
    with broker.faults.slow_consumer_evicted("g") as scenario, pytest.raises(Failed, match=r"(?i)commit|member"):
        client.commit(servers(broker, client))
    assert scenario.rules[0].hits == 1
    assert client.commit(servers(broker, client)) == OFFSET


def test_a_quota_is_exceeded(broker, client):
    with broker.faults.quota_exceeded("writer", throttle_ms=50) as scenario:
        client.send(servers(broker, client), Options())
    assert scenario.rules[0].hits == 1
    assert values(broker) == [b"tea"]


def test_a_topic_above_the_quota_is_not_created(broker, client):
    """In versions of CreateTopics before 6, which two clients use, the topic is created (KIP-599)."""
    broker.record_requests()
    with broker.faults.quota_exceeded("writer", throttle_ms=50):
        if client.name in ("kafka-python", "Java"):
            with pytest.raises(Failed, match=r"(?i)quota|throttl|TimeoutException"):
                client.create(servers(broker, client), "u")
        else:
            client.create(servers(broker, client), "u")
    (version,) = {request.version for request in broker.requests("CreateTopics")}
    assert broker.topics() == ([TOPIC] if version >= 6 else [TOPIC, "u"])
    assert (version >= 6) == (client.name in ("kafka-python", "Java"))


@pytest.fixture(scope="module")
def with_users():
    with Broker(users={"alice": "secret"}) as broker:
        yield broker


def test_an_authentication_expires(with_users, client):
    broker = with_users
    broker.reset()
    broker.create_topic(TOPIC)
    scenarios = []

    def expire():
        scenarios.append(broker.faults.authentication_expires("User:alice"))

    client.send(servers(broker, client, user="alice"), Options(connected=expire))
    assert scenarios[0].hits == 1
    assert values(broker) == [b"tea"]


def test_the_network_between_client_and_broker_is_cut(broker, client):
    cuts = []

    def cut():
        cuts.append(broker.faults.network_cut("writer"))
        threading.Thread(target=mend).start()

    def mend():
        cuts[0].wait_for_hits(1)
        cuts[0].lift()

    options = Options(request_timeout_ms=1000, connected=cut)
    if isinstance(client, AioKafka):  # its batches expire after the request timeout
        with pytest.raises(Failed, match="RequestTimedOutError"):
            client.send(servers(broker, client), options)
        assert values(broker) == []
    else:
        client.send(servers(broker, client), options)
        assert values(broker) == [b"tea"]
    assert cuts[0].hits >= 1


# ---------------------------------------------------------------- clusters


@pytest.fixture(scope="module")
def shared_cluster():
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    shared_cluster.faults.clear()
    return shared_cluster


numbers = itertools.count()


def bootstrap(cluster, client):
    name = "bootstrap_servers" if client.settings_name in ("kafka-python", "aiokafka") else "bootstrap.servers"
    return {name: cluster.bootstrap_servers}


def count(cluster, topic):
    consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        partition = kafka.TopicPartition(topic, 0)
        return consumer.end_offsets([partition])[partition]
    finally:
        consumer.close()


def test_all_brokers_restart_one_by_one(cluster, client):
    """A record is sent while each broker is down, among them the leader of its partition."""
    topic = f"rolling-{next(numbers)}"
    cluster.create_topic(topic)
    leaders = []

    def send(node):
        leaders.append(cluster.leader(topic))
        client.send(bootstrap(cluster, client), Options(topic=topic, idempotent=True))

    cluster.rolling_restart(send)
    assert count(cluster, topic) == 3
    assert all(leader != node for leader, node in zip(leaders, cluster.node_ids, strict=True))


def test_the_network_between_a_client_and_one_broker_is_cut(cluster, client):
    """The leader moves away from a broker that the client cannot reach: the record is sent to another one."""
    topic = f"cut-{next(numbers)}"
    cluster.create_topic(topic)
    leader = cluster.leader(topic)
    other = next(node for node in cluster.node_ids if node != leader)
    cuts = []

    def cut():
        cuts.append(cluster.faults.network_cut("writer", node=leader))
        threading.Thread(target=move).start()

    def move():
        cuts[0].wait_for_hits(1)
        cluster.move_leader(topic, 0, other)

    options = Options(topic=topic, request_timeout_ms=1000, connected=cut, warm_up=True)
    try:
        if isinstance(client, AioKafka):
            with pytest.raises(Failed, match="RequestTimedOutError"):
                client.send(bootstrap(cluster, client), options)
        else:
            client.send(bootstrap(cluster, client), options)
    finally:
        cuts[0].lift()
    assert count(cluster, topic) == (1 if isinstance(client, AioKafka) else 2)
