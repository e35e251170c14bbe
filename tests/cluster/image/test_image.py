import pytest

from barnabas.cluster.image.image import NO_LEADER, MetadataImage
from barnabas.wire.messages.metadata_records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

ID, OTHER_ID = bytes([1]) * 16, bytes([2]) * 16
TOPIC, BROKER = 2, 4


def topic(topic_id=ID, name="orders"):
    return TopicRecord(name=name, topic_id=topic_id)


def partition(index=0, topic_id=ID, **fields):
    values = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0} | fields
    return PartitionRecord(
        partition_id=index, topic_id=topic_id, removing_replicas=[], adding_replicas=[],
        directories=[bytes([7]) * 16, bytes([8]) * 16], **values,
    )  # fmt: skip


def change(index=0, **fields):
    return PartitionChangeRecord(partition_id=index, topic_id=ID, **fields)


def config(value, *, kind=TOPIC, name="orders", key="retention.ms"):
    return ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


@pytest.fixture
def image():
    made, _ = MetadataImage().apply([topic(), partition(0), partition(1)], offset=2, epoch=1)
    return made


# ---------------------------------------------------------------- as a whole


def test_it_starts_before_the_first_record():
    assert MetadataImage().offset == -1


def test_an_image_never_changes(image):
    before = (dict(image.topics_by_name), dict(image.topics_by_name["orders"].partitions), dict(image.configs))
    image.apply(
        [topic(OTHER_ID, "others"), partition(2), change(leader=2), config("1"), RemoveTopicRecord(topic_id=ID)]
    )
    assert (image.topics_by_name, image.topics_by_name["orders"].partitions, image.configs) == before


def test_the_next_image_shares_what_did_not_change(image):
    after, _ = image.apply([config("1")])
    assert after.topics_by_name is image.topics_by_name
    assert after.brokers is image.brokers


def test_offset_and_epoch_go_with_the_records(image):
    after, _ = image.apply([NoOpRecord()], offset=3, epoch=2)
    assert (after.offset, after.epoch) == (3, 2)
    after, _ = image.apply([NoOpRecord()])
    assert (after.offset, after.epoch) == (2, 1)


def test_one_batch_is_as_many(image):
    records = [
        config("1"), topic(OTHER_ID, "others"), partition(0, OTHER_ID), change(leader=2), change(1, isr=[1]),
        config("2", name="others"), config(None), RemoveTopicRecord(topic_id=OTHER_ID),
    ]  # fmt: skip
    at_once, _ = image.apply(records)
    one_by_one = image
    for record in records:
        one_by_one, _ = one_by_one.apply([record])
    assert at_once == one_by_one


def test_a_record_about_nothing_is_an_error(image):
    with pytest.raises(KeyError):
        image.apply([RemoveTopicRecord(topic_id=OTHER_ID)])
    with pytest.raises(KeyError):
        image.apply([change(9, leader=1)])


# ---------------------------------------------------------------- topics


def test_a_topic_is_found_by_name_and_by_id(image):
    made = image.topics_by_name["orders"]
    assert made is image.topics_by_id[ID]
    assert sorted(made.partitions) == [0, 1]
    assert image.partition("orders", 1) is made.partitions[1]
    assert image.partition("orders", 2) is None
    assert image.partition("others", 0) is None


def test_the_delta_of_a_new_topic_has_it_whole():
    after, delta = MetadataImage().apply([topic(), partition(0), partition(1)])
    assert delta.new_topics == {ID: after.topics_by_id[ID]}
    assert delta.partitions == {ID: {0, 1}}
    assert not delta.deleted_topics


def test_the_delta_of_a_change_has_the_partition(image):
    _, delta = image.apply([change(1, leader=2)])
    assert (delta.new_topics, delta.partitions) == ({}, {ID: {1}})


def test_a_deleted_topic_takes_its_configs_with_it(image):
    image, _ = image.apply([config("1")])
    after, delta = image.apply([RemoveTopicRecord(topic_id=ID)])
    assert (after.topics_by_id, after.topics_by_name, after.configs) == ({}, {}, {})
    assert delta.deleted_topics == {ID: image.topics_by_id[ID]}
    assert delta.partitions == {}
    assert delta.configs == {(TOPIC, "orders")}


def test_a_topic_that_comes_and_goes_is_in_no_delta():
    after, delta = MetadataImage().apply([topic(), partition(), config("1"), RemoveTopicRecord(topic_id=ID)])
    assert after.topics_by_id == {}
    assert (delta.new_topics, delta.deleted_topics, delta.partitions) == ({}, {}, {})


def test_a_topic_made_again_is_deleted_and_new(image):
    after, delta = image.apply([RemoveTopicRecord(topic_id=ID), topic(OTHER_ID), partition(0, OTHER_ID)])
    assert after.topics_by_name["orders"].id == OTHER_ID
    assert list(delta.deleted_topics) == [ID]
    assert list(delta.new_topics) == [OTHER_ID]


# ---------------------------------------------------------------- partitions


def test_naming_a_leader_raises_its_epoch_even_if_it_is_the_same(image):
    after, _ = image.apply([change(leader=1)])
    assert after.partition("orders", 0)[4:7] == (1, 1, 1)


def test_a_change_of_something_else_raises_the_partition_epoch_alone(image):
    after, _ = image.apply([change(isr=[1])])
    changed = after.partition("orders", 0)
    assert (changed.isr, changed.leader, changed.leader_epoch, changed.partition_epoch) == ((1,), 1, 0, 1)


