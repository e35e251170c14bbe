"""An export makes visible what is due, though no records come and Spark runs no batch."""

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
    """Its query runs, and its target is there."""

    def __init__(self, clock, **options):
        super().__init__(ExportOptions(topics=("orders",), to="/nowhere", **options), now=lambda: clock[0])
        self._query, self.target = Query(), Target()

    def _open(self, export):
        assert export == Query.id
        return self.target


def test_it_looks_ten_times_within_the_time_that_records_may_be_held_back():
    clock = [0.0]
    job = Opened(clock, publish_seconds=600)
    for second in range(150):
        clock[0] = second
        job.look()
    assert job.target.done == ["publish"] * 2


def test_it_leaves_the_target_to_a_batch_that_is_at_hand():
    clock = [0.0]
    job = Opened(clock, publish_seconds=0)
    clock[0] = 5
    with job._lock:
        job.look()
    assert job.target.done == []
    job.look()
    assert job.target.done == ["publish"]


def test_it_does_not_look_before_it_has_begun():
    clock = [0.0]
    job = Opened(clock)
    job._query = None
    clock[0] = 1000
    job.look()
    job.close()
    assert job.target.done == []
