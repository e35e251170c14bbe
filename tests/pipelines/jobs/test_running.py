"""Starting and stopping of jobs, with fake queries."""

import threading

import pytest

from barnabas.pipelines.jobs import running
from barnabas.pipelines.jobs.progress import Progress
from barnabas.pipelines.jobs.running import BatchJob, Job, JobFailed, Outcome, checkpoint_of, run
from barnabas.pipelines.jobs.stopping import Stopping

SPARK = object()


class Query:
    """A query behind Spark Connect, which ends after some checks, or when it is stopped."""

    def __init__(self, looks=None, *, error=None, busy=0, name=None):
        self.name, self.ticks, self.error, self.busy = name, looks, error, busy
        self.stops = self.number = 0
        self.recentProgress = []

    @property
    def isActive(self):
        if self.ticks is not None:
            self.ticks -= 1
            return self.ticks > 0 and not self.stops
        return not self.stops

    @property
    def status(self):
        self.busy -= 1
        return {"isTriggerActive": self.busy > 0}

    @property
    def lastProgress(self):
        self.number += 1
        self.recentProgress.append(
            {
                "timestamp": f"{self.number:05}",
                "batchId": self.number,
                "numInputRows": 10,
                "durationMs": {"triggerExecution": 100, "addBatch": 50},
                "sources": [],
            }
        )
        return self.recentProgress[-1]

    def exception(self):
        return self.error

    def stop(self):
        self.stops += 1


class Sample(Job):
    name = "sample"

    def __init__(self, *queries):
        self.queries, self.closed = queries, 0

    def start(self, spark, *, once, checkpoint):
        assert (spark, once, checkpoint) == (SPARK, True, "here")
        return self.queries

    def close(self):
        self.closed += 1


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(running, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(running, "STOPPING_SECONDS", 0.001)


def start(job, **more):
    return run(job, SPARK, once=True, checkpoint="here", **more)


def test_queries_run_to_their_end():
    results = []
    job = Sample(Query(3), Query(5, name="other"))
    assert start(job, report=results.append) == Outcome(100, 10, False)
    assert [each.query for each in results].count("sample") == [each.query for each in results].count("other") == 5
    assert job.closed == 1


def test_told_to_stop_they_end_when_they_wait():
    stop = threading.Event()
    stop.set()
    one, other = Query(busy=4), Query()
    outcome = start(Sample(one, other), stop=stop)
    assert outcome.stopped
    assert one.stops == other.stops == 1
    assert one.busy <= 0


def test_when_one_fails_the_others_are_ended_and_it_is_told():
    other = Query()
    job = Sample(
        Query(2, error=RuntimeError("[STREAM_FAILED] Query [id = 1] terminated with exception: no room")), other
    )
    with pytest.raises(JobFailed, match=r"^no room$"):
        start(job)
    assert other.stops == 1
    assert job.closed == 1


def test_a_job_is_ticked_while_its_queries_run():
    class Ticking(Sample):
        ticks = 0

        def tick(self):
            self.ticks += 1

    job = Ticking(Query(4))
    start(job)
    assert job.ticks == 3


@pytest.mark.parametrize("raised", [RuntimeError("nobody is shown it"), KeyboardInterrupt()])
def test_nothing_runs_any_more_when_a_job_is_closed(raised):
    class Watchful(Sample):
        def close(self):
            super().close()
            assert [query.stops for query in self.queries] == [1, 0]

    def report(progress):
        raise raised

    job = Watchful(Query(), Query(1))
    with pytest.raises(JobFailed if isinstance(raised, Exception) else KeyboardInterrupt):
        start(job, report=report)
    assert job.closed == 1


def test_what_cannot_start():
    class Wrong(Sample):
        def start(self, spark, *, once, checkpoint):
            raise self.queries[0]

    job = Wrong(ValueError("to is empty"))
    with pytest.raises(ValueError, match="to is empty"):
        start(job)
    assert job.closed == 1
    with pytest.raises(JobFailed, match="nobody answers"):
        start(Wrong(OSError("nobody answers")))


class Batches(BatchJob):
    name = "batches"

    def __init__(self, error=None):
        self.error = error

    def work(self, spark, *, once, checkpoint, report, stop):
        for number in range(3):
            if stop.is_set():
                return
            report(Progress("batches", number, 7, 0.1, None))
        if self.error:
            raise self.error


def test_a_batch_job():
    assert start(Batches()) == Outcome(21, 3, False)
    stop = threading.Event()
    assert start(Batches(), stop=stop, report=lambda _: stop.set()) == Outcome(7, 1, True)
    with pytest.raises(JobFailed, match="no room"):
        start(Batches(OSError("no room")))


def test_the_checkpoint():
    class Beside(Batches):
        def checkpoint_beside(self):
            return "beside"

    assert checkpoint_of(Beside(), None) == "beside"
    assert checkpoint_of(Beside(), "there") == "there"
    with pytest.raises(ValueError, match=r"checkpoint is missing: .* such as checkpoints/batches"):
        checkpoint_of(Batches(), None)


class Execution:
    """Spark's own side of a query, as far as a job uses it; each step of it is (batch, durations, active)."""

    def __init__(self, *steps):
        self.steps, self.results, self.stops = list(steps), [], 0
        self._jsq = self

    streamingQuery = getLatestExecutionContext = state = lambda self: self

    @property
    def now(self):
        return self.steps[0]

    def batchId(self):
        return self.now[0]

    @property
    def status(self):
        return {"isTriggerActive": self.now[2]}

    def getDuration(self, name):
        return self if name in self.now[1] else Nothing()

    def isDefined(self):
        return True

    def set(self, _):
        self.results.append(self.now)

    def stop(self):
        self.stops += 1


class Nothing:
    def isDefined(self):
        return False


PLANNING = (4, {"latestOffset"}, True)
RUNNING = (4, {"latestOffset", "queryPlanning"}, True)
WRITTEN = (4, {"latestOffset", "queryPlanning", "addBatch"}, True)
NEXT = (5, {"latestOffset"}, True)
IDLE = (5, {"latestOffset"}, False)


@pytest.mark.parametrize(
    ("steps", "told_at"),
    [
        ([PLANNING, PLANNING, RUNNING, RUNNING, WRITTEN], 3),
        ([PLANNING, RUNNING, NEXT, (5, {"queryPlanning"}, True), (5, {"queryPlanning"}, True)], 4),
        ([PLANNING, WRITTEN, WRITTEN], 1),
        ([PLANNING, IDLE], 1),
        ([IDLE], 0),
    ],
)
def test_a_query_is_told_while_it_runs_a_batch_or_has_none(monkeypatch, steps, told_at):
    monkeypatch.setattr("barnabas.pipelines.jobs.stopping._terminated", lambda query: "TERMINATED")
    execution = Execution(*steps)
    ending = Stopping(execution)
    for count, step in enumerate(steps):
        ending.step()
        assert execution.results == ([] if count < told_at else [steps[told_at]]), step
        execution.steps.pop(0)
    assert execution.stops == 0
    execution.steps.append(IDLE)
    ending.step()
    assert execution.stops == 1
