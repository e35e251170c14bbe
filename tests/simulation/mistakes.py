"""Mistakes that are planted in the brokers, one at a time, to test whether the simulator finds them.

Each changes one rule in the code of all nodes. Knows nothing of runs.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.api_handlers import fetch
from barnabas.broker import Broker
from barnabas.broker.marker_sender import MarkerSender
from barnabas.cluster.controller import heartbeat_decisions, isr_decisions
from barnabas.cluster.controller.controller import Controller
from barnabas.cluster.controller.partition_changes import Terms
from barnabas.cluster.features import TRANSACTION_VERSION
from barnabas.cluster.image import snapshot_generator
from barnabas.cluster.quorum.elections import Elections, Leader
from barnabas.cluster.quorum.quorum_state import QuorumState
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.replication.followers import Followers
from barnabas.cluster.replication.partition import Partition
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.coordinators.shard import ShardContext, State
from barnabas.errors import KafkaError, NotCoordinator, NotLeaderOrFollower
from barnabas.groups.streams.group import StreamsGroup
from barnabas.log import cleanable
from barnabas.log.follower import Follower
from barnabas.log.moving import Move
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_state import ProducerState
from barnabas.offsets.group_offsets import GroupOffsets
from barnabas.share.partition import SharePartition
from barnabas.share.shard import ShareShard
from barnabas.transactions import shard
from barnabas.transactions.completion import Completion
from barnabas.transactions.messages import NO_PRODUCER_ID
from barnabas.transactions.transaction import Transaction
from barnabas.wire.messages.metadata_records import PartitionRecord

Plant = Callable[[pytest.MonkeyPatch], None]

# ---------------------------------------------------------------- the quorum


def vote_twice(patch: pytest.MonkeyPatch) -> None:
    """A voter forgets its vote in an epoch."""
    proper = Elections._grants

    def grants(self: Elections, *arguments: Any, **options: Any) -> bool:
        self.state.elected = self.state.elected._replace(voted=None)
        return proper(self, *arguments, **options)

    patch.setattr(Elections, "_grants", grants)


def vote_for_a_shorter_log(patch: pytest.MonkeyPatch) -> None:
    """A voter does not compare logs."""
    proper = Elections._grants
    patch.setattr(
        Elections, "_grants", lambda self, candidate, _, *, pre_vote: proper(self, candidate, True, pre_vote=pre_vote)
    )


def lose_votes(patch: pytest.MonkeyPatch) -> None:
    """Epoch and vote are not stored."""

    def store(self: RaftVoter, elected: Any) -> None:
        self._stored = QuorumState(elected.leader_id, elected.epoch, None, elected.voted)

    patch.setattr(RaftVoter, "store", store)


def commit_alone(patch: pytest.MonkeyPatch) -> None:
    """The leader of the quorum counts only its own log."""

    def advance(self: Elections) -> bool:
        offset = self._around.synced_offset()
        if not isinstance(self.state, Leader) or offset <= max(self.state.start_offset, self.high_watermark):
            return False
        self.high_watermark = offset
        return True

    patch.setattr(Elections, "advance", advance)


def commit_an_old_epoch(patch: pytest.MonkeyPatch) -> None:
    """Records of a majority are committed before a record of the leader's own epoch."""
    proper = Elections.advance

    def advance(self: Elections) -> bool:
        state = self.state
        if not isinstance(state, Leader):
            return False
        start, state.start_offset = state.start_offset, -1
        try:
            return proper(self)
        finally:
            state.start_offset = start

    patch.setattr(Elections, "advance", advance)


def forget_an_fsync(patch: pytest.MonkeyPatch) -> None:
    """Records of the metadata log are used before they are fsynced."""
    patch.setattr(RaftVoter, "synced_offset", lambda self: self.metadata_log.log.log_end_offset)
    patch.setattr(RaftVoter, "_waits_for_disk", lambda self: False)


def count_removed_voters(patch: pytest.MonkeyPatch) -> None:
    """A voter that was removed counts for the majority as long as it fetches (KIP-853)."""

    def copied(self: RaftVoter, replica: Any, log_end_offset: int) -> None:
        if self.elections.copied(replica.node_id, log_end_offset):
            self._commit_as_leader()

    def advance(self: Elections) -> bool:
        state = self.state
        if not isinstance(state, Leader):
            return False
        ends = {node_id: copy.offset for node_id, copy in state.copies.items()}
        ends[self.own.node_id] = self._around.synced_offset()
        offsets = sorted(ends.values(), reverse=True)
        needed = len(self._around.voters()) // 2
        if len(offsets) <= needed or offsets[needed] <= max(state.start_offset, self.high_watermark):
            return False
        self.high_watermark = offsets[needed]
        return True

    patch.setattr(RaftVoter, "_copied", copied)
    patch.setattr(Elections, "advance", advance)


