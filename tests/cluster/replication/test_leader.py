"""A leader and its followers: the high watermark, the ISR, and its changes by the controller."""

import pytest

from barnabas.cluster.image.image import PartitionImage
from barnabas.cluster.replication.partition import ACKS_ALL, READ_LOG_END
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownServerError,
)
from tests.cluster.replication.test_partition import World

IN_SYNC = PartitionImage(
    (1, 2, 3), (1, 2, 3), (), (), leader=1, leader_epoch=3, partition_epoch=7, directories=(bytes(16),) * 3
)


class Leader(World):
    """Node 1 leads, 2 and 3 fetch."""

    def __init__(self, image=IN_SYNC, **config):
        super().__init__(image, **config)

    @property
    def high_watermark(self):
        return self.log.high_watermark

    @property
    def isr(self):
        return self.partition.followers.isr

    def fetch(self, broker_id, offset, epoch=None, log_start_offset=0):
        followers = self.partition.followers
        epoch = 100 + broker_id if epoch is None else epoch
        end = self.log.log_end_offset
        followers.fetched(followers.replica(broker_id, has_epoch=True), offset, log_start_offset, end, epoch)

    def pass_time(self, seconds, *alive):
        """Advances the clock; the given followers fetch from the end."""
        for _ in range(round(seconds)):
            self.clock.advance(1)
            for broker_id in alive:
                self.fetch(broker_id, self.log.log_end_offset)


def test_the_high_watermark_is_what_all_in_sync_replicas_have():
    leader = Leader()
    leader.append(10)
    assert leader.high_watermark == 0
    leader.fetch(2, 10)
    assert leader.high_watermark == 0
    leader.fetch(3, 4)
    assert leader.high_watermark == 4
    leader.fetch(3, 10)
    assert leader.high_watermark == 10


def test_acks_all_waits_for_the_followers():
    leader = Leader()
    leader.wait("one", acks=ACKS_ALL)
    leader.wait("two", acks=ACKS_ALL)
    leader.fetch(2, 2)
    leader.fetch(3, 1)
    assert leader.safe == ["one"]
    leader.fetch(3, 2)
    assert leader.safe == ["one", "two"]


def test_whoever_does_not_wait_any_more_is_not_called():
    leader = Leader()
    results = []
    leader.partition.when_safe(leader.append(), ACKS_ALL, results.append)
    leader.wait("next", acks=ACKS_ALL)
    leader.partition.stop_waiting(results.append)
    leader.partition.stop_waiting(print)
    leader.fetch(2, 2)
    leader.fetch(3, 2)
    assert (results, leader.safe) == ([], ["next"])


def test_a_follower_that_stops_fetching_leaves_the_isr():
    leader = Leader()
    leader.append()
    leader.pass_time(29, 2)
    leader.leading.look()
    assert leader.leading.proposed == []
    leader.pass_time(2, 2)
    leader.leading.look()
    change = leader.leading.proposed[0][0]
    assert (change.isr, change.leader_epoch, change.partition_epoch) == ({1: 101, 2: 102}, 3, 7)
    assert leader.isr == (1, 2, 3)
    assert leader.high_watermark == 0
    leader.leading.commit()
    assert leader.isr == (1, 2)
    assert leader.high_watermark == 1


def test_a_follower_at_the_end_stays_though_it_does_not_fetch():
    """It lacks no records (``Replica.isCaughtUp``)."""
    leader = Leader()
    leader.append()
    leader.fetch(2, 1)
    leader.fetch(3, 1)
    leader.pass_time(100)
    leader.leading.look()
    assert leader.leading.proposed == []


def test_a_follower_that_is_always_a_little_behind_stays():
    """It has caught up with the end of the fetch before (``Replica.updateFetchState``)."""
    leader = Leader()
    for end in range(1, 100):
        leader.append()
        leader.clock.advance(1)
        for broker_id in (2, 3):
            leader.fetch(broker_id, end - 1)
    leader.leading.look()
    assert leader.leading.proposed == []


def test_a_follower_that_has_everything_comes_back():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.append(10)
    leader.fetch(2, 10)
    assert leader.high_watermark == 10
    leader.fetch(3, 9)
    assert leader.leading.proposed == []
    leader.append()
    leader.fetch(3, 10)
    assert leader.leading.proposed[0][0].isr == {1: 101, 2: 102, 3: 103}
    leader.append()
    leader.fetch(2, 12)
    assert leader.high_watermark == 10  # the proposed replica is included already
    leader.leading.commit()
    assert leader.isr == (1, 2, 3)
    leader.fetch(3, 12)
    assert leader.high_watermark == 12


def test_a_follower_needs_all_of_the_earlier_epochs():
    """The high watermark of a new leader lags: records above it may be committed (KAFKA-7128)."""
    leader = Leader(IN_SYNC)
    leader.append(10)
    leader.partition.become_leader(IN_SYNC._replace(isr=(1, 2), leader_epoch=4, partition_epoch=8))
    leader.fetch(3, 5)
    assert leader.leading.proposed == []
    leader.fetch(3, 10)
    assert list(leader.leading.proposed[0][0].isr) == [1, 2, 3]


