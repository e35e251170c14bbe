"""The log cleaner: lets the logs of compacted topics be compacted, the dirtiest first, and old segments of them go.

Knows nothing of records. Which logs there is something to do in, :mod:`barnabas.log.cleanable` knows; the work is done
off the broker's interpreter by :mod:`barnabas.log.cleaning`; and how the new segments take the place of the old ones,
:mod:`barnabas.log.swapping` knows. The whole goes the way of Apache Kafka's ``LogCleaner`` and ``LogCleanerManager``.

``cleaner-offset-checkpoint``, one in each log directory, keeps up to where each log is clean.
"""

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.errors import CorruptMessage, KafkaError, KafkaStorageError
from barnabas.log import checkpoints, swapping
from barnabas.log.checkpoints import TopicPartition
from barnabas.log.cleanable import LogToClean, examine, first_dirty_offset, job_of
from barnabas.log.cleaner_hands import Hand, Outcome, Stopped
from barnabas.log.cleaning.job import CleanedGroup, CleaningResult
from barnabas.log.housekeeping import Settings
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from barnabas.log.log_manager import LogManager

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""How long a cleaner's process is kept without anything to do."""


class CleanerSettings(NamedTuple):
    """The broker's settings of the cleaner, under Kafka's names and with its defaults; ms and bytes."""

    log_cleaner_enable: bool = True
    log_cleaner_threads: int = 1
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_io_max_bytes_per_second: float = sys.float_info.max
    log_cleaner_dedupe_buffer_size: int = 134_217_728
    log_cleaner_io_buffer_load_factor: float = 0.9

    @classmethod
    def from_config(cls, config: Settings) -> Self:
        """The values that ``config`` has under Kafka's dotted names."""
        return cls(**{name: config[name.replace("_", ".")] for name in cls._fields})


class Pass:
    """One log that is being cleaned."""

    __slots__ = ("directory", "hand", "is_off", "log")

    def __init__(self, log: PartitionLog, directory: LogDirectory, hand: Hand) -> None:
        self.log = log
        self.directory = directory
        self.hand = hand
        self.is_off = False  #: whether nothing of it is wanted any more


