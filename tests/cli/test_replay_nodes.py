"""``barnabas replay`` if the recorded cluster, or the target, has several brokers."""

import threading
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli import main
from barnabas.testing import Broker, Cluster
from tests.cli.proxying import Proxying

PARTITIONS = 6
GROUPS = ("billing", "kitchen", "stock")


def traffic(bootstrap):
    """Records in all partitions, transactions across them, groups that read them, and lists of groups."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    for partition in range(PARTITIONS):
        producer.produce("orders", b"tea", partition=partition)
        assert producer.flush(30) == 0
    for name in ("t-1", "t-2"):
        transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        transactional.init_transactions()
        transactional.begin_transaction()
        for partition in range(PARTITIONS):
            transactional.produce("orders", b"kept", partition=partition)
            transactional.flush(30)
        transactional.commit_transaction()
    for group in GROUPS:
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe(["orders"])
        count = 0
        while count < 3 * PARTITIONS:
            count += sum(not each.error() for each in consumer.consume(3 * PARTITIONS, timeout=1))
        consumer.commit(asynchronous=False)
        consumer.close()
    assert {each.group_id for each in admin.list_consumer_groups().result().valid} == set(GROUPS)


def recorded(bootstrap, file):
    with Proxying(bootstrap, "--record", str(file)) as proxying:
        traffic(proxying.bootstrap_servers)
        proxying.stop()
    return file


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """The recordings by the number of brokers."""
    home = tmp_path_factory.mktemp("recordings")
    with Broker() as broker:
        of_one = recorded(broker.bootstrap_servers, home / "one.jsonl")
    with Cluster(3) as cluster:
        of_three = recorded(cluster.bootstrap_servers.split(",")[0], home / "three.jsonl")
    return {1: of_one, 3: of_three}


@contextmanager
def cluster_of(brokers):
    with Broker() if brokers == 1 else Cluster(brokers) as found:
        yield found


def replay(capsys, file, bootstrap_servers, *arguments):
    bootstrap = bootstrap_servers.split(",")[0]
    code = main(["replay", str(file), "--bootstrap-server", bootstrap, *arguments])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(("before", "now"), [(1, 3), (3, 1), (3, 3), (3, 4)])
def test_each_request_goes_to_its_node(recordings, capsys, before, now):
    with cluster_of(now) as cluster:
        code, printed = replay(capsys, recordings[before], cluster.bootstrap_servers)
    assert printed.splitlines()[1:] == []
    assert code == 0


def test_a_difference_at_one_of_the_nodes(recordings, capsys):
    with Cluster(3) as cluster:
        cluster.faults.add(api="OffsetCommit", group="kitchen", error="GROUP_AUTHORIZATION_FAILED")
        code, printed = replay(capsys, recordings[3], cluster.bootstrap_servers)
    assert code == 1
    lines = printed.splitlines()[:-1]
    assert lines
    assert all("OffsetCommit" in line for line in lines)


def test_what_a_leader_has_not_written_is_not_sent(capsys, tmp_path):
    file = tmp_path / "refused.jsonl"
    with Broker() as broker, Proxying(broker.bootstrap_servers, "--record", str(file)) as proxying:
        rule = broker.faults.add(api="Produce", first=1, error="NOT_LEADER_OR_FOLLOWER")
        producer = Producer({"bootstrap.servers": proxying.bootstrap_servers})
        producer.produce("orders", b"tea")
        assert producer.flush(30) == 0
        proxying.stop()
        assert rule.hits == 1
    with Broker() as broker:
        code, printed = replay(capsys, file, broker.bootstrap_servers)
        assert (code, printed.splitlines()[1:]) == (0, [])
        assert [each.value for each in broker.records("orders")] == [b"tea"]


def produced(bootstrap, *, partitions=3):
    """Records in some partitions, of one Produce where one broker leads them all, and a consumer that reads them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", partitions)])["orders"].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for partition in range(partitions):
        producer.produce("orders", b"tea", partition=partition)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", partition, 0) for partition in range(partitions)])
    count = 0
    while count < partitions:
        count += sum(not each.error() for each in consumer.consume(partitions, timeout=1))
    consumer.close()


@pytest.fixture(scope="module")
def produced_to_one(tmp_path_factory):
    file = tmp_path_factory.mktemp("recordings") / "produced.jsonl"
    with Broker() as broker, Proxying(broker.bootstrap_servers, "--record", str(file)) as proxying:
        produced(proxying.bootstrap_servers)
        proxying.stop()
    return file


@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("api", ["Produce", "Fetch"])
def test_only_what_a_leader_refuses_is_sent_again(produced_to_one, capsys, brokers, api):
    with cluster_of(brokers) as cluster:
        rule = cluster.faults.add(api=api, topic="orders", partition=1, first=1, error="NOT_LEADER_OR_FOLLOWER")
        code, printed = replay(capsys, produced_to_one, cluster.bootstrap_servers)
        assert rule.hits == 1
        assert (code, printed.splitlines()[1:]) == (0, [])
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "count"})
        ends = [consumer.get_watermark_offsets(TopicPartition("orders", each), timeout=30)[1] for each in range(3)]
        consumer.close()
    assert ends == [1, 1, 1]


def test_a_leader_that_moves_in_the_middle(recordings, capsys):
    with Cluster(3) as cluster:
        moved = []
        rule = cluster.faults.add(api="AddPartitionsToTxn", nth=3, delay=0.2)

        def moving():
            rule.wait_for_hits(1, timeout=60)
            leader = cluster.leader("orders", 2)
            cluster.move_leader("orders", 2, next(each for each in cluster.node_ids if each != leader))
            moved.append(leader)

        thread = threading.Thread(target=moving)
        thread.start()
        code, printed = replay(capsys, recordings[3], cluster.bootstrap_servers)
        thread.join()
    assert moved
    assert printed.splitlines()[1:] == []
    assert code == 0
