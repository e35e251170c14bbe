"""A coordinator's runtime: shards that are elected, loaded and resigned, and the requests to them meanwhile."""

import pytest

from barnabas.coordinators.loading import Loading
from barnabas.deadlines import Deadline
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaStorageError,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    UnknownServerError,
)
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from tests.coordinators.tally import IMAGE, NUMBER, Node
from tests.kinds import kind


@pytest.fixture
def node():
    return Node()


def of_two(**changes):
    """Returns the state of a partition with a follower in sync."""
    return IMAGE._replace(replicas=(1, 2), isr=(1, 2), directories=(bytes(16),) * 2, **changes)


def written(node, index, *numbers):
    """That many batches in the log of a partition, by an earlier leader."""
    node.elect(index)
    node.settle()
    for number in numbers:
        assert node.add(f"{index}:a", number) == [None]
    node.resign(index)


# ---------------------------------------------------------------- elections


def test_a_shard_that_was_not_elected_is_not_here(node):
    assert node.add("0:a", 1) == [NotCoordinator]
    assert node.runtime.shards() == []


def test_an_empty_log_is_loaded_at_once(node):
    node.elect(0)
    assert node.add("0:a", 1) == [None]
    assert node.add("1:a", 1) == [NotCoordinator]
    assert node.sums(0) == {"0:a": 1}


def test_a_log_is_loaded_a_piece_in_a_turn(node):
    written(node, 0, 1, 2, 3)
    node.elect(0)
    for _ in range(3):
        assert node.add("0:a", 10) == [CoordinatorLoadInProgress]
        assert not node.runtime.is_active(0)
        node.turn()
    assert node.runtime.is_active(0)
    assert node.sums(0) == {"0:a": 6}
    assert node.add("0:a", 10) == [None]
    assert node.runtime.shard("0:").replayed == [0, 1, 2]


def test_a_piece_is_no_larger_than_the_buffer(node, monkeypatch):
    sizes = []
    step = Loading.step

    def counted(loading):
        before = len(loading.context.shard.replayed)
        step(loading)
        sizes.append(len(loading.context.shard.replayed) - before)

    monkeypatch.setattr(Loading, "step", counted)
    written(node, 0, *range(10))
    node.elect(0)
    node.settle()
    assert sizes == [1] * 10  # a batch is larger than one byte, and is read all the same


def test_one_is_served_while_another_is_loaded(node):
    written(node, 0, 1, 2)
    node.elect(0, 1)
    assert node.add("1:a", 1) == [None]
    with pytest.raises(CoordinatorLoadInProgress):
        node.runtime.shards()
    node.turn(2)
    assert len(node.runtime.shards()) == 2


def test_at_the_start_all_are_loaded_before_it_returns(node):
    written(node, 0, 1, 2)
    written(node, 1, 3)
    node.partitions[0].leads = node.partitions[1].leads = True
    node.runtime.start({0: 10, 1: 10})
    assert (node.sums(0), node.sums(1), node.sums(2)) == ({"0:a": 3}, {"1:a": 3}, NotCoordinator)


def test_a_later_epoch_of_an_active_shard_changes_nothing_but_its_epoch(node):
    node.elect(0)
    node.add("0:a", 1)
    shard = node.runtime.shard("0:")
    node.elect(0)
    assert node.runtime.shard("0:") is shard
    assert shard.context.epoch == node.epoch


def test_an_earlier_epoch_is_ignored(node):
    node.elect(0)
    shard = node.runtime.shard("0:")
    node.runtime.elect(0, 0)
    assert shard.context.epoch == node.epoch


def test_a_shard_that_loads_goes_on_in_a_later_epoch(node):
    written(node, 0, 1, 2)
    node.elect(0)
    node.turn()
    node.elect(0)
    node.turn()
    assert node.sums(0) == {"0:a": 3}
    assert node.runtime.shard("0:").replayed == [0, 1]


