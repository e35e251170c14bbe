"""Faults leave no partition to a broker whose disk has lost records, since Kafka guarantees nothing then."""

from random import Random
from types import SimpleNamespace as Of

from tests.simulation.faults import Faults


class Cluster:
    """Three brokers with one partition, whose metadata do not know yet that a broker is down."""

    def __init__(self, *replicas):
        self.later = []
        self.network = Of()
        self.loop = Of(call_later=lambda seconds, then: self.later.append((seconds, then)))
        self.broker_ids = [1, 2, 3]
        self.nodes = {each: Of(server=Of()) for each in self.broker_ids}
        partition = Of(replicas=replicas, isr=replicas)
        self.image = Of(topics_by_id={b"": Of(partitions={0: partition})})

    def brokers(self):
        return {each: Of(image=self.image) for each, node in self.nodes.items() if node.server is not None}

    def faults(self):
        return Faults(self, [], {}, votes=None)


def test_the_other_replica_is_not_cut_off():
    cluster = Cluster(1, 2)
    faults = cluster.faults()
    assert faults.may_forget(2)
    faults.forgets(2)
    cluster.nodes[2].server = None
    assert faults.cut_off(1) is None
    assert faults.cut_off(3) is not None


def test_of_two_other_replicas_one_is_cut_off_at_a_time():
    cluster = Cluster(1, 2, 3)
    faults = cluster.faults()
    faults.forgets(2)
    cluster.nodes[2].server = None
    undo = faults.cut_off(1)
    assert faults.cut_off(3) is None
    assert faults.cut_off(1) is not None
    undo()
    assert faults.cut_off(3) is None
    cluster.nodes[2].server = Of()
    assert faults.cut_off(3) is not None


def test_a_broker_that_is_down_counts_as_cut_off():
    cluster = Cluster(1, 2, 3)
    faults = cluster.faults()
    faults.forgets(2)
    cluster.nodes[3].server = None
    assert faults.cut_off(1) is None
    cluster.nodes[3].server = Of()
    assert faults.cut_off(1) is not None


def test_no_disk_forgets_while_another_node_is_cut_off():
    faults = Cluster(1, 2, 3).faults()
    undo = faults.cut_off(1)
    assert faults.may_forget(1)
    assert not faults.may_forget(2)
    undo()
    assert faults.may_forget(2)


def test_no_disk_forgets_while_late_heartbeats_are_on_their_way():
    cluster = Cluster(1, 2, 3)
    faults = cluster.faults()
    undo = faults.delays(Of(), Random(1))
    assert not faults.may_forget(2)
    undo()
    ((seconds, then),) = cluster.later
    assert seconds == cluster.network.late_s
    assert not faults.may_forget(2)
    then()
    assert faults.may_forget(2)