def test_what_a_change_does_not_name_stays(image):
    before = image.partition("orders", 0)
    after, _ = image.apply([change(leader=NO_LEADER, isr=[], eligible_leader_replicas=[1], last_known_elr=[1])])
    assert after.partition("orders", 0) == before._replace(
        isr=(), leader=NO_LEADER, leader_epoch=1, partition_epoch=1, elr=(1,), last_known_elr=(1,)
    )


def test_replicas_that_stay_keep_their_directories(image):
    after, _ = image.apply([change(replicas=[2, 3], adding_replicas=[3], removing_replicas=[1])])
    changed = after.partition("orders", 0)
    assert changed.directories == (bytes([8]) * 16, bytes(16))
    assert changed.is_reassigning


def test_a_partition_of_an_older_format_has_directories_that_nobody_knows():
    record = partition()
    record.directories = []
    after, _ = MetadataImage().apply([topic(), record])
    assert after.partition("orders", 0).directories == (bytes(16), bytes(16))


@pytest.mark.parametrize("name", ["orders", ""])
def test_eligible_leaders_are_cleared_for_one_topic_or_all(image, name):
    image, _ = image.apply([change(eligible_leader_replicas=[2], last_known_elr=[1])])
    after, delta = image.apply([ClearElrRecord(topic_name=name)])
    cleared = after.partition("orders", 0)
    assert (cleared.elr, cleared.last_known_elr) == ((), ())
    assert cleared.partition_epoch == image.partition("orders", 0).partition_epoch
    assert delta.partitions == {ID: {0}}


# ---------------------------------------------------------------- configs and the rest


def test_configs_are_set_and_unset(image):
    image, delta = image.apply([config("1"), config("x", key="cleanup.policy")])
    assert image.configs_of(TOPIC, "orders") == {"retention.ms": "1", "cleanup.policy": "x"}
    assert delta.configs == {(TOPIC, "orders")}
    image, _ = image.apply([config(None)])
    assert image.configs_of(TOPIC, "orders") == {"cleanup.policy": "x"}
    image, _ = image.apply([config(None, key="cleanup.policy")])
    assert image.configs == {}


@pytest.mark.parametrize("kind", [TOPIC, 16, 32])
def test_a_config_of_an_earlier_release_is_ignored(kind):
    image, delta = MetadataImage().apply([config("3.0", kind=kind, key="message.format.version")])
    assert (dict(image.configs), delta.configs) == ({}, set())


def test_a_brokers_configs_may_be_those_of_its_plugins(image):
    image, _ = image.apply([config("1", kind=4, name="", key="any.plugin")])
    assert image.configs_of(4, "") == {"any.plugin": "1"}


def test_a_fence_goes_up_and_comes_down(make_cluster):
    image = make_cluster(brokers=(1,)).image
    epoch = image.brokers[1].epoch
    assert not image.brokers[1].fenced
    image, delta = image.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=1)])
    assert image.brokers[1].fenced
    assert delta.brokers == {1}
    image, _ = image.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, fenced=-1)])
    assert not image.brokers[1].fenced
    image, _ = image.apply([FenceBrokerRecord(id=1, epoch=epoch)])
    assert image.brokers[1].fenced
    image, _ = image.apply([BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=epoch, in_controlled_shutdown=1)])
    assert image.brokers[1].fenced
    assert image.brokers[1].in_controlled_shutdown
    image, _ = image.apply([UnregisterBrokerRecord(broker_id=1, broker_epoch=epoch)])
    assert image.brokers == {}


def test_a_feature_at_level_0_is_not_finalized():
    image, delta = MetadataImage().apply([FeatureLevelRecord(name="group.version", feature_level=1)])
    assert image.features == {"group.version": 1}
    assert delta.features == {"group.version"}
    image, _ = image.apply([FeatureLevelRecord(name="group.version", feature_level=0)])
    assert image.features == {}


def test_producer_ids_go_on():
    image, delta = MetadataImage().apply([ProducerIdsRecord(broker_id=1, broker_epoch=3, next_producer_id=1000)])
    assert image.next_producer_id == 1000
    assert delta.producer_ids


def quota(remove, name):
    entity = ClientQuotaRecord.EntityData(entity_type="user", entity_name=name)
    return ClientQuotaRecord(entity=[entity], key="producer_byte_rate", value=1.0, remove=remove)


def test_acls_and_quotas_are_kept_until_they_are_removed():
    acl = AccessControlEntryRecord(
        id=ID, resource_type=2, resource_name="orders", pattern_type=3, principal="User:a", host="*", operation=3,
        permission_type=3,
    )  # fmt: skip
    image, delta = MetadataImage().apply([acl, quota(False, "a"), quota(False, ""), quota(False, None)])
    (kept,) = image.acls.values()
    assert (list(image.acls), dict(image.acl_ids), len(image.quotas)) == ([ID], {kept: ID}, 3)
    assert (kept.resource_name, delta.new_acls, len(delta.quotas)) == ("orders", [kept], 3)
    image, delta = image.apply([RemoveAccessControlEntryRecord(id=ID), quota(True, None), quota(True, "a")])
    assert (len(image.acls), len(image.acl_ids)) == (0, 0)
    assert [record.entity[0].entity_name for record in image.quotas.values()] == [""]
    assert (delta.removed_acls, len(delta.quotas)) == ([kept], 2)
