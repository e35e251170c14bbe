"""Registration and unregistration of brokers, and blocks of producer ids."""

import pytest

from barnabas.cluster.controller.commands.nodes import AllocateProducerIds, RegisterController
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import StaleBrokerEpoch
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from tests.registering import FEATURES, heartbeat


def test_a_broker_is_fenced_until_it_is_not(make_cluster):
    cluster = make_cluster(brokers=())
    cluster.register(1)
    assert cluster.image.brokers[1].fenced
    cluster.heartbeat(1)
    assert not cluster.image.brokers[1].fenced
    cluster.heartbeat(1)
    assert cluster.records == []


def test_its_epoch_is_the_offset_of_its_registration(cluster):
    offset = cluster.image.offset
    assert cluster.register(2) == offset + 1 == cluster.image.brokers[2].epoch


def test_a_broker_says_which_features_it_knows(cluster):
    features = cluster.image.brokers[1].features
    assert features["metadata.version"] == (7, 30)
    assert features["kraft.version"] == (0, 1)
    assert features == FEATURES


def test_a_stranger_is_not_unfenced(cluster):
    with pytest.raises(StaleBrokerEpoch):
        cluster.submit(heartbeat(9, 1, metadata_offset=0))


def test_a_broker_that_was_not_fenced_when_it_stopped_cleanly_leads_again_in_a_new_epoch(cluster):
    """Its session has expired, but it is not fenced yet."""
    cluster.create(NewTopic("orders", 1, 1))
    before = cluster.partition("orders")
    cluster.start(1, previous_epoch=cluster.image.brokers[1].epoch)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())
    assert partition.leader_epoch == before.leader_epoch + 2


def test_a_clean_stop_is_written_as_apache_kafka_writes_it(cluster):
    cluster.create(NewTopic("orders", 2, 1))
    epoch = cluster.image.brokers[1].epoch
    cluster.stop(1)
    leaving, first, second, fenced = cluster.records
    assert leaving == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1)
    assert fenced == BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)
    for index, change in enumerate((first, second)):
        assert change == PartitionChangeRecord(
            partition_id=index,
            topic_id=cluster.topic("orders").id,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        )
    cluster.stop(1)
    assert cluster.records == []


def test_after_a_clean_stop_it_leads_again(cluster):
    cluster.create(NewTopic("orders", 1, 1))
    before = cluster.partition("orders")
    cluster.stop(1)
    cluster.start(1, previous_epoch=cluster.image.brokers[1].epoch)
    broker = cluster.image.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown) == (False, False)
    back = cluster.partition("orders")
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())
    assert back.leader_epoch == before.leader_epoch + 2


def test_after_a_clean_stop_without_eligible_leaders_it_leads_again(cluster):
    cluster.apply([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)])
    cluster.create(NewTopic("orders", 1, 1))
    cluster.stop(1)
    left = cluster.partition("orders")
    assert (left.leader, left.isr, left.elr, left.last_known_elr) == (-1, (1,), (), ())
    cluster.start(1, previous_epoch=cluster.image.brokers[1].epoch)
    assert (cluster.partition("orders").leader, cluster.partition("orders").isr) == (1, (1,))


def test_who_stops_hands_on_what_it_leads(make_cluster):
    cluster = make_cluster(brokers=(1, 2, 3))
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2]), (1, [2, 1]), (2, [3, 2])]))
    cluster.stop(1)
    partitions = [cluster.partition("orders", index) for index in range(3)]
    assert [(each.leader, each.isr, each.elr) for each in partitions] == [
        (2, (2,), ()),
        (2, (2,), ()),
        (3, (3, 2), ()),
    ]


def test_after_a_crash_the_last_leader_leads_in_a_new_epoch(cluster):
    cluster.create(NewTopic("orders", 1, 1))
    before = cluster.partition("orders")
    cluster.register(1)
    gone = cluster.partition("orders")
    assert (gone.leader, gone.isr, gone.elr, gone.last_known_elr) == (-1, (), (), (1,))
    cluster.heartbeat(1)
    back = cluster.partition("orders")
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == (1, (1,), (), ())
    assert back.leader_epoch == before.leader_epoch + 2


def test_after_a_crash_others_in_sync_stay_in_sync(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2])]))
    cluster.register(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2,))


def test_without_eligible_leaders_the_last_one_stays_in_sync(cluster):
    cluster.apply([FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0)])
    cluster.create(NewTopic("orders", 1, 1))
    cluster.register(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (1,), ())


def test_a_new_broker_changes_no_partition(cluster):
    cluster.create(NewTopic("orders", 1, 1))
    cluster.start(2)
    assert list(map(type, cluster.records)) == [BrokerRegistrationChangeRecord]
    assert cluster.partition("orders").leader == 1


def test_a_crash_is_written_with_the_registration(cluster):
    cluster.create(NewTopic("orders", 2, 1))
    cluster.register(1)
    assert list(map(type, cluster.records)) == [PartitionChangeRecord, PartitionChangeRecord, RegisterBrokerRecord]


def test_a_controller_is_registered(cluster):
    endpoints = cluster.image.brokers[1].endpoints.values()
    cluster.submit(RegisterController(1, bytes([5]) * 16, endpoints, FEATURES))
    controller = cluster.image.controllers[1]
    assert controller.incarnation_id == bytes([5]) * 16
    assert controller.endpoints == cluster.image.brokers[1].endpoints


def test_producer_ids_come_in_blocks_that_nobody_else_has(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    blocks = [
        cluster.submit(AllocateProducerIds(broker_id, cluster.image.brokers[broker_id].epoch))
        for broker_id in (1, 2, 1)
    ]
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]
    assert cluster.image.next_producer_id == 3000


def test_a_stranger_gets_no_producer_ids(cluster):
    with pytest.raises(StaleBrokerEpoch):
        cluster.submit(AllocateProducerIds(9, 1))