# ---------------------------------------------------------------- the controller


def answer_before_commit(patch: pytest.MonkeyPatch) -> None:
    """The controller responds when a record is written, before it is committed."""

    def submit(self: Controller, command: Any, done: Any) -> None:
        try:
            result = self._decided(command)
        except KafkaError as error:
            done(None, error)
        else:
            done(result, None)

    patch.setattr(Controller, "submit", submit)


def keep_the_fenced_in_sync(patch: pytest.MonkeyPatch) -> None:
    """A fenced broker stays in the ISRs, and leads."""
    patch.setattr(heartbeat_decisions, "led_by_others", lambda broker_id, terms: ())


def ignore_partition_epochs(patch: pytest.MonkeyPatch) -> None:
    """AlterPartition ignores the partition epoch."""
    proper = isr_decisions.checked

    def checked(topic: Any, wanted: Any, *rest: Any) -> Any:
        found = topic.partitions.get(wanted.partition)
        return proper(topic, wanted if found is None else wanted._replace(partition_epoch=found.partition_epoch), *rest)

    patch.setattr(isr_decisions, "checked", checked)


def ignore_broker_epochs(patch: pytest.MonkeyPatch) -> None:
    """A restarted follower is treated as its earlier incarnation (KIP-903)."""
    patch.setattr(Followers, "check_epoch", lambda self, broker_id, broker_epoch: None)
    patch.setattr(Followers, "_is_eligible", lambda self, replica: self._alive(replica.broker_id) is not None)
    patch.setattr(isr_decisions, "check_eligible", lambda isr, image: None)


def elect_anybody(patch: pytest.MonkeyPatch) -> None:
    """A replica that is not in sync may lead, for any configs."""
    patch.setattr(Terms, "unclean", lambda self, topic: True)


# ---------------------------------------------------------------- replicas


def count_the_leader_only(patch: pytest.MonkeyPatch) -> None:
    """The high watermark of a partition does not wait for the followers."""
    patch.setattr(Followers, "committed_offset", lambda self: self.log.log_end_offset)