def test_transactions_are_replayed_with_their_ends(node):
    node.elect(0)
    partition = node.partitions[0]
    for producer_id, control_type in ((7, ControlRecordType.COMMIT), (8, ControlRecordType.ABORT), (9, None)):
        batch = build_batch(
            [(b"0:a", NUMBER.pack(producer_id), 0)],
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
        )
        partition.append(RecordBatch.parse(batch), 0, by_coordinator=True)
        if control_type is not None:
            marker = build_batch(
                [(control_key(control_type), bytes(6), 0)],
                producer_id=producer_id,
                producer_epoch=0,
                is_control=True,
                is_transactional=True,
            )
            partition.append(RecordBatch.parse(marker), 0)
    node.resign(0)
    node.elect(0)
    node.settle()
    assert node.sums(0) == {"0:a": 7}
    assert node.runtime.shard("0:").pending == {9: [("0:a", 9)]}


# ---------------------------------------------------------------- resignations


def test_a_resigned_shard_is_closed_while_others_go_on(node):
    node.elect(0, 1)
    errors = []
    node.runtime.shard("0:").waiting.append(lambda error: errors.append(kind(error)))
    node.add("0:a", 1)
    node.add("1:a", 2)
    node.resign(0)
    assert errors == [NotCoordinator]
    assert node.add("0:a", 1) == [NotCoordinator]
    assert node.add("1:a", 1) == [None]
    assert node.sums(1) == {"1:a": 3}


def test_its_deadlines_do_not_strike_any_more(node):
    node.elect(0, 1)
    node.add("0:a", 1)
    node.add("1:a", 1)
    shard = node.runtime.shard("0:")
    end = node.log(0).log_end_offset
    node.resign(0)
    node.clock.advance(60)
    assert node.log(0).log_end_offset == end
    assert node.sums(1) == {}
    struck = []
    shard.context.deadlines.set(Deadline(struck.append, 1), 1)
    node.clock.advance(2)
    assert struck == []


def test_what_still_holds_a_shard_cannot_write(node):
    node.elect(0)
    shard, errors = node.runtime.shard("0:"), []
    node.resign(0)
    node.elect(0)
    end = node.log(0).log_end_offset
    shard.add("0:a", 1, lambda error: errors.append(kind(error)))
    assert errors == [NotCoordinator]
    shard.context.when_safe(lambda error: errors.append(kind(error)))
    assert errors == [NotCoordinator, NotCoordinator]
    assert node.log(0).log_end_offset == end


def test_what_is_being_written_is_told_when_the_shard_is_resigned():
    node = Node(flush_messages=1)
    node.elect(0)
    errors = node.add("0:a", 1)
    assert errors == []
    node.resign(0)
    assert errors == [NotCoordinator]
    node.log(0).flush()
    assert errors == [NotCoordinator]


def test_a_write_that_the_replicas_do_not_get_in_time():
    node = Node()
    node.elect(0)
    partition = node.partitions[0]
    with_follower = of_two(leader_epoch=1)
    partition.become_leader(with_follower)
    errors = node.add("0:a", 1)
    node.clock.advance(4.9)
    assert errors == []
    node.clock.advance(0.2)
    assert errors == [CoordinatorNotAvailable]
    assert node.sums(0) == {"0:a": 1}
    partition.become_leader(with_follower._replace(isr=(1,), partition_epoch=1))
    assert errors == [CoordinatorNotAvailable]


def test_a_response_waits_for_what_is_being_written_and_for_nothing_else():
    node = Node()
    node.elect(0)
    partition = node.partitions[0]
    with_follower = of_two(leader_epoch=1)
    shard, done = node.runtime.shard("0:"), []
    partition.become_leader(with_follower)
    shard.context.when_written(lambda error: done.append("before"))
    assert done == ["before"]
    shard.add("0:a", 1, lambda error: done.append("write"))
    shard.context.when_written(lambda error: done.append("after"))
    assert done == ["before"]
    partition.become_leader(with_follower._replace(isr=(1,), partition_epoch=1))
    assert done == ["before", "write", "after"]


