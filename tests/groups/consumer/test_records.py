"""Records of consumer groups that no scenario has."""

from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.records import in_order
from barnabas.groups.consumer.resolved_regex import ResolvedRegex
from barnabas.wire.messages import group_records as wire


def test_a_whole_group_is_taken_away_in_kafkas_order():
    group = ConsumerGroup("g")
    for member_id in ("a", "b"):
        group.put(Member(member_id))
        group.target[member_id] = {}
    group.resolve("x.*", ResolvedRegex(frozenset(), 1, 1))
    keys = [key for key, value in group.tombstones() if value is None]
    assert [key.record_type for key in keys] == [8, 8, 7, 7, 6, 5, 5, 16, 4, 3]
    assert [key.member_id for key in keys if isinstance(key, wire.ConsumerGroupMemberMetadataKey)] == ["a", "b"]


def test_topics_come_in_the_order_of_kafkas_hash_tables():
    """The order is that of Apache Kafka 4.3.1."""
    ids = [
        bytes.fromhex(each)
        for each in (
            "02565725fd5c4cc9baf635163ca23075",
            "e59db15da3214da390069fa095bba69a",
            "09122a56653843c09c39fee86ce75a6d",
            "5090bed3e58a48ad83bb2422e663bb57",
            "8c304ea0d4534255a25dac957579f4aa",
        )
    ]
    assert list(in_order(reversed(ids))) == ids