def count_the_committed_isr_only(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for replicas that are proposed to join the ISR."""

    def committed_offset(self: Followers) -> int:
        return min([self.log.log_end_offset, *(replica.log_end_offset for replica in self.in_sync())])

    patch.setattr(Followers, "committed_offset", committed_offset)


def take_in_who_lags(patch: pytest.MonkeyPatch) -> None:
    """A follower joins the ISR before it has all committed records."""
    patch.setattr(Followers, "_may_come", lambda self, replica: self._is_eligible(replica))


def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """The response to acks=all is sent before the followers have the records."""
    patch.setattr(Partition, "is_safe", lambda self, offset, acks: True)


def keep_what_differs(patch: pytest.MonkeyPatch) -> None:
    """A follower does not truncate records that its new leader does not have."""
    patch.setattr(PartitionLog, "truncate_to", lambda self, offset, now_ms=0: None)


def accept_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """A leader does not check the leader epoch of a request, nor its recipient, and returns no diverging epoch."""

    def check_leader(self: Partition, current_leader_epoch: int = -1) -> None:
        if not self.leads:
            raise NotLeaderOrFollower

    patch.setattr(Partition, "check_leader", check_leader)
    patch.setattr(Partition, "check_epoch", lambda self, current_leader_epoch: None)
    patch.setattr(fetch, "diverged", lambda partition, requested: None)


def show_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """Consumers read beyond the high watermark."""
    patch.setattr(Partition, "readable_up_to", lambda self, isolation_level: self.log.log_end_offset)


# ---------------------------------------------------------------- producers and transactions


def append_retries(patch: pytest.MonkeyPatch) -> None:
    """A retried batch is appended again."""
    patch.setattr(ProducerState, "check", lambda self, batch, **_: None)


def follow_without_producers(patch: pytest.MonkeyPatch) -> None:
    """A follower does not update the state of producers."""
    patch.setattr(ProducerState, "replay", lambda self, batch: None)


def lose_aborted(patch: pytest.MonkeyPatch) -> None:
    """Aborted transactions are not added to the index."""
    patch.setattr(PartitionLog, "_index_aborted", lambda self, transaction: None)


def show_aborted(patch: pytest.MonkeyPatch) -> None:
    """Fetch does not return aborted transactions."""
    patch.setattr(fetch, "aborted_in", lambda *_: [])


def show_what_is_open(patch: pytest.MonkeyPatch) -> None:
    """The last stable offset is the high watermark."""
    proper = PartitionLog._set_offsets

    def set_offsets(self: PartitionLog, *offsets: int) -> None:
        proper(self, *offsets)
        self.last_stable_offset = self.high_watermark

    patch.setattr(PartitionLog, "_set_offsets", set_offsets)


def end_whatever_is_open(patch: pytest.MonkeyPatch) -> None:
    """EndTxn ends the open transaction with any epoch (KIP-890)."""
    proper = shard.outcome

    def outcome(facts: Any, is_pending: bool, producer_id: int, producer_epoch: int, *rest: Any) -> Any:
        return proper(facts, is_pending, facts.producer_id, facts.producer_epoch, *rest)

    patch.setattr(shard, "outcome", outcome)


def accept_late_markers(patch: pytest.MonkeyPatch) -> None:
    """A marker of the newer generation ends a transaction whose records have its epoch (KIP-1228)."""
    patch.setattr(ProducerState, "check_end", lambda self, *_: None)


def ignore_connections(patch: pytest.MonkeyPatch) -> None:
    """Requests of the older generation count, even if their producer has a newer connection."""
    patch.setattr(Transaction, "check_session", lambda self, producer: None)


def mark_by_the_level(patch: pytest.MonkeyPatch) -> None:
    """The cluster's transaction.version, not the producer's generation, decides how a marker is checked (KIP-1228)."""
    proper = MarkerSender.send

    def send(self: MarkerSender, marker: Any, partitions: Any, done: Any) -> None:
        level = self._image().features.get(TRANSACTION_VERSION, 0)
        proper(self, marker._replace(transaction_version=level), partitions, done)

    patch.setattr(MarkerSender, "send", send)


def change_the_id_early(patch: pytest.MonkeyPatch) -> None:
    """A producer whose epochs have run out gets its next id before the markers are written."""
    proper = Transaction.decide

    def decide(self: Transaction, is_commit: bool, client_version: int, next_id: int, now_ms: int) -> Any:
        facts = proper(self, is_commit, client_version, next_id, now_ms)
        return facts if next_id == NO_PRODUCER_ID else facts._replace(producer_id=next_id, producer_epoch=0)

    patch.setattr(Transaction, "decide", decide)


def lose_markers(patch: pytest.MonkeyPatch) -> None:
    """One marker of twenty is acknowledged without being written."""
    proper, turn = MarkerSender.send, itertools.count(1)

    def send(self: MarkerSender, marker: Any, partitions: Any, done: Any) -> None:
        if next(turn) % 20 or len(partitions) < 2:
            proper(self, marker, partitions, done)
        else:
            lost = partitions[-1]
            proper(self, marker, partitions[:-1], lambda found: done({**found, lost: None}))

    patch.setattr(MarkerSender, "send", send)


def forget_what_was_decided(patch: pytest.MonkeyPatch) -> None:
    """A coordinator does not complete the prepared transactions of an earlier one."""
    proper, started = Completion.begin, shard.TransactionShard.loaded
    is_loading: list[bool] = []

    def begin(self: Completion, transaction: Any) -> Any:
        return transaction.facts if is_loading else proper(self, transaction)

    def loaded(self: shard.TransactionShard) -> None:
        is_loading.append(True)
        try:
            started(self)
        finally:
            is_loading.pop()

    patch.setattr(Completion, "begin", begin)
    patch.setattr(shard.TransactionShard, "loaded", loaded)


def never_resign(patch: pytest.MonkeyPatch) -> None:
    """A coordinator continues in its old epoch when another node leads its partition."""
    patch.setattr(CoordinatorRuntime, "resign", lambda self, index: None)


def answer_when_resigned(patch: pytest.MonkeyPatch) -> None:
    """A coordinator goes on answering when another node leads its partition, and writes nothing."""
    resign, shard_of, append = CoordinatorRuntime.resign, CoordinatorRuntime.shard, ShardContext.append
    given_up: dict[tuple[int, int], Any] = {}  # by runtime and partition

    def kept(self: CoordinatorRuntime[Any], index: int) -> None:
        context = self._contexts.get(index)
        if context is not None and context.state is State.ACTIVE:
            given_up[id(self), index] = context
            context.state = State.FAILED
            self._contexts.pop(index)
        else:
            resign(self, index)

    def shard(self: CoordinatorRuntime[Any], key: str) -> Any:
        try:
            return shard_of(self, key)
        except NotCoordinator:
            context = given_up.get((id(self), self.partition_of(key)))
            if context is None:
                raise
            return context.shard

    def write(self: ShardContext[Any], batch: bytes, now_ms: int, written: Any, **options: Any) -> None:
        if self in given_up.values():
            written(None)
        else:
            append(self, batch, now_ms, written, **options)

    patch.setattr(CoordinatorRuntime, "resign", kept)
    patch.setattr(CoordinatorRuntime, "shard", shard)
    patch.setattr(ShardContext, "append", write)


def commit_aborted_offsets(patch: pytest.MonkeyPatch) -> None:
    """A group coordinator commits the offsets of a transaction that was aborted."""
    proper = GroupOffsets.end
    patch.setattr(GroupOffsets, "end", lambda self, transaction, is_commit: proper(self, transaction, True))


def show_unstable_offsets(patch: pytest.MonkeyPatch) -> None:
    """OffsetFetch returns committed offsets that an open transaction may change (KIP-447)."""
    patch.setattr(GroupOffsets, "unstable", lambda self, group_id: ())


def accept_without_writing(patch: pytest.MonkeyPatch) -> None:
    """The leader of a share partition does not write what was acknowledged."""
    patch.setattr(SharePartition, "_write_runs", lambda self, runs, done: done(None))


# ---------------------------------------------------------------- storage


def clean_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """The cleaner removes records whose successors may be truncated."""
    patch.setattr(cleanable, "first_uncleanable_offset", lambda log, *_: log.segments.active.base_offset)


def forget_epochs_in_snapshots(patch: pytest.MonkeyPatch) -> None:
    """A snapshot of the metadata has all partitions in their first leader epoch."""
    proper = snapshot_generator.records_of_image

    def records(*arguments: Any, **options: Any) -> Iterator[Any]:
        for each in proper(*arguments, **options):
            if isinstance(each, PartitionRecord):
                each.leader_epoch = 0
            yield each

    patch.setattr(snapshot_generator, "records_of_image", records)


# ---------------------------------------------------------------- upgrades


def keep_directories_secret(patch: pytest.MonkeyPatch) -> None:
    """A broker does not say in which directories its replicas are (KIP-858)."""
    patch.setattr(Broker, "_report_directories", lambda self, delta=None: None)


# ---------------------------------------------------------------- several log directories


def promote_without_the_tail(patch: pytest.MonkeyPatch) -> None:
    """A log is replaced by its copy without the records that were appended during the flush (KIP-113)."""
    patch.setattr(Move, "offset_lag", property(lambda self: 0))


# ---------------------------------------------------------------- deletion


def delete_alone(patch: pytest.MonkeyPatch) -> None:
    """DeleteRecords is answered before the followers have deleted the records."""
    patch.setattr(Followers, "low_watermark", property(lambda self: self.log.log_start_offset))


def begin_anew_at_the_end(patch: pytest.MonkeyPatch) -> None:
    """A follower that ends before its leader's log starts continues at the end of it, not at its start."""
    proper = Follower.handle_out_of_range

    def handle(self: Follower, log_start_offset: int, log_end_offset: int, now_ms: int) -> bool:
        is_behind = log_start_offset > self.log.log_end_offset
        return proper(self, log_end_offset if is_behind else log_start_offset, log_end_offset, now_ms)

    patch.setattr(Follower, "handle_out_of_range", handle)


def prune_to_the_newest(patch: pytest.MonkeyPatch) -> None:
    """A share coordinator deletes the records before the newest snapshot of any share partition."""

    def prune(self: ShareShard) -> None:
        self._deadlines.set(self._pruning, self._prune_after / 1000)
        self._prune(self._newest)

    patch.setattr(ShareShard, "_prune_regularly", prune)


def assign_what_is_owned(patch: pytest.MonkeyPatch) -> None:
    """A streams group assigns tasks that another member still owns (KIP-1071)."""
    patch.setattr(StreamsGroup, "active_process", lambda self, subtopology, partition: None)


MISTAKES: dict[str, Plant] = {
    each.__name__: each
    for each in (
        vote_twice,
        vote_for_a_shorter_log,
        lose_votes,
        commit_alone,
        commit_an_old_epoch,
        forget_an_fsync,
        count_removed_voters,
        answer_before_commit,
        keep_the_fenced_in_sync,
        ignore_partition_epochs,
        ignore_broker_epochs,
        elect_anybody,
        count_the_leader_only,
        count_the_committed_isr_only,
        take_in_who_lags,
        acknowledge_at_once,
        keep_what_differs,
        accept_any_epoch,
        show_what_is_not_committed,
        append_retries,
        follow_without_producers,
        lose_aborted,
        show_aborted,
        show_what_is_open,
        end_whatever_is_open,
        accept_late_markers,
        ignore_connections,
        mark_by_the_level,
        change_the_id_early,
        lose_markers,
        forget_what_was_decided,
        never_resign,
        answer_when_resigned,
        commit_aborted_offsets,
        show_unstable_offsets,
        accept_without_writing,
        clean_what_is_not_committed,
        forget_epochs_in_snapshots,
        keep_directories_secret,
        promote_without_the_tail,
        delete_alone,
        begin_anew_at_the_end,
        prune_to_the_newest,
        assign_what_is_owned,
    )
}