class LogCleaner:
    """The cleaner of one broker: :meth:`start` when all logs are open, :meth:`stop` before they are closed.

    ``new_hand`` makes what a job is done by; there are at most ``log.cleaner.threads`` of them, and none while there is
    nothing to do.
    """

    def __init__(
        self,
        manager: "LogManager",
        clock: Clock,
        scheduler: Scheduler | None,
        settings: CleanerSettings,
        new_hand: Callable[[], Hand],
    ) -> None:
        self.settings = settings
        self.checkpoints: dict[LogDirectory, dict[TopicPartition, int]] = {}
        self.uncleanable: set[PartitionLog] = set()  #: in which something is wrong; they are left as they are
        self.passes: dict[PartitionLog, Pass] = {}
        self._manager = manager
        self._clock = clock
        self._scheduler = scheduler
        self._new_hand = new_hand
        self._hands: list[Hand] = []  # that have nothing to do
        self._timer: Timer | None = None
        self._last_pass_s = 0.0
        self._goes = False

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Look after the logs from now on."""
        for directory in self._manager.online_directories:
            try:
                self._load(directory)
            except OSError as error:
                self._manager.directory_failed(directory, error)
        self._goes = self._scheduler is not None
        self._look_in(0)

    def _load(self, directory: LogDirectory) -> None:
        """Read a directory's checkpoint; what it says of a log that a crash has cut shorter does not count."""
        found = directory.read_checkpoint(checkpoints.CLEANER_OFFSETS)
        logs = directory.logs
        self.checkpoints[directory] = {
            key: offset for key, offset in found.items() if key in logs and offset <= logs[key].log_end_offset
        }

    def stop(self) -> None:
        """End what is under way, and begin nothing more."""
        self._goes = False
        if self._timer is not None:
            self._timer.cancel()
        self._drop_hands()

    def reconfigure(self, settings: CleanerSettings) -> None:
        """Go by other settings: what is under way begins again with them, as Apache Kafka has it."""
        if settings == self.settings:
            return
        self.settings = settings
        if self._goes:
            self._rest()
            self._drop_hands()
            self._look_in(0)

    def _drop_hands(self) -> None:
        for running in self.passes.values():
            running.is_off = True
        for hand in [*self._hands, *(running.hand for running in self.passes.values())]:
            hand.close()
        self.passes.clear()
        self._hands.clear()

    def _rest(self) -> None:
        for hand in self._hands:
            hand.rest()
        self._hands.clear()

    # ------------------------------------------------------------ choosing

    def _look_in(self, delay_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._goes and self.settings.log_cleaner_enable and self._scheduler is not None:
            self._timer = self._scheduler.call_later(delay_ms / 1000, self.look)

    def look(self) -> None:
        """Begin what is to be done, as far as there are threads for it."""
        self._retain()
        # Not a byte a second is none ever.
        threads = self.settings.log_cleaner_threads if self.settings.log_cleaner_io_max_bytes_per_second > 0 else 0
        while len(self.passes) < threads and self._begin_dirtiest():
            self._last_pass_s = self._clock.monotonic()
        if not self.passes and self._clock.monotonic() - self._last_pass_s >= IDLE_S:
            self._rest()
        self._look_in(self.settings.log_cleaner_backoff_ms)

    def _retain(self) -> None:
        """Let old segments go, where no cleaner is just reading them."""
        now_ms = self._clock.time_ms()
        for log in list(self._manager.logs.values()):
            if log.config.compacts and log not in self.passes and not log.is_offline:
                try:
                    log.enforce_retention(now_ms)
                except KafkaStorageError:
                    continue  # its directory went offline, and said so

    def _begin_dirtiest(self) -> bool:
        """Begin to clean the dirtiest log of those that it is time for; whether there is one."""
        now_ms = self._clock.time_ms()
        due = [found for log in list(self._manager.logs.values()) if (found := self._due(log, now_ms)) is not None]
        if not due:
            return False
        self._begin(max(due, key=lambda found: found.ratio), now_ms)
        return True

    def _due(self, log: PartitionLog, now_ms: int) -> LogToClean | None:
        if not log.config.compacts or len(log.segments) == 1 or log.is_offline:
            return None
        if log in self.passes or log in self.uncleanable or (log.topic, log.partition) in self._manager.moves.under_way:
            return None
        directory = self._manager.directory_of(log)
        if log.recovery_point < log.segments.active.base_offset:
            self._manager.housekeeping.flush(log, log.segments.active.base_offset)
        try:
            found = examine(log, self._first_dirty_offset(log, directory), now_ms)
        except OSError as error:
            self._manager.directory_failed(directory, error)
            return None
        except CorruptMessage as error:
            self._give_up(log, error)
            return None
        return found if found is not None and found.is_due else None

    def _first_dirty_offset(self, log: PartitionLog, directory: LogDirectory) -> int:
        """Where cleaning goes on; a checkpoint that is not in the log is put right, and told of once."""
        offsets, key = self.checkpoints[directory], (log.topic, log.partition)
        checkpoint = offsets.get(key)
        first_dirty = first_dirty_offset(log, checkpoint)
        if checkpoint is not None and checkpoint != first_dirty:
            offsets[key] = first_dirty
            self._write_checkpoint(directory)
        return first_dirty

    # ------------------------------------------------------------ one pass

    def _begin(self, found: LogToClean, now_ms: int) -> None:
        log, settings = found.log, self.settings
        directory, hand = self._manager.directory_of(log), self._hands.pop() if self._hands else self._new_hand()
        running = self.passes[log] = Pass(log, directory, hand)
        # That it is there says from now on that there may be holes.
        self.checkpoints[directory].setdefault((log.topic, log.partition), found.first_dirty_offset)
        self._write_checkpoint(directory)
        try:
            job = job_of(
                found,
                now_ms,
                buffer_bytes=settings.log_cleaner_dedupe_buffer_size // settings.log_cleaner_threads,
                load=settings.log_cleaner_io_buffer_load_factor,
                bytes_per_second=settings.log_cleaner_io_max_bytes_per_second / settings.log_cleaner_threads,
            )
        except OSError as error:
            self._done(running, error)
            return
        logger.debug("%s is being cleaned from %d to %d", log, found.first_dirty_offset, found.end_offset)
        hand.begin(job, lambda group: self._put_in_place(running, group), lambda outcome: self._done(running, outcome))

    def _put_in_place(self, running: Pass, group: CleanedGroup) -> None:
        """Where the job is done: a group is cleaned, and shall take the place of what it was made from."""
        files, directory = self._manager.files, running.log.directory
        swapping.stage(files, directory, group)
        try:
            is_in_place = running.hand.ask(lambda: self._swap_in(running, group))
        except Stopped:
            is_in_place = False
        if not is_in_place:
            swapping.discard(files, directory, group)
            raise Stopped
        files.fsync_path(directory)

    def _swap_in(self, running: Pass, group: CleanedGroup) -> bool:
        return not running.is_off and not running.log.is_offline and running.log.replace_segments(group)

    def _done(self, running: Pass, outcome: Outcome) -> None:
        log, directory = running.log, running.directory
        if self.passes.get(log) is not running:
            return  # everything was stopped
        del self.passes[log]
        self._hands.append(running.hand)
        self._last_pass_s = self._clock.monotonic()
        wait_ms = 0
        if running.is_off or log.is_offline:
            pass  # whatever became of it, the log is another one now
        elif isinstance(outcome, CleaningResult):
            self._cleaned(log, directory, outcome)
        elif isinstance(outcome, OSError):
            self._manager.directory_failed(directory, outcome)
        else:
            wait_ms = self._failed(log, outcome)
        self._look_in(wait_ms)

    def _cleaned(self, log: PartitionLog, directory: LogDirectory, result: CleaningResult) -> None:
        self.checkpoints[directory][log.topic, log.partition] = result.next_dirty_offset
        self._write_checkpoint(directory)
        told = result.statistics
        logger.info(
            "%s-%d is clean up to offset %d: %d of %d records are left, %d of %d bytes, %d keys, %.1f s%s",
            log.topic,
            log.partition,
            result.next_dirty_offset,
            told.records_kept,
            told.records_read,
            told.bytes_kept,
            told.bytes_read,
            told.map_entries,
            told.seconds,
            "; there was no room for more keys" if told.map_is_full else "",
        )

    def _failed(self, log: PartitionLog, error: BaseException) -> int:
        """Something is wrong with the log, or with the cleaner; how long to wait, in ms."""
        from barnabas.log.cleaning.process import WorkerDied

        if isinstance(error, Stopped):  # a segment was not there any more, or still is in use: that may have changed
            return self.settings.log_cleaner_backoff_ms
        if isinstance(error, WorkerDied):
            logger.warning("%s-%d was not cleaned, and will be tried again: %s", log.topic, log.partition, error)
            return self.settings.log_cleaner_backoff_ms
        self._give_up(log, error)
        return 0

    def _give_up(self, log: PartitionLog, error: BaseException) -> None:
        """Leave a log as it is, until the next start: what is wrong with it does not get better by trying."""
        self.uncleanable.add(log)
        trace = None if isinstance(error, KafkaError) else error
        logger.error("%s-%d is not cleaned any more: %s", log.topic, log.partition, error, exc_info=trace)

    # ------------------------------------------------------------ what others tell

    def abort(self, log: PartitionLog) -> None:
        """Nothing that is being done to that log is wanted any more: it changes otherwise, or is gone."""
        running = self.passes.get(log)
        if running is not None and not running.is_off:
            running.is_off = True
            running.hand.abort()

    def forget(self, log: PartitionLog) -> None:
        """The log is deleted: a new one under its name has never been cleaned."""
        self.abort(log)
        self.uncleanable.discard(log)
        directory = self._manager.directory_of(log)
        if self.checkpoints.get(directory, {}).pop((log.topic, log.partition), None) is not None:
            self._write_checkpoint(directory)

    def truncated(self, log: PartitionLog, end: int) -> None:
        """What comes from ``end`` on was never cleaned, however far the log had been."""
        self.abort(log)
        directory, key = self._manager.directory_of(log), (log.topic, log.partition)
        offsets = self.checkpoints.get(directory, {})
        if offsets.get(key, -1) > end:
            offsets[key] = end
            self._write_checkpoint(directory)

    def moved(self, log: PartitionLog, source: LogDirectory, target: LogDirectory) -> None:
        """The log is about to leave one directory, where a copy of it in another takes its place."""
        self.abort(log)
        offset = self.checkpoints.get(source, {}).pop((log.topic, log.partition), None)
        if offset is not None:
            self.checkpoints.setdefault(target, {})[log.topic, log.partition] = offset
            self._write_checkpoint(source)
            self._write_checkpoint(target)

    def _write_checkpoint(self, directory: LogDirectory) -> None:
        write = directory.checkpoint(checkpoints.CLEANER_OFFSETS, dict(self.checkpoints[directory]))
        if write is not None:
            self._manager.housekeeping.in_background(directory, write)
