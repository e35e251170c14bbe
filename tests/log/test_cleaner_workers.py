"""The worker that runs jobs in a thread: with a cleaner that the test controls, and with a real process."""

import asyncio
import queue
import threading

import pytest

from barnabas.clock import SystemClock
from barnabas.config.topic import TopicConfig
from barnabas.log.background import BackgroundThread
from barnabas.log.cleaner import CleanerSettings
from barnabas.log.cleaner_workers import Stopped, ThreadWorker
from barnabas.log.cleaning.process import CleaningAborted, ProcessCleaner
from barnabas.log.files import DiskFiles
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch

SECONDS = 60


class Waiting:
    """A cleaner whose job calls back once and then waits for the test to end it."""

    def __init__(self):
        self.ends = queue.SimpleQueue()
        self.answers = queue.SimpleQueue()
        self.begun = threading.Event()
        self.is_closed = False

    def run(self, job, on_group):
        self.begun.set()
        self.answers.put(on_group("a group"))
        end = self.ends.get(timeout=SECONDS)
        if isinstance(end, Exception):
            raise end
        return end

    def abort(self):
        self.ends.put(CleaningAborted())

    def close(self):
        self.is_closed = True
        self.abort()


class Loop:
    """Collects calls from threads, and runs one in :meth:`step`."""

    def __init__(self):
        self.calls = queue.SimpleQueue()

    def call_soon_threadsafe(self, callback, *args):
        self.calls.put((callback, args))

    def step(self):
        callback, args = self.calls.get(timeout=SECONDS)
        callback(*args)


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def cleaner():
    return Waiting()


@pytest.fixture
def worker(loop, cleaner):
    return ThreadWorker(loop.call_soon_threadsafe, lambda: cleaner)


def test_the_outcome_is_passed_to_the_loop(loop, worker, cleaner):
    outcomes = []
    worker.start("a job", lambda group: group * 2, outcomes.append)
    cleaner.ends.put("a result")
    loop.step()
    assert (outcomes, cleaner.answers.get()) == (["a result"], "a groupa group")
    worker.close()
    assert cleaner.is_closed


def test_a_call_in_the_loop(loop, worker, cleaner):
    here, outcomes = threading.get_ident(), []
    worker.start("a job", lambda group: worker.call_in_loop(threading.get_ident), outcomes.append)
    loop.step()
    assert cleaner.answers.get(timeout=SECONDS) == here
    worker.abort()
    loop.step()
    assert isinstance(outcomes[0], CleaningAborted)
    worker.close()


def test_an_error_of_a_call_in_the_loop(loop, worker, cleaner):
    outcomes = []
    worker.start("a job", lambda group: worker.call_in_loop(lambda: 1 // 0), outcomes.append)
    loop.step()
    loop.step()
    assert isinstance(outcomes[0], ZeroDivisionError)
    worker.close()


def test_a_call_while_the_loop_stops(loop, worker, cleaner):
    """The loop waits for the thread when it stops, so the thread must not wait for the loop."""
    groups, outcomes = [], []
    worker.start("a job", lambda group: worker.call_in_loop(lambda: groups.append(group)), outcomes.append)
    assert cleaner.begun.wait(SECONDS)
    worker.close()
    assert not groups
    calls = []
    while not loop.calls.empty():
        calls.append(loop.calls.get())
    assert isinstance(calls[-1][1][0], Stopped)


def test_a_call_after_close(loop, worker):
    worker.close()
    with pytest.raises(Stopped):
        worker.call_in_loop(lambda: 1)


def test_a_closed_loop(cleaner):
    def gone(*call):
        raise RuntimeError("the loop is closed")

    worker = ThreadWorker(gone, lambda: cleaner)
    worker.start("a job", lambda group: None, lambda outcome: None)
    assert cleaner.begun.wait(SECONDS)
    worker.close()  # pytest reports an exception in the thread


class Whole:
    """A real log manager with files on a disk, a loop, and a process that cleans."""

    def __init__(self, path, loop):
        self.workers = []
        self.manager = LogManager(
            DiskFiles(),
            [str(path)],
            clock=SystemClock(),
            scheduler=loop,
            background=BackgroundThread(loop.call_soon_threadsafe),
            cleaner_settings=CleanerSettings(log_cleaner_backoff_ms=10),
            new_cleaner_worker=lambda: ThreadWorker(loop.call_soon_threadsafe, self.new_worker),
        )
        self.manager.start(1)
        self.manager.open_all(lambda topic: CONFIG)

    def new_worker(self):
        self.workers.append(ProcessCleaner())
        return self.workers[-1]

    def filled(self, topic="orders"):
        log = self.manager.create(topic, 0, bytes(16), CONFIG)
        for number in range(400):
            batch = build_batch([(b"%d" % (number % 10), b"x" * 100, 0)])
            log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=0)
        log.maybe_set_high_watermark(log.log_end_offset)
        return log

    async def until(self, reached):
        async with asyncio.timeout(SECONDS):
            while not reached():
                await asyncio.sleep(0.01)

    def ended(self):
        return all(worker.pid is None for worker in self.workers)


CONFIG = TopicConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=10_000, retention_ms=-1)


def test_the_process_cleans_and_ends_with_the_broker(tmp_path):
    async def story():
        whole = Whole(tmp_path, asyncio.get_running_loop())
        assert not whole.workers
        log = whole.filled()
        await whole.until(lambda: log.size < 15_000 and not whole.manager.cleaner.passes)
        assert len(whole.workers) == 1 and not whole.ended()
        whole.manager.close()
        assert whole.ended()

    asyncio.run(story())


@pytest.mark.parametrize("how", ["close", "delete", "kill"])
def test_a_change_at_any_moment(tmp_path, how):
    """No record is lost, nothing hangs, no process is left."""

    async def story(moment):
        whole = Whole(tmp_path / str(moment), asyncio.get_running_loop())
        log = whole.filled()
        await whole.until(lambda: whole.workers)
        await asyncio.sleep(moment)  # before, during or after the first pass
        if how == "delete":
            whole.manager.delete_async(log)
            log = whole.filled()
        elif how == "kill" and whole.workers[0].pid is not None:
            whole.workers[0]._process.kill()
        if how != "close":
            await whole.until(lambda: log.size < 15_000 and not whole.manager.cleaner.passes)
        whole.manager.close()
        assert whole.ended()
        again = Whole(tmp_path / str(moment), asyncio.get_running_loop())
        found = again.manager.get("orders", 0)
        assert found.log_end_offset == 400
        names = DiskFiles().sizes(found.directory)
        assert not any(name.endswith((".cleaned", ".swap")) for name in names)
        again.manager.close()

    for moment in (0, 0.02, 0.15):
        asyncio.run(story(moment))
