"""Planning and copying between two brokers: the mirrored topics and records, each once, with their configs."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.errors import InvalidProducerEpoch, ProducerFenced
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.transactional import Transaction
from barnabas.pipelines.jobs.mirroring import copying
from barnabas.pipelines.jobs.mirroring.administration import alter_configs, create_partitions, topic_configs
from barnabas.pipelines.jobs.mirroring.configs import Changes
from barnabas.pipelines.jobs.mirroring.periodic_sync import PeriodicSync
from barnabas.pipelines.jobs.mirroring.syncs import Place
from barnabas.pipelines.jobs.mirroring.target_state import SyncsReader, markers
from barnabas.pipelines.offsets import DataLoss, StreamOffset
from tests.pipelines.jobs.mirroring.conftest import Pair, read_checkpoint

TEN = [b"%d" % number for number in range(10)]


def test_records_arrive_as_they_are(pair: Pair) -> None:
    pair.source.create_topic("orders", partitions=3, configs={"cleanup.policy": "compact,delete", "retention.ms": -1})
    producer = Producer({"bootstrap.servers": pair.source.bootstrap_servers})
    for number in range(60):
        producer.produce(
            "orders",
            None if number % 7 == 0 else b"v" * (number * 20),
            b"%d" % number,
            partition=number % 3,
            timestamp=1_700_000_000_000 - number,
            headers=[("trace", b"%d" % number), ("trace", None)] if number % 2 else [],
        )
    producer.flush(30)

    _, copied = pair.mirror(pair.spec())

    assert pair.target.topics() == [
        "barnabas-offset-syncs.prague.internal",
        "prague.checkpoints.internal",
        "prague.orders",
    ]
    there = [record._replace(topic="orders") for record in pair.target.records("prague.orders", committed=True)]
    assert there == pair.source.records("orders")
    assert sum(each.records for each in copied) == 60
    assert {each.transactions for each in copied} == {1}


def test_a_second_mirror_goes_on_where_the_first_ended(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    end, _ = pair.mirror(pair.spec())
    pair.send("orders", b"later")
    _, copied = pair.mirror(pair.spec(), end)
    assert [each.records for each in copied] == [1]
    assert pair.values("prague.orders") == [*TEN, b"later"]


def test_a_batch_that_spark_runs_again_finds_nothing_to_do(pair: Pair) -> None:
    """After a kill between the commit of the records and that of the checkpoint."""
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    planner = pair.planner(pair.spec())
    start = planner.initial()
    end = planner.latest(start, None)
    (only,) = planner.ranges(start, end)
    assert copying.copy(pair.spec(), only).records == 10
    assert copying.copy(pair.spec(), only).records == 0

    again = pair.planner(pair.spec())
    assert again.ranges(start, end) == []
    assert pair.values("prague.orders") == TEN


def test_a_lost_checkpoint_doubles_nothing(pair: Pair) -> None:
    pair.source.create_topic("orders", partitions=2)
    pair.send("orders", *TEN, partition=1)
    pair.mirror(pair.spec())
    pair.send("orders", b"later", partition=1)
    _, copied = pair.mirror(pair.spec())
    assert [(each.partition, each.start, each.records) for each in copied] == [(1, 10, 1)]
    assert pair.values("prague.orders") == [*TEN, b"later"]


def test_nor_does_it_when_brokers_have_forgotten_the_markers(pair: Pair) -> None:
    """Brokers expire the offsets of a group that is idle for a week; the offset syncs topic keeps the progress."""
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    end, _ = pair.mirror(spec)
    _, target = pair.clusters(spec)
    admin = target.admin()
    admin.delete_groups([spec.policy.markers_group])
    admin.close()
    assert markers(target, spec.policy, [Place("prague.orders", 0)]) == {}

    assert pair.mirror(spec)[1] == []
    pair.send("orders", b"later")
    assert [each.records for each in pair.mirror(spec, StreamOffset({TopicPartition("orders", 0): 3}, end.ids))[1]] == [
        1
    ]
    assert pair.values("prague.orders") == [*TEN, b"later"]
    found = markers(target, spec.policy, [Place("prague.orders", 0)])
    assert [marker.pieces for marker in found.values()] == [2], "and the pieces are counted on"


def test_long_ranges_are_several_transactions(pair: Pair) -> None:
    pair.source.create_topic("orders")
    for value in TEN:
        pair.send("orders", value * 100)
    spec = pair.spec()
    _, (copied,) = pair.mirror(spec, piece_bytes=1)
    assert copied.records == 10
    assert copied.transactions >= 1
    assert pair.values("prague.orders") == [value * 100 for value in TEN]


def test_only_committed_records_are_mirrored(pair: Pair) -> None:
    pair.source.create_topic("orders")
    producer = Producer({"bootstrap.servers": pair.source.bootstrap_servers, "transactional.id": "shop"})
    producer.init_transactions()
    for number, commit in enumerate([True, False, True]):
        producer.begin_transaction()
        producer.produce("orders", b"%d" % number, partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.begin_transaction()
    producer.produce("orders", b"open", partition=0)
    producer.flush(30)

    end, _ = pair.mirror(pair.spec())
    assert pair.values("prague.orders") == [b"0", b"2"]
    for offset in range(7):
        pair.commit(f"at-{offset}", "orders", offset)
    PeriodicSync(pair.spec()).look()
    assert [pair.committed(f"at-{offset}", "prague.orders") for offset in range(7)] == [0, 1, 1, 1, 1, 2, 2]
    producer.commit_transaction()
    pair.mirror(pair.spec(), end)
    assert pair.values("prague.orders") == [b"0", b"2", b"open"]


def test_a_range_of_markers_only_is_passed_over(pair: Pair) -> None:
    pair.source.create_topic("orders")
    producer = Producer({"bootstrap.servers": pair.source.bootstrap_servers, "transactional.id": "shop"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"taken back", partition=0)
    producer.flush(30)
    producer.abort_transaction()
    end, copied = pair.mirror(pair.spec())
    assert [(each.records, each.transactions) for each in copied] == [(0, 0)]
    assert end.at == {TopicPartition("orders", 0): 2}
    assert pair.values("prague.orders", committed=False) == []


def test_an_owner_from_before_is_fenced(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that Spark has given up, and that still runs, cannot commit records."""
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    planner = pair.planner(spec)
    start = planner.initial()
    (only,) = planner.ranges(start, planner.latest(start, None))
    commit, meanwhile = Transaction.commit, []

    def slow(transaction: Transaction) -> None:
        if not meanwhile:
            meanwhile.append(True)
            assert copying.copy(spec, only).records == 10
            with pytest.raises(ProducerFenced):
                commit(transaction)
            raise ProducerFenced("as it was told")
        commit(transaction)

    monkeypatch.setattr(Transaction, "commit", slow)
    assert copying.copy(spec, only).records == 0, "it looks at the marker again, and leaves it at that"
    assert pair.values("prague.orders") == TEN


