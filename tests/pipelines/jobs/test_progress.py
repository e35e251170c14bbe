"""Spark's progress events, each of which is reported once."""

import json

import pytest
from pyspark.sql import Row

from barnabas.pipelines.jobs.progress import COUNTED, Progress, ProgressReporter, lag_of, rows_of


class Query:
    """A streaming query with only its progress."""

    name = None

    def __init__(self):
        self.recentProgress = []

    @property
    def lastProgress(self):
        return self.recentProgress[-1] if self.recentProgress else None

    def batch(self, number, rows, *, ran=True, end=None, latest=None):
        self.recentProgress.append(
            {
                "timestamp": f"2026-11-22T03:00:00.{len(self.recentProgress):03}Z",
                "batchId": number,
                "numInputRows": rows,
                "durationMs": {"triggerExecution": 500, **({"addBatch": 400} if ran else {})},
                "sources": [{"endOffset": end, "latestOffset": latest}],
            }
        )


def test_each_batch_is_told_once_and_in_order():
    results, query = [], Query()
    reporter = ProgressReporter(query, "import", results.append)
    reporter.poll()
    assert results == []
    query.batch(0, 10)
    reporter.poll()
    reporter.poll()
    query.batch(1, 20)
    query.batch(2, 0, ran=False)
    query.batch(2, 5, end='{"orders": {"0": 7}}', latest='{"orders": {"0": 9, "1": 4}}')
    reporter.poll()
    assert results == [
        Progress("import", 0, 10, 0.5, None),
        Progress("import", 1, 20, 0.5, None),
        Progress("import", 2, 5, 0.5, 2),
    ]
    assert [each.rows_per_second for each in results] == [20, 40, 10]


def test_batches_that_spark_has_forgotten_are_no_reason_to_tell_any_twice():
    results, query = [], Query()
    reporter = ProgressReporter(query, "export", results.append)
    for number in range(5):
        query.batch(number, 1)
    reporter.poll()
    query.batch(5, 1)
    query.batch(6, 1)
    del query.recentProgress[:6]
    reporter.poll()
    assert [each.batch for each in results] == [0, 1, 2, 3, 4, 6]


@pytest.mark.parametrize(
    ("offsets", "lag"),
    [
        ([], None),
        ([('{"logOffset": 5}', None)], None),
        ([('{"logOffset": 5}', '{"logOffset": 7}')], None),
        ([('{"orders": {"0": 7, "1": 3}}', '{"orders": {"0": 9, "1": 3}}')], 2),
        ([('{"orders": {"0": 9}}', '{"orders": {"0": 7}}')], 0),
        ([('{"a": {"0": 1}}', '{"a": {"0": 4}}'), ('{"b": {"0": 1}}', '{"b": {"0": 2}}'), (None, None)], 4),
        (
            [
                (
                    json.dumps({"offsets": {"a": {"0": 1}}, "ids": {"a": "x"}}),
                    json.dumps({"offsets": {"a": {"0": 4}}, "ids": {"a": "x"}}),
                )
            ],
            3,
        ),
    ],
)
def test_lag(offsets, lag):
    assert lag_of(offsets) == lag


def test_rows_that_a_query_counts_itself():
    assert rows_of({"numInputRows": 3}) == 3
    assert rows_of({"numInputRows": 3, "observedMetrics": {}}) == 3
    assert rows_of({"numInputRows": 3, "observedMetrics": {COUNTED: Row(rows=500)}}) == 500
    assert rows_of({"numInputRows": 0, "observedMetrics": {COUNTED: Row(rows=None)}}) == 0, "a sum of nothing"


def test_rows_as_spark_connect_tells_them():
    sources = [{"numInputRows": 3}, {"numInputRows": 4}]
    assert rows_of({"numInputRows": None, "observedMetrics": {}, "sources": sources}) == 7
    for counted, rows in ((1500, 1500), (None, 0)):
        row = Row(values=[counted], schema={"type": "struct", "fields": [{"name": "rows", "type": "long"}]})
        assert rows_of({"numInputRows": None, "observedMetrics": {COUNTED: row}, "sources": sources}) == rows
