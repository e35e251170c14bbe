"""The difference between two images says what the deltas of the records between them say."""

import pytest

from barnabas.cluster.image.difference import difference
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.wire.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

OLD, KEPT, NEW = (bytes([number]) * 16 for number in (1, 2, 3))


def topic(topic_id, name):
    parts = [
        PartitionRecord(
            partition_id=index, topic_id=topic_id, replicas=[1], isr=[1], removing_replicas=[], adding_replicas=[],
            leader=1, leader_epoch=0, partition_epoch=0, directories=[bytes([7]) * 16],
        )
        for index in (0, 1)
    ]  # fmt: skip
    return [TopicRecord(name=name, topic_id=topic_id), *parts]


def acl(number):
    return AccessControlEntryRecord(
        id=bytes([number]) * 16, resource_type=2, resource_name=f"topic-{number}", pattern_type=3,
        principal="User:alice", host="*", operation=3, permission_type=3,
    )  # fmt: skip


def config(name, value):
    return ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value=value)


def quota(user, value, remove=False):
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=user)]
    return ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=value, remove=remove)


BEFORE = [
    FeatureLevelRecord(name="metadata.version", feature_level=29), *topic(OLD, "old"), *topic(KEPT, "kept"),
    acl(1), acl(2),
    config("kept", "1"), quota("alice", 1.0),
]  # fmt: skip

AFTER = {
    "nothing": [],
    "a topic deleted": [RemoveTopicRecord(topic_id=OLD)],
    "a topic made": topic(NEW, "new"),
    "a topic made anew": [RemoveTopicRecord(topic_id=OLD), *topic(NEW, "old")],
    "a partition changed": [PartitionChangeRecord(partition_id=1, topic_id=KEPT, leader=1)],
    "a partition added": [
        PartitionRecord(
            partition_id=2, topic_id=KEPT, replicas=[1], isr=[1], removing_replicas=[], adding_replicas=[], leader=1,
            leader_epoch=0, partition_epoch=0, directories=[bytes([7]) * 16],
        )
    ],
    "configs": [config("kept", None), config("old", "2")],
    "a broker": [
        RegisterBrokerRecord(broker_id=4, broker_epoch=9, incarnation_id=NEW, end_points=[], features=[], rack=None)
    ],
    "a level": [FeatureLevelRecord(name="group.version", feature_level=1)],
    "producer ids": [ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=5000)],
    "ACLs": [acl(3), RemoveAccessControlEntryRecord(id=bytes([1]) * 16)],
    "a credential": [
        UserScramCredentialRecord(
            name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )
    ],
    "quotas": [quota("alice", 0.0, remove=True), quota("bob", 2.0)],
}  # fmt: skip


@pytest.mark.parametrize("what", AFTER)
def test_it_says_what_the_records_say(what):
    before, _ = MetadataImage().apply(BEFORE)
    after, applied = before.apply(AFTER[what])
    found = difference(before, after)
    for name in MetadataDelta.__slots__:
        assert getattr(found, name) == getattr(applied, name), name
    assert repr(difference(after, after)) == repr(MetadataDelta())
