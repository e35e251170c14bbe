"""An export publishes files that are due even if no records arrive and Spark runs no batch."""

from barnabas.pipelines.jobs.export import Export, ExportOptions


class Target:
    def __init__(self):
        self.done = []

    def publish(self):
        self.done.append("publish")

    def close(self):
        self.done.append("close")


class Query:
    id = "1f0c99aa"

    def exception(self):
        return None


class Opened(Export):
    """An export with a running query and an open target."""

    def __init__(self, clock, **options):
        super().__init__(ExportOptions(topics=("orders",), to="/nowhere", **options), now=lambda: clock[0])
        self._query, self.target = Query(), Target()

    def _open(self, export):
        assert export == Query.id
        return self.target


def test_files_are_checked_ten_times_during_publish_seconds():
    clock = [0.0]
    job = Opened(clock, publish_seconds=600)
    for second in range(150):
        clock[0] = second
        job.tick()
    assert job.target.done == ["publish"] * 2


def test_a_running_batch_keeps_the_target():
    clock = [0.0]
    job = Opened(clock, publish_seconds=0)
    clock[0] = 5
    with job._lock:
        job.tick()
    assert job.target.done == []
    job.tick()
    assert job.target.done == ["publish"]


def test_nothing_is_checked_before_the_start():
    clock = [0.0]
    job = Opened(clock)
    job._query = None
    clock[0] = 1000
    job.tick()
    job.close()
    assert job.target.done == []