def test_what_cannot_go_on_leaves_nothing_open(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    planner = pair.planner(spec)
    start = planner.initial()
    (only,) = planner.ranges(start, planner.latest(start, None))
    read, problems = copying.read, [InvalidProducerEpoch("took too long"), DataLoss("gone")]

    def some(*arguments: Any, **keywords: Any) -> Iterator[Any]:
        yield from read(*arguments, **keywords)
        if problems:
            raise problems.pop(0)

    monkeypatch.setattr(copying, "read", some)
    with pytest.raises(DataLoss, match="gone") as raised:
        copying.copy(spec, only)
    assert raised.value.__notes__ == ["while mirroring orders-0 to prague.orders"]
    pair.send("prague.orders", b"another's", broker=pair.target)
    assert pair.values("prague.orders") == [b"another's"], "no transaction is open before it"
    assert copying.copy(spec, only).records == 10


def test_what_was_begun_and_never_ended_is_taken_back(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    planner = pair.planner(spec)
    start = planner.initial()
    (only,) = planner.ranges(start, planner.latest(start, None))

    def killed(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "commit_offsets", killed)
        with pytest.raises(SystemExit):
            copying.copy(spec, only)
    assert pair.values("prague.orders") == []
    assert copying.copy(spec, only).records == 10
    assert pair.values("prague.orders") == TEN
    assert len(pair.values("prague.orders", committed=False)) == 20


def test_starting_offsets_latest_is_kept(pair: Pair) -> None:
    """Spark requests the initial offset again if the first batch has failed."""
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec(starting_offsets="latest")
    assert pair.planner(spec).initial().at == {TopicPartition("orders", 0): 10}
    pair.send("orders", b"later")
    assert pair.planner(spec).initial().at == {TopicPartition("orders", 0): 10}
    pair.mirror(spec)
    assert pair.values("prague.orders") == [b"later"]


def test_topics_and_partitions_come_while_it_runs(pair: Pair) -> None:
    pair.source.create_topic("orders")
    spec = pair.spec(starting_offsets="latest", topics=("orders|payments",))
    planner = pair.planner(spec)
    start = planner.initial()
    pair.source.create_topic("payments", partitions=2, configs={"max.message.bytes": 5_000_000})
    pair.source.create_topic("stock")
    create_partitions(pair.clusters(spec)[0], "orders", 2)
    pair.send("payments", b"p", partition=1)
    pair.send("orders", b"o", partition=1)
    end = planner.latest(start, None)
    for each in planner.ranges(start, end):
        copying.copy(spec, each)
    assert pair.values("prague.payments") == [b"p"]
    assert pair.values("prague.orders") == [b"o"], "what comes later is mirrored from its first record"
    described = pair.clusters(spec)[1].describe(["prague.orders", "prague.payments", "prague.stock"])
    assert {name: len(topic.leaders) for name, topic in described.items()} == {"prague.orders": 2, "prague.payments": 2}
    assert topic_configs(pair.clusters(spec)[1], ["prague.payments"]) == {
        "prague.payments": {"max.message.bytes": "5000000"}
    }


def test_available_now_goes_no_further_than_what_was_there(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    planner = pair.planner(pair.spec())
    planner.freeze()
    start = planner.initial()
    pair.send("orders", b"later")
    pair.source.create_topic("payments")
    assert planner.latest(start, None).at == {TopicPartition("orders", 0): 10}
    assert planner.latest(start, 4).at == {TopicPartition("orders", 0): 4}
    assert planner.ends().at[TopicPartition("orders", 0)] == 11


def test_a_topic_that_was_deleted_and_made_again(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    end, _ = pair.mirror(pair.spec())
    pair.delete("orders")
    pair.source.create_topic("orders")
    pair.send("orders", b"new")

    with pytest.raises(DataLoss, match=r"orders of prague .* fail_on_data_loss=false"):
        pair.mirror(pair.spec(), end)
    spec = pair.spec(fail_on_data_loss=False)
    end, copied = pair.mirror(spec, end)
    assert [(each.start, each.records) for each in copied] == [(0, 1)]
    assert pair.values("prague.orders") == [*TEN, b"new"]
    assert pair.mirror(spec, end)[1] == []
    assert pair.mirror(spec)[1] == []


def test_a_topic_that_is_gone_is_mirrored_no_more(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.source.create_topic("payments")
    pair.send("orders", *TEN)
    end, _ = pair.mirror(pair.spec())
    pair.delete("orders")
    end, copied = pair.mirror(pair.spec(), end)
    assert copied == []
    assert end.ids.keys() == {"payments"}
    assert pair.values("prague.orders") == TEN


def test_one_that_goes_between_two_looks(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.source.create_topic("payments")
    pair.send("orders", *TEN)
    planner = pair.planner(pair.spec(refresh_seconds=3600))
    end = planner.latest(planner.initial(), None)
    pair.delete("orders")
    assert planner.latest(end, None).at == {TopicPartition("payments", 0): 0}
    pair.source.create_topic("orders")
    pair.send("orders", b"new")
    spec = pair.spec(topics=("orders",))
    planner = pair.planner(spec)
    start = planner.initial()
    pair.delete("orders")
    assert planner.latest(StreamOffset({}), None).at == {}
    pair.source.create_topic("orders")
    pair.send("orders", *TEN[:3])
    end = planner.latest(StreamOffset({}), None)
    assert [(each.start, each.end) for each in planner.ranges(StreamOffset({}), end)] == [(0, 3)]
    assert start.at == {TopicPartition("orders", 0): 0}


def test_a_topic_of_the_target_that_was_deleted_is_mirrored_anew(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    end, _ = pair.mirror(spec, piece_bytes=1)
    pair.delete("prague.orders", target=True)
    _, copied = pair.mirror(spec)
    assert [each.records for each in copied] == [10]
    pair.commit("shop", "orders", 4)
    PeriodicSync(spec).look()
    assert pair.committed("shop", "prague.orders") == 4
    assert pair.mirror(spec, end)[1] == []


def test_a_source_that_ends_before_what_was_mirrored(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipelines.jobs.mirroring.planner.LOOKS_FOR_AN_END", 2)
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    ids = pair.planner(pair.spec()).initial().ids
    far = StreamOffset({TopicPartition("orders", 0): 50}, ids)
    with pytest.raises(DataLoss, match="orders-0 of prague ends at 10, but was mirrored up to 50"):
        pair.planner(pair.spec()).latest(far, None)
    assert pair.planner(pair.spec(fail_on_data_loss=False)).latest(far, None).at == far.at


def test_topics_of_the_target_do_not_come_back(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.target.create_topic("stock")
    pair.send("orders", b"o")
    pair.send("stock", b"s", broker=pair.target)
    back = Pair(pair.target, pair.source)
    for policy in ("default", "identity"):
        forth_spec = pair.spec(policy=policy)
        back_spec = back.spec(policy=policy, source_alias="vienna", target_alias="prague")
        for _ in range(2):
            pair.mirror(forth_spec)
            back.mirror(back_spec)
    assert [name for name in pair.source.topics() if "internal" not in name] == ["orders", "stock", "vienna.stock"]
    assert [name for name in pair.target.topics() if "internal" not in name] == ["orders", "prague.orders", "stock"]
    assert pair.values("orders") == [b"o"]
    assert back.values("stock") == [b"s"]


def test_configs_follow(pair: Pair) -> None:
    pair.source.create_topic("orders", configs={"retention.ms": 5000, "min.insync.replicas": 1})
    spec = pair.spec()
    pair.mirror(spec)
    source, target = pair.clusters(spec)
    assert topic_configs(target, ["prague.orders"]) == {"prague.orders": {"retention.ms": "5000"}}
    alter_configs(source, {"orders": Changes({"cleanup.policy": "compact"}, ("retention.ms",))})
    alter_configs(target, {"prague.orders": Changes({"min.insync.replicas": "1", "segment.ms": "99999"}, ())})
    PeriodicSync(spec).look()
    assert topic_configs(target, ["prague.orders"]) == {
        "prague.orders": {"cleanup.policy": "compact", "min.insync.replicas": "1"}
    }
    alter_configs(source, {"orders": Changes({"retention.ms": "7"}, ())})
    PeriodicSync(pair.spec(sync_configs=False)).look()
    assert "retention.ms" not in topic_configs(target, ["prague.orders"])["prague.orders"]


def test_groups_go_on_at_the_target(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.source.create_topic("aside")
    spec = pair.spec(topics=("orders",), exclude_groups=("other",))
    end = None
    for first in range(0, 30, 10):
        pair.send("orders", *TEN)
        pair.commit(f"at-{first + 4}", "orders", first + 4)
        end, _ = pair.mirror(spec, end)
    pair.commit("at-30", "orders", 30)
    pair.commit("other", "orders", 30)
    pair.commit("at-30", "aside", 0)
    keeper = PeriodicSync(spec)
    keeper.look()
    # the marker of each transaction takes an offset of the target
    expected = {"at-4": 4, "at-14": 15, "at-24": 26, "at-30": 32, "other": None}
    assert {group: pair.committed(group, "prague.orders") for group in expected} == expected
    found = [read_checkpoint(each.key or b"", each.value or b"") for each in _checkpoints(pair)]
    assert {(each.group, each.topic, each.upstream, each.downstream) for each in found} == {
        (f"at-{offset}", "prague.orders", offset, expected[f"at-{offset}"]) for offset in (4, 14, 24, 30)
    }

    pair.commit("at-30", "orders", 3)
    pair.commit("at-4", "orders", 14)
    keeper.look()
    assert pair.committed("at-30", "prague.orders") == 32, "never backwards"
    assert pair.committed("at-4", "prague.orders") == 15
    assert len(_checkpoints(pair)) == len(found) + 2


def _checkpoints(pair: Pair) -> list[Any]:
    return pair.target.records("prague.checkpoints.internal", committed=True)


def test_a_group_with_members_at_the_target_is_left_alone(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec()
    pair.mirror(spec)
    pair.commit("shop", "orders", 7)
    consumer = Consumer(
        {
            "bootstrap.servers": pair.target.bootstrap_servers,
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        consumer.subscribe(["prague.orders"])
        message = consumer.poll(20)
        assert message is not None
        PeriodicSync(spec).look()
        assert pair.committed("shop", "prague.orders") is None
    finally:
        consumer.close()
    PeriodicSync(spec).look()
    assert pair.committed("shop", "prague.orders") == 7


def test_one_cluster_is_no_mirror(pair: Pair) -> None:
    spec = dataclasses.replace(pair.spec(), target=pair.spec().source)
    with pytest.raises(ValueError, match="source and target are the same cluster"):
        PeriodicSync(spec).check()
    PeriodicSync(pair.spec()).check()


def test_how_far_it_is_can_be_seen(pair: Pair) -> None:
    pair.source.create_topic("orders")
    pair.send("orders", *TEN)
    spec = pair.spec(commit_group="to-vienna")
    end, _ = pair.mirror(spec)
    pair.planner(spec).show(end)
    pair.planner(pair.spec()).show(StreamOffset({TopicPartition("orders", 0): 3}))
    committed = pair.clusters(spec)[0].committed("to-vienna")
    assert {place: found.offset for place, found in committed.items()} == {TopicPartition("orders", 0): 10}
    PeriodicSync(spec).look()
    assert pair.committed("to-vienna", "prague.orders") is None, "that group is not one to go on at the target"


def test_what_the_target_keeps_is_little(pair: Pair) -> None:
    pair.source.create_topic("orders")
    spec = pair.spec()
    end = None
    for number in range(12):
        pair.send("orders", b"%d" % number)
        end, _ = pair.mirror(spec, end)
    syncs = SyncsReader(pair.clusters(spec)[1], spec.policy.syncs_topic).refresh()
    history = syncs.get(Place("prague.orders", 0))
    assert history is not None
    assert [history.translate(offset) for offset in range(13)] == [number * 2 for number in range(12)] + [23]