def test_a_response_waits_for_what_was_loaded_and_is_not_replicated():
    node = Node()
    node.elect(0)
    partition = node.partitions[0]
    partition.become_leader(of_two(leader_epoch=1))
    node.add("0:a", 1)
    node.resign(0)
    partition.become_leader(of_two(leader_epoch=3))
    node.runtime.elect(0, 3)
    node.settle()
    assert node.sums(0) == {"0:a": 1}
    done = []
    node.runtime.shard("0:").context.when_written(done.append)
    assert done == []
    partition.become_leader(of_two(leader_epoch=3)._replace(isr=(1,), partition_epoch=1))
    assert done == [None]


def test_a_response_does_not_wait_for_a_flush_of_what_was_loaded():
    node = Node(flush_messages=1)
    node.elect(0)
    node.add("0:a", 1)
    node.resign(0)
    node.elect(0)
    node.settle()
    done = []
    node.runtime.shard("0:").context.when_written(done.append)
    assert done == [None]


def test_a_response_does_not_wait_for_ever():
    node = Node()
    node.elect(0)
    with_follower = of_two(leader_epoch=1)
    node.partitions[0].become_leader(with_follower)
    node.add("0:a", 1)
    shard, errors = node.runtime.shard("0:"), []
    node.clock.advance(1)
    shard.context.when_written(lambda error: errors.append(kind(error)))
    node.clock.advance(4.9)
    assert errors == []
    node.clock.advance(0.2)
    assert errors == [CoordinatorNotAvailable]
    node.resign(0)
    shard.context.when_written(lambda error: errors.append(kind(error)))
    assert errors == [CoordinatorNotAvailable, NotCoordinator]


def test_what_becomes_safe_after_a_stop_is_not_answered_as_if_it_had_before():
    node = Node(flush_messages=1)
    node.elect(0)
    errors = node.add("0:a", 1)
    node.runtime.stop()
    node.log(0).flush()
    assert errors == [NotCoordinator]


def test_it_comes_back_with_what_its_log_has(node):
    node.elect(0)
    node.add("0:a", 1)
    node.add("0:b", 2)
    before = dict(node.sums(0))
    node.resign(0)
    node.elect(0)
    node.settle()
    assert node.sums(0) == before


def test_it_may_be_resigned_while_it_is_loaded(node):
    written(node, 0, 1, 2)
    node.elect(0)
    node.turn()
    node.resign(0)
    node.settle()
    assert node.add("0:a", 1) == [NotCoordinator]
    node.elect(0)
    node.settle()
    assert node.sums(0) == {"0:a": 3}


def test_a_stop_ends_the_loading(node):
    written(node, 0, 1, 2)
    node.elect(0, 1)
    node.runtime.stop()
    node.settle()
    assert node.add("0:a", 1) == node.add("1:a", 1) == [NotCoordinator]


# ---------------------------------------------------------------- failures


def broken(node, index):
    """A record that makes no sense, behind others that do."""
    written(node, index, 1)
    node.elect(index)
    node.settle()
    node.partitions[index].append(RecordBatch.parse(build_batch([(b"0:a", b"?", 0)])), 0)
    node.resign(index)


def test_a_log_that_cannot_be_read_fails_its_shard_alone(node, caplog):
    broken(node, 0)
    written(node, 1, 5)
    node.elect(0, 1)
    node.settle()
    assert node.add("0:a", 1) == [NotCoordinator]
    assert node.sums(1) == {"1:a": 5}
    assert [shard.sums for shard in node.runtime.shards()] == [{"1:a": 5}]
    assert "tallies-0 cannot be loaded: not a number" in caplog.text


def test_a_shard_that_has_failed_is_loaded_at_the_next_election(node):
    broken(node, 0)
    node.elect(0)
    node.settle()
    node.log(0).delete_records_before(2)
    node.elect(0)
    assert node.sums(0) == {}
    assert node.add("0:a", 1) == [None]


