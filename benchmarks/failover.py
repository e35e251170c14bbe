"""The time without acknowledgements after a partition's leader is killed, with the time-outs of ``barnabas cluster``.

Knows nothing of elections. Each of three nodes is a broker and a controller; the one that is killed is the active
controller as well, or is not.
"""

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli.local_cluster.layout import FAILOVER
from benchmarks.cluster import outage
from benchmarks.measure import Row
from benchmarks.quorum import Quorum
from benchmarks.replicas import Patient
from compat_tests.apache_kafka.mixed import BARNABAS, Combined

NODES, KILLS = 3, 5
"""The number of nodes, and of kills of each kind in a round."""

BUDGET_S = 1.0
PATIENCE_S = 30.0


def after_kills(folder: Path, rounds: int) -> Iterator[Row]:
    """From kill -9 of a leader to the first acknowledged record.

    librdkafka looks for the new leader once a second, so its time says little about brokers. The budget is for a
    client that asks all brokers in turn.
    """
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for index in range(rounds):
        with Combined(folder / f"failover-{index}", [BARNABAS] * NODES, FAILOVER) as cluster:
            for number in range(KILLS):
                for controls, gaps in found.items():
                    gaps.append(of_a_leader(cluster, f"killed-{number}-{controls}", controls=controls))
    for controls, gaps in found.items():
        killed = "a leader, the active controller" if controls else "a leader"
        what = f"time-outs of `barnabas cluster`: kill -9 of {killed}, to the first acknowledged record, s"
        (patient, longest), (librdkafka, its_longest) = [
            (statistics.median(each), max(each)) for each in zip(*gaps, strict=True)
        ]
        measured = f"{patient:.2f}, at most {longest:.2f} of {len(gaps)}"
        baseline = f"librdkafka {librdkafka:.2f}, at most {its_longest:.2f}"
        yield Row(what, measured, baseline, None, f"<= {BUDGET_S:.0f}", longest <= BUDGET_S)


def of_a_leader(cluster: Combined, topic: str, *, controls: bool) -> tuple[float, float]:
    """Kills the leader of a new topic, and restarts it; returns the seconds of the patient client and librdkafka."""
    active = Quorum(cluster).active()
    ids = sorted(cluster.brokers, key=lambda node_id: (cluster.brokers[node_id] is active) != controls)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, replica_assignment=[ids])])[topic].result(PATIENCE_S)
    in_sync(admin, topic)
    leader = cluster.brokers[ids[0]]
    patient = Patient([node.port for node in cluster.brokers.values()], topic)
    patient.start()
    try:
        of_librdkafka = outage(cluster.bootstrap, topic, leader)
    finally:
        gap = patient.longest_gap_s()
    leader.start()
    in_sync(admin, topic)
    return gap, of_librdkafka


def in_sync(admin: AdminClient, topic: str) -> None:
    """Returns when all replicas of the topic are in sync."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with contextlib.suppress(KafkaException, KeyError):
            if len(admin.list_topics(topic, timeout=5).topics[topic].partitions[0].isrs) == NODES:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{topic} is not in sync within {PATIENCE_S:.0f} s")
