"""The client of a cluster, against a broker in this process."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from barnabas.errors import InvalidTopicException, NetworkException, UnknownTopicOrPartition
from barnabas.pipelines.client import EARLIEST, LATEST
from barnabas.pipelines.client.cluster import Cluster, TopicPartition
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.testing import Broker

FIRST = TopicPartition("orders", 0)


def settings(bootstrap: str, **said: str) -> ClientSettings:
    return ClientSettings.parse(
        {"bootstrap.servers": bootstrap, **{name.replace("_", "."): value for name, value in said.items()}}
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", partitions=3)
        broker.create_topic("others", partitions=1)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        for number in range(5):
            producer.send("orders", b"%d" % number, partition=0, timestamp_ms=1_000 * number)
        producer.close()
        yield broker


@pytest.fixture
def cluster(broker: Broker) -> Iterator[Cluster]:
    made = Cluster(settings(broker.bootstrap_servers))
    yield made
    made.close()


def test_topics_and_partitions(cluster: Cluster) -> None:
    assert cluster.partitions("orders") == [0, 1, 2]
    of_others = {"soon", "grows"}  # the broker is shared
    assert set(cluster.topics()) - of_others == {"orders", "others"}
    assert cluster.topics("ot.*") == cluster.topics("ther") == ["others"]
    assert cluster.topics("^ther") == cluster.topics("ther$") == []
    assert cluster.topic_id("orders") not in (None, cluster.topic_id("others"))
    assert cluster.describe(["orders", "missing"]).keys() == {"orders"}
    assert cluster.leader(FIRST) >= 0


def test_what_does_not_exist_is_named(cluster: Cluster) -> None:
    with pytest.raises(UnknownTopicOrPartition, match=r"topic missing does not exist at .*check its name"):
        cluster.partitions("missing")
    with pytest.raises(UnknownTopicOrPartition, match="topic orders has no partition 7, only 0 to 2"):
        cluster.leader(TopicPartition("orders", 7))
    with pytest.raises(InvalidTopicException, match="'an order'"):
        cluster.partitions("an order")


def test_a_topic_that_is_being_made_is_waited_for(broker: Broker, cluster: Cluster) -> None:
    later = threading.Timer(0.3, lambda: broker.create_topic("soon", partitions=2))
    later.start()
    assert cluster.partitions("soon") == [0, 1]
    later.join()


def test_a_partition_that_was_added_is_found(broker: Broker, cluster: Cluster) -> None:
    broker.create_topic("grows", partitions=1)
    assert cluster.partitions("grows") == [0]
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.create_partitions({"grows": 2})
    assert cluster.leader(TopicPartition("grows", 1)) >= 0


def test_offsets(cluster: Cluster) -> None:
    second = TopicPartition("orders", 1)
    ends = cluster.list_offsets({FIRST: LATEST, second: EARLIEST}, committed=True)
    assert (ends[FIRST].offset, ends[second].offset) == (5, 0)
    assert cluster.list_offsets({FIRST: 1_500, second: 1_500})[FIRST][:2] == (2, 2_000)
    assert cluster.list_offsets({FIRST: 9_000})[FIRST].offset == -1
    assert cluster.list_offsets({}) == {}


def test_a_leader_that_has_moved_is_looked_for_again(cluster: Cluster) -> None:
    known = cluster.describe(["orders"])["orders"]
    cluster._topics["orders"] = known._replace(leaders=dict.fromkeys(known.leaders, 99))
    assert cluster.list_offsets({FIRST: LATEST})[FIRST].offset == 5
    cluster._topics["orders"] = known._replace(leaders=dict.fromkeys(known.leaders, -1))
    assert cluster.leader(FIRST) == known.leaders[0]


def test_commits_of_a_group_without_members(cluster: Cluster) -> None:
    assert cluster.committed("readers", [FIRST]) == {}
    cluster.commit("readers", {FIRST: 3, TopicPartition("orders", 1): 0}, "batch 7")
    cluster.commit("readers", {})
    found = cluster.committed("readers")
    assert {part: (kept.offset, kept.metadata) for part, kept in found.items()} == {
        FIRST: (3, "batch 7"),
        TopicPartition("orders", 1): (0, "batch 7"),
    }
    assert cluster.committed("readers", [FIRST]).keys() == {FIRST}
    assert cluster.committed("readers", []) == {}


def test_one_is_kept_for_a_process_and_settings(broker: Broker) -> None:
    one, other = settings(broker.bootstrap_servers), settings(broker.bootstrap_servers, client_id="other")
    kept = Cluster.of(one)
    assert Cluster.of(settings(broker.bootstrap_servers)) is kept
    assert Cluster.of(other) is not kept
    kept.close()
    assert Cluster.of(one) is not kept
    for made in (one, other):
        Cluster.of(made).close()


def test_threads_take_turns(cluster: Cluster) -> None:
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: cluster.list_offsets({FIRST: LATEST})[FIRST].offset, range(40)))
    assert ends == [5] * 40


def test_a_child_has_connections_of_its_own_and_leaves_its_parent_s_alone(broker: Broker) -> None:
    kept = Cluster.of(settings(broker.bootstrap_servers))
    assert kept.partitions("orders") == [0, 1, 2]
    child = os.fork()
    if child == 0:  # pytest must not continue here
        status = 1
        try:
            mine = Cluster.of(settings(broker.bootstrap_servers))
            if mine is not kept and mine.list_offsets({FIRST: LATEST})[FIRST].offset == 5:
                mine.close()
                status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    connections = dict(kept._connections._conns)
    assert kept.list_offsets({FIRST: LATEST})[FIRST].offset == 5
    assert dict(kept._connections._conns) == connections, "a connection had to be made anew"
    kept.close()


def test_nobody_there(refusing: int) -> None:
    cluster = Cluster(settings(f"127.0.0.1:{refusing}", default_api_timeout_ms="300"))
    began = time.monotonic()
    with pytest.raises(NetworkException, match=r"no broker of 127.0.0.1:\d+ answered within 0.3 s.*nothing listens"):
        cluster.topics()
    assert time.monotonic() - began < 10
    cluster.close()


@pytest.fixture
def refusing() -> Iterator[int]:
    """A port without a listener, which stays reserved."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