def test_a_partition_that_is_not_hosted_fails_its_shard(node):
    node.gone.add(0)
    node.elect(0, 1)
    assert node.add("0:a", 1) == [NotCoordinator]
    assert not node.runtime.leads("0:a")
    assert node.add("1:a", 1) == [None]
    node.gone.clear()
    node.elect(0)
    assert node.add("0:a", 1) == [None]


def test_a_bug_in_one_shard_does_not_keep_the_others_waiting(node):
    written(node, 0, 1)
    written(node, 1, 1)
    node.elect(0, 1)

    def buggy(*_):
        raise RuntimeError("a bug")

    node.runtime._contexts[0].shard.replay = buggy
    with pytest.raises(RuntimeError):
        node.turn()
    node.settle()
    assert node.add("0:a", 1) == [NotCoordinator]
    assert node.sums(1) == {"1:a": 1}


def test_without_its_disk_it_is_not_the_coordinator(node):
    node.elect(0)
    node.add("0:a", 1)
    assert node.runtime.leads("0:a")
    node.log(0).go_offline("on fire")
    assert not node.runtime.leads("0:a")
    assert node.add("0:a", 1) == [NotCoordinator]
    assert node.runtime.shards() == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (KafkaStorageError, NotCoordinator),
        (NotEnoughReplicas, CoordinatorNotAvailable),
        (MessageTooLarge, UnknownServerError),
    ],
)
def test_an_error_of_the_partition_is_answered_as_a_coordinators(node, monkeypatch, error, expected):
    def append(*_, **__):
        raise error

    node.elect(0)
    monkeypatch.setattr(type(node.partitions[0]), "append", append)
    assert node.add("0:a", 1) == [expected]
    assert node.sums(0) == {}


# ---------------------------------------------------------------- all shards


def test_a_command_for_all_waits_for_those_that_are_loaded(node):
    written(node, 0, 1)
    node.elect(0, 1)
    seen = []
    node.runtime.for_all(lambda shard: seen.append((shard.context.index, dict(shard.sums))))
    assert seen == [(1, {})]
    node.turn()
    assert seen == [(1, {}), (0, {"0:a": 1})]


def test_a_command_for_all_is_dropped_with_the_shard(node):
    written(node, 0, 1)
    node.elect(0)
    seen = []
    node.runtime.for_all(seen.append)
    node.resign(0)
    node.elect(0)
    node.settle()
    assert seen == []


# ---------------------------------------------------------------- time


def test_what_is_due_is_done_before_a_command(node):
    node.elect(0)
    node.add("0:a", 1)
    node.clock.skip(10.001)
    assert node.sums(0) == {}


def test_what_is_not_due_is_not_done(node):
    node.elect(0)
    node.add("0:a", 1)
    node.clock.skip(9.999)
    assert node.sums(0) == {"0:a": 1}


def test_what_is_due_in_any_shard_is_done_before_all_are_listed(node):
    node.elect(0, 1)
    node.add("0:a", 1)
    node.clock.advance(5)
    node.add("1:a", 1)
    node.clock.skip(6)
    assert [shard.sums for shard in node.runtime.shards()] == [{}, {"1:a": 1}]


# ---------------------------------------------------------------- safety


def test_in_the_order_of_the_log():
    node = Node(flush_messages=2)
    node.elect(0)
    calls = []
    shard = node.runtime.shard("0:")
    for number in range(5):
        shard.add("0:a", number, lambda error, number=number: calls.append(number))
    node.runtime.when_safe(0, lambda shard: calls.append("end"))
    assert calls == [0]
    node.log(0).flush()
    assert calls == [0, 1, 2, 3, 4, "end"]


def test_what_was_to_be_done_when_it_is_safe_is_not_when_the_shard_is_resigned():
    node = Node(flush_messages=1)
    node.elect(0)
    node.add("0:a", 1)
    calls = []
    node.runtime.when_safe(0, calls.append)
    node.runtime.when_safe(1, calls.append)
    node.resign(0)
    node.log(0).flush()
    assert calls == []
