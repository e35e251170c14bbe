"""Barnabas with a planted bug, to test that the checker finds it: ``python planted.py MISTAKE serve …``.

Each mistake is one that a broker has had, or could have; nothing else is changed.
"""

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Callable
from random import Random
from typing import Any

from barnabas import errors
from barnabas.api_handlers import fetch
from barnabas.broker.marker_sender import MarkerSender
from barnabas.cli import main
from barnabas.groups.shard import GroupShard
from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.log.producer_state import ProducerState
from barnabas.peers.in_process import InProcessPeers
from barnabas.transactions import shard
from barnabas.transactions.completion import Completion
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest


def open_is_read() -> None:
    """The last stable offset is the high watermark: uncommitted records are read."""
    proper = PartitionLog._set_offsets

    def set_offsets(self: PartitionLog, *offsets: int) -> None:
        proper(self, *offsets)
        self.last_stable_offset = self.high_watermark

    PartitionLog._set_offsets = set_offsets


def aborted_is_read() -> None:
    """Fetch does not return aborted transactions."""
    fetch.aborted_in = lambda *_: []


def late_end_counts() -> None:
    """EndTxn ends any open transaction of its id (KIP-890)."""
    proper = shard.outcome

    def outcome(facts: Any, is_pending: bool, producer_id: int, producer_epoch: int, *rest: Any) -> Any:
        return proper(facts, is_pending, facts.producer_id, facts.producer_epoch, *rest)

    shard.outcome = outcome


def repeated_is_taken() -> None:
    """A retried batch is appended again."""
    proper = ProducerState.check

    def check(self: ProducerState, batch: Any, **keywords: Any) -> Any:
        with contextlib.suppress(errors.OutOfOrderSequenceNumber):
            proper(self, batch, **keywords)

    ProducerState.check = check


def offsets_outlive_aborts() -> None:
    """A group's offsets of an aborted transaction are kept."""
    proper = GroupShard.replay_end_marker

    def replay_end_marker(self: GroupShard, producer_id: int, is_commit: bool) -> None:
        proper(self, producer_id, True)

    GroupShard.replay_end_marker = replay_end_marker


def markers_get_lost() -> None:
    """Sometimes the last marker of a transaction is not written."""
    proper = MarkerSender.send
    turn = itertools.count(1)

    def send(self: MarkerSender, marker: Any, partitions: Any, done: Any) -> None:
        if next(turn) % 20 or len(partitions) < 2:
            proper(self, marker, partitions, done)
        else:
            lost = partitions[-1]
            proper(self, marker, partitions[:-1], lambda found: done({**found, lost: None}))

    MarkerSender.send = send


def markers_are_slow() -> None:
    """Not a mistake: markers take up to 50 ms, as with partitions on other brokers, so that kills happen in between."""
    proper = InProcessPeers.send
    random = Random(7)

    def send(self: InProcessPeers, node_id: int, request: Any, done: Any) -> None:
        if isinstance(request, WriteTxnMarkersRequest):
            asyncio.get_running_loop().call_later(random.uniform(0, 0.05), proper, self, node_id, request, done)
        else:
            proper(self, node_id, request, done)

    InProcessPeers.send = send


def prepared_is_forgotten() -> None:
    """Transactions that were prepared at a kill are never completed."""
    markers_are_slow()
    proper = Completion.begin

    def begin(self: Completion, transaction: Any) -> Any:
        return transaction.facts if is_loading else proper(self, transaction)

    def loaded(self: shard.TransactionShard) -> None:
        is_loading.append(True)
        started(self)
        is_loading.pop()

    is_loading: list[bool] = []
    started = shard.TransactionShard.loaded
    shard.TransactionShard.loaded = loaded
    Completion.begin = begin


def promised_is_not_written() -> None:
    """Sometimes a batch is acknowledged without being appended."""
    proper = PartitionLog.append_as_leader
    turn = itertools.count(1)

    def append_as_leader(self: PartitionLog, batch: Any, **keywords: Any) -> Appended:
        if self.topic.startswith("__") or batch.is_control or next(turn) % 50:
            return proper(self, batch, **keywords)
        end = self.log_end_offset
        return Appended(end, end + batch.last_offset_delta, -1, False)

    PartitionLog.append_as_leader = append_as_leader


MISTAKES: dict[str, Callable[[], None]] = {
    mistake.__name__: mistake
    for mistake in (
        open_is_read,
        aborted_is_read,
        late_end_counts,
        repeated_is_taken,
        offsets_outlive_aborts,
        markers_get_lost,
        markers_are_slow,
        prepared_is_forgotten,
        promised_is_not_written,
    )
}

if __name__ == "__main__":
    MISTAKES[sys.argv[1]]()
    sys.argv = ["barnabas", *sys.argv[2:]]
    sys.exit(main())
