"""Logs on their way from one log directory to another while they are written and read (KIP-113).

Knows nothing of clients or the metadata: it is told what goes where, tells when a log is about to arrive, and when it
has. A log is copied, batch by batch, into a directory named ``….<unique id>-future`` beside its new neighbours, in
small steps between other work. Once that has caught up and is on the disk, the two change places: the old directory is
renamed to ``-delete``, then the new one to the plain name. A crash between the two leaves only the new one, which is
then taken (:meth:`Moves.settle`); at any other moment it leaves the old one in place, and the copying goes on.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.clock import Scheduler, Timer
from barnabas.errors import CorruptMessage, KafkaError, KafkaStorageError
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.log_directory import DELETE_SUFFIX, FUTURE_SUFFIX, LogDirectory
from barnabas.log.partition_log import PartitionLog
from barnabas.log.recovery import create_log, open_log

if TYPE_CHECKING:
    from barnabas.log.log_manager import LogManager

logger = logging.getLogger(__name__)

READ_BYTES: Final = 64 << 10
STEP_BYTES, STEP_S = 256 << 10, 0.002
"""Copied in one go, or as much as that time allows: others want to be served."""
TAIL_BYTES, TAIL_S = 4 << 20, 0.02
"""The same for what came in while the rest was flushed: more, or a busy log would never be caught up with."""
PAUSE_S: Final = 1.0
"""How long to wait at most before it is asked again how many bytes may be copied."""


class Move:
    """One log on its way."""

    __slots__ = ("future", "is_flushed", "log", "timer")

    def __init__(self, log: PartitionLog, future: PartitionLog) -> None:
        self.log = log
        self.future = future
        self.is_flushed = False  #: whether all but a tail of the future log is on the disk
        self.timer: Timer | None = None

    @property
    def key(self) -> TopicPartition:
        return self.log.topic, self.log.partition

    @property
    def offset_lag(self) -> int:
        """How many offsets the future log is behind."""
        return max(self.log.log_end_offset - self.future.log_end_offset, 0)


class Moves:
    """All that are under way in one broker.

    ``before_arrival`` is called with a log and the directory that it is about to be in, and may raise KafkaError to
    call the move off; ``on_arrival`` with the log that has taken its place. ``bytes_per_second`` is asked before each
    step; None is as fast as it goes, with the loop's time shared equally with everything else. Without a scheduler
    nothing moves.
    """

    def __init__(self, manager: "LogManager", scheduler: Scheduler | None) -> None:
        self.under_way: dict[TopicPartition, Move] = {}
        self.arriving: TopicPartition | None = None  #: which of them is about to be where it is said to be
        self.before_arrival: Callable[[PartitionLog, LogDirectory], object] = lambda log, directory: None
        self.on_arrival: Callable[[PartitionLog], object] = lambda log: None
        self.bytes_per_second: Callable[[], int | None] = lambda: None
        self._manager = manager
        self._scheduler = scheduler
        self._stopped = False
        self._owed_bytes = 0.0  # that were copied and should not have been yet
        self._paid_at = 0.0

    # ------------------------------------------------------------ beginning and giving up

    def begin(self, log: PartitionLog, target: LogDirectory) -> None:
        """Bring a log to ``target``; a move elsewhere is called off, and all is well when the log is there already.

        Raises KafkaStorageError.
        """
        manager = self._manager
        key = log.topic, log.partition
        move = self.under_way.get(key)
        if move is not None:
            if manager.directory_of(move.future) is target:
                return
            self.abandon(key)
        if manager.directory_of(log) is target:
            return
        self._check_all_online(key)
        path = manager.unique_path(target, key, FUTURE_SUFFIX)
        now_ms = manager.clock.time_ms()
        try:
            future = create_log(
                manager.services(target),
                path,
                *key,
                log.topic_id,
                log.config,
                now_ms=now_ms,
                start_offset=log.log_start_offset,
            )
            manager.files.fsync_path(target.path)
        except OSError as error:
            manager.directory_failed(target, error)
            raise KafkaStorageError(f"{path} cannot be made: {error}") from error
        target.futures[key] = future
        logger.info("%s is being moved to %s", log.directory, target.path)
        self._start(log, future)

    def _check_all_online(self, key: TopicPartition) -> None:
        """With a directory offline nobody knows whether it has a future log of this partition already."""
        offline = [each.path for each in self._manager.directories if each.offline is not None]
        if offline:
            topic, partition = key
            raise KafkaStorageError(f"{topic}-{partition} cannot be moved while {', '.join(offline)} is offline.")

    def _start(self, log: PartitionLog, future: PartitionLog) -> None:
        move = self.under_way[log.topic, log.partition] = Move(log, future)
        self._manager.cleaner.abort(log)  # what is copied must not be cleaned less than is believed
        self._again(move, 0)

    def abandon(self, key: TopicPartition) -> None:
        """Stop moving that partition, if it is on its way, and delete what was copied."""
        manager = self._manager
        move = self.under_way.pop(key, None)
        if move is not None and move.timer is not None:
            move.timer.cancel()
        for directory in manager.directories:
            future = directory.futures.pop(key, None)
            if future is None:
                continue
            future.go_offline("it is not wanted any more")
            doomed = manager.unique_path(directory, key, DELETE_SUFFIX)
            try:
                manager.files.rename(future.directory, doomed)
            except OSError as error:
                manager.directory_failed(directory, error)
            else:
                manager.housekeeping.delete_tree_later(directory, doomed, future.config.file_delete_delay_ms)

    def stop(self) -> None:
        """Begin and finish nothing any more; the next start goes on."""
        self._stopped = True
        for move in self.under_way.values():
            if move.timer is not None:
                move.timer.cancel()

    # ------------------------------------------------------------ at the start

    def settle(self, assigned_directory: Callable[[PartitionLog], bytes | None]) -> None:
        """Go on with what a stop, or a crash, has interrupted.

        A future log alone is what a crash left between the last two renames, and becomes the log; unless the directory
        that the partition is assigned to is offline: then the log itself may be in there.
        """
        manager = self._manager
        online = {directory.directory_id for directory in manager.online_directories}
        for directory in manager.online_directories:
            for key, future in list(directory.futures.items()):
                log = manager.logs.get(key)
                if log is not None and (manager.directory_of(log) is directory or key in self.under_way):
                    self.abandon(key)  # which nobody asked for
                elif log is not None:
                    self._start(log, future)
                elif len(online) < len(manager.directories) and assigned_directory(future) not in online:
                    logger.warning("%s stays as it is: the log may be in a directory that is offline", future.directory)
                else:
                    self._take(key, directory, future)

    def _take(self, key: TopicPartition, directory: LogDirectory, future: PartitionLog) -> None:
        """Make a future log the log."""
        manager = self._manager
        plain = f"{directory.path}/{key[0]}-{key[1]}"
        try:
            manager.files.rename(future.directory, plain)
            log = self._reopen(directory, plain, future, future.log_start_offset)
        except OSError as error:
            manager.directory_failed(directory, error)
            return
        log.maybe_set_high_watermark(future.high_watermark)
        logger.warning("%s was about to become %s, and does so now", future.directory, plain)
        self._install(key, directory, log)

    # ------------------------------------------------------------ copying

    def _again(self, move: Move, delay_s: float) -> None:
        if self._scheduler is not None and not self._stopped:
            move.timer = self._scheduler.call_later(delay_s, self._step, move)

    def _step(self, move: Move) -> None:
        """Copy some more; or, when all is there, have it flushed; or, when that is done too, let the logs change."""
        if self._stopped or self.under_way.get(move.key) is not move:
            return
        began = self._manager.clock.monotonic()
        pause_s = self._throttled(began)
        if pause_s:
            self._again(move, pause_s)
            return
        try:
            most = (TAIL_BYTES, began + TAIL_S) if move.is_flushed else (STEP_BYTES, began + STEP_S)
            self._owed_bytes += self._copy(move, *most)
            if move.offset_lag:
                move.is_flushed = False
                self._again(move, self._manager.clock.monotonic() - began)
            elif self._throttled(began):
                self._again(move, 0)
            elif move.is_flushed:
                self._swap(move)
            else:
                self._flush(move)
        except KafkaError as error:
            self._give_up(move, error)

    def _throttled(self, now: float) -> float:
        """How long to wait, in seconds, before more may be copied, of whichever log."""
        rate = self.bytes_per_second()
        since, self._paid_at = now - self._paid_at, now
        if rate is None:
            self._owed_bytes = 0
        else:
            self._owed_bytes = max(self._owed_bytes - since * rate, 0)
        if not self._owed_bytes:
            return 0 if rate != 0 else PAUSE_S
        return min(self._owed_bytes / rate, PAUSE_S) if rate else PAUSE_S

    def _give_up(self, move: Move, error: KafkaError) -> None:
        logger.error("%s stays where it is, it could not be moved: %s", move.log.directory, error)
        if isinstance(error, KafkaStorageError):
            self.under_way.pop(move.key, None)  # what is on a disk that works is gone on with after the next start
        else:
            self.abandon(move.key)

    def _copy(self, move: Move, max_bytes: int, until: float) -> int:
        """Append what the log has after the future log's end, up to so many bytes, and not beyond a time by much.

        Gives how many bytes they were.
        """
        clock, log, future = self._manager.clock, move.log, move.future
        now_ms = clock.time_ms()
        self._agree(log, future)
        copied = 0
        while copied < max_bytes and future.log_end_offset < log.log_end_offset and clock.monotonic() <= until:
            offset = future.log_end_offset
            size = min(READ_BYTES, max_bytes - copied)
            data = log.read(offset, size, up_to=log.log_end_offset, minimum_one=True)
            if not data:
                raise CorruptMessage(f"{log.directory} has nothing at offset {offset}, and does not end there")
            base_offset = int.from_bytes(data[:8])
            if base_offset < offset and future.size:  # the two are not as alike as they should be
                future.truncate_fully_and_start_at(log.log_start_offset, now_ms)
                continue
            if base_offset < offset:  # the log's start was moved into the middle of a batch
                future.truncate_fully_and_start_at(base_offset, now_ms)
            future.append_as_follower(data, now_ms=now_ms)
            copied += len(data)
        return copied

    def _agree(self, log: PartitionLog, future: PartitionLog) -> None:
        """Drop what the future log has and the log has not: before what is left now, or in an epoch cut short since."""
        epoch, end = future.latest_epoch, log.log_end_offset
        if epoch not in (-1, log.latest_epoch):
            known, end = log.end_offset_for_epoch(epoch)
            if known != epoch:
                end = min(end, future.end_offset_for_epoch(known)[1])
        future.truncate_to(max(end, 0))
        if future.log_end_offset < log.log_start_offset:
            future.truncate_fully_and_start_at(log.log_start_offset, self._manager.clock.time_ms())

    def _flush(self, move: Move) -> None:
        """Have the future log on the disk before it may take the place of one that is."""
        future = move.future
        self._adopt_offsets(move)
        self._manager.housekeeping.checkpoint_log_start_offsets()
        self._manager.housekeeping.flush(future, future.log_end_offset)
        move.is_flushed = True
        future.when_flushed(future.log_end_offset, lambda: self._again(move, 0))

    def _adopt_offsets(self, move: Move) -> None:
        log, future = move.log, move.future
        future.maybe_set_high_watermark(min(log.high_watermark, future.log_end_offset))
        future.delete_records_before(min(log.log_start_offset, future.high_watermark))

    def _adopt_state(self, log: PartitionLog, future: PartitionLog) -> None:
        """What the log knows of epochs and producers the batches that are left of it may not tell any more."""
        try:
            future.leader_epochs.entries = list(log.leader_epochs.entries)
            future.leader_epochs.write()
            future.producers.remove_snapshots(future.log_end_offset, future.log_end_offset)
        except OSError as error:
            self._manager.directory_failed(self._manager.directory_of(future), error)
            raise KafkaStorageError(f"{future.directory} cannot be written: {error}") from error
        future.producers.entries = dict(log.producers.entries)
        future.sync_later(future.leader_epochs.path)

    # ------------------------------------------------------------ changing places

    def _swap(self, move: Move) -> None:
        """The future log has all that the log has: it becomes the log. No append comes in between."""
        manager, key, log, future = self._manager, move.key, move.log, move.future
        source, target = manager.directory_of(log), manager.directory_of(future)
        self._adopt_offsets(move)
        self._adopt_state(log, future)
        future.close()
        self.arriving = key
        try:
            self.before_arrival(log, target)
        finally:
            self.arriving = None
        manager.cleaner.moved(log, source, target)
        plain = f"{target.path}/{key[0]}-{key[1]}"
        aside = manager.unique_path(source, key, DELETE_SUFFIX)
        if not self._exchange_names(log, aside, future, plain):
            self.under_way.pop(key, None)
            if not log.is_offline:
                self.before_arrival(log, source)
            return
        try:
            arrived = self._reopen(target, plain, future, log.log_start_offset)
        except OSError as error:
            manager.directory_failed(target, error)
            log.go_offline(str(error))
            return
        arrived.maybe_set_high_watermark(log.high_watermark)
        for producer_id, entry in log.producers.entries.items():
            if (there := arrived.producers.entries.get(producer_id)) is not None:
                there.batches = entry.batches  # of which a snapshot has only the last
        source.logs.pop(key, None)
        self._install(key, target, arrived)
        log.supersede()
        self.on_arrival(arrived)
        logger.info("%s is %s now", log.directory, plain)
        manager.housekeeping.delete_tree_later(source, aside, log.config.file_delete_delay_ms)
        manager.housekeeping.checkpoint_all()

    def _exchange_names(self, log: PartitionLog, aside: str, future: PartitionLog, plain: str) -> bool:
        """Rename both directories; false when that failed, and all is as it was as far as the disks let it be."""
        manager = self._manager
        files, source, target = manager.files, manager.directory_of(log), manager.directory_of(future)
        try:
            files.rename(log.directory, aside)
        except OSError as error:
            manager.directory_failed(source, error)
            return False
        try:
            files.fsync_path(source.path)  # before there is another of that name: a power cut must not leave two
        except OSError as error:
            manager.directory_failed(source, error)  # all the better that the log has left it
        try:
            files.rename(future.directory, plain)
        except OSError as error:
            manager.directory_failed(target, error)
            try:
                files.rename(aside, log.directory)
            except OSError as second:
                manager.directory_failed(source, second)
            return False
        return True

    def _reopen(self, directory: LogDirectory, path: str, future: PartitionLog, log_start_offset: int) -> PartitionLog:
        """A future log, closed, under its new name. Raises OSError."""
        manager = self._manager
        future.release()
        log = open_log(
            manager.services(directory),
            path,
            future.topic,
            future.partition,
            future.config,
            clean=True,
            recovery_point=future.recovery_point,
            log_start_offset=log_start_offset,
            now_ms=manager.clock.time_ms(),
        )
        log.recovery_point = min(future.recovery_point, log.log_end_offset)
        return log

    def _install(self, key: TopicPartition, directory: LogDirectory, log: PartitionLog) -> None:
        directory.futures.pop(key, None)
        self.under_way.pop(key, None)
        self._manager.logs[key] = directory.logs[key] = log