@pytest.mark.parametrize(
    "changes", [{"fenced": True}, {"in_controlled_shutdown": True}, {"epoch": 200}], ids=["fenced", "leaving", "new"]
)
def test_who_may_not_be_in_the_isr_is_not_proposed(changes):
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.leading.amend(3, **changes)
    if "epoch" in changes:
        with pytest.raises(NotLeaderOrFollower):
            leader.fetch(3, 0)
    else:
        leader.fetch(3, 0)
    assert leader.leading.proposed == []
    leader.append()
    leader.fetch(2, 1)
    assert leader.high_watermark == 1  # nor is it waited for


def test_a_follower_without_an_epoch_may_come():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0, epoch=-1)
    assert leader.leading.proposed[0][0].isr == {1: 101, 2: -1, 3: -1}


def test_the_controller_refuses_a_replica():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0)
    leader.leading.refuse(IneligibleReplica())
    leader.append()
    leader.leading.amend(3, fenced=True)
    leader.fetch(2, 1)
    assert (leader.isr, leader.high_watermark) == ((1, 2), 1)


def test_after_other_refusals_newer_metadata_is_waited_for():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0)
    leader.leading.refuse(FencedLeaderEpoch())
    leader.fetch(3, 0)
    leader.append()
    leader.fetch(2, 1)
    assert (leader.leading.proposed, leader.high_watermark) == ([], 0)
    leader.partition.become_leader(IN_SYNC._replace(isr=(1, 2), partition_epoch=8))
    leader.fetch(3, 0)
    leader.fetch(3, 1)
    assert leader.leading.proposed[0][0].partition_epoch == 8


def test_after_other_errors_the_request_is_repeated():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0)
    leader.leading.refuse(UnknownServerError())
    leader.leading.commit()
    assert leader.isr == (1, 2, 3)


def test_metadata_that_comes_after_the_answer_changes_nothing():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0)
    leader.leading.commit()
    leader.partition.become_leader(IN_SYNC._replace(isr=(1, 2)))  # another, older change
    assert leader.isr == (1, 2, 3)


def test_the_records_of_a_change_do_not_drop_the_next_one():
    leader = Leader(IN_SYNC._replace(isr=(1,)))
    leader.fetch(2, 0)
    leader.leading.commit()
    leader.fetch(3, 0)  # the next change is on its way
    leader.partition.become_leader(IN_SYNC._replace(isr=(1, 2), partition_epoch=IN_SYNC.partition_epoch + 1))
    leader.leading.clock.advance(leader.leading.lag_time_max + 1)
    leader.append()
    leader.fetch(2, 1)
    assert leader.high_watermark == 0
    leader.leading.commit()
    assert (leader.isr, leader.high_watermark) == ((1, 2, 3), 0)


def test_an_answer_that_comes_after_newer_metadata_changes_nothing():
    leader = Leader(IN_SYNC._replace(isr=(1, 2)))
    leader.fetch(3, 0)
    leader.partition.become_leader(IN_SYNC._replace(isr=(1,), partition_epoch=9))
    leader.leading.commit()
    assert leader.isr == (1,)


def test_too_few_are_in_sync_before_the_append():
    leader = Leader(IN_SYNC._replace(isr=(1,)), min_insync_replicas=2)
    with pytest.raises(NotEnoughReplicas):
        leader.append(acks=ACKS_ALL)
    leader.append()
    assert leader.high_watermark == 0  # KIP-966
    leader.fetch(2, 1)
    leader.leading.commit()
    assert leader.high_watermark == 1


def test_too_few_are_in_sync_after_the_append():
    leader = Leader()
    leader.wait("it", acks=ACKS_ALL)
    leader.fetch(2, 1)
    leader.partition.become_leader(IN_SYNC._replace(isr=(1,), partition_epoch=8))
    leader.log.update_config(leader.log.config._replace(min_insync_replicas=2))
    assert leader.safe == ["it"]
    leader.partition.when_safe(1, ACKS_ALL, leader.safe.append)
    assert isinstance(leader.safe[1], NotEnoughReplicasAfterAppend)


def test_min_insync_replicas_is_never_more_than_there_are():
    leader = Leader(IN_SYNC._replace(replicas=(1, 2), isr=(1, 2), directories=(bytes(16),) * 2), min_insync_replicas=5)
    leader.append(acks=ACKS_ALL)


@pytest.mark.parametrize(("has_epoch", "error"), [(True, UnknownLeaderEpoch), (False, NotLeaderOrFollower)])
def test_a_stranger(has_epoch, error):
    with pytest.raises(error):
        Leader().partition.replica(9, has_epoch=has_epoch)
    with pytest.raises(error):
        World().partition.replica(9, has_epoch=has_epoch)


def test_followers_wait_for_appends_and_not_for_the_high_watermark():
    leader = Leader()
    sizes = []
    leader.partition.watch(sizes.append, READ_LOG_END)
    leader.append()
    assert sizes == [leader.log.size]
    leader.fetch(2, 1)
    leader.fetch(3, 1)
    assert sizes == [leader.log.size]
    leader.partition.unwatch(sizes.append)
    leader.append()
    assert len(sizes) == 1


def test_nobody_is_looked_at_where_there_are_no_followers():
    leader = Leader()
    assert leader.leading.looks
    leader.partition.become_follower(IN_SYNC._replace(leader=2, leader_epoch=4))
    assert not leader.leading.looks
    assert leader.partition.followers is None
