"""The plan of a backfill: its ranges, its stored state, and refused options."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.jobs.backfill import would_change
from barnabas.pipelines.jobs.backfilling.options import BackfillOptions
from barnabas.pipelines.jobs.backfilling.plan import Plan, Span, batches, partition_counts

PLAN = Plan("barnabas-backfill-1", {"source": "/data"}, {"a.parquet": 10}, [Span("orders", 1, 5, 3, 9)], 17)
DAY = 86_400_000

spans = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(1, 60), st.integers(0, 50), st.integers(0, 99)),
    unique_by=lambda row: row[:2],
).map(
    lambda row: [Span(topic, number, count, start, start + count + holes) for topic, number, count, start, holes in row]
)


@given(spans, st.integers(1, 70))
def test_batches_hold_each_offset_once_and_in_order(given_spans: list[Span], records: int) -> None:
    planned = batches(given_spans, records)
    for span in given_spans:
        its = [piece for batch in planned for piece in batch if piece[:2] == span[:2]]
        assert [its[0].start, its[-1].end] == [span.start, span.end]
        assert all(earlier.end == later.start for earlier, later in itertools.pairwise(its))
        assert max(piece.end - piece.start for piece in its) <= (span.end - span.start) // len(planned) + 1


def test_a_plan_is_kept_as_text() -> None:
    assert Plan.from_json(PLAN.to_json()) == PLAN
    assert PLAN.records == 5


def test_a_run_that_would_not_do_the_same_is_refused() -> None:
    PLAN.check_same({"source": "/data"})
    with pytest.raises(ValueError, match="source is '/other', but was '/data' when this backfill began"):
        PLAN.check_same({"source": "/other"})
    PLAN.check_files({"a.parquet": 10, "b.parquet": 1})
    with pytest.raises(ValueError, match=r"a\.parquet is not there any more"):
        PLAN.check_files({})
    with pytest.raises(ValueError, match=r"a\.parquet is not what it was"):
        PLAN.check_files({"a.parquet": 11})


def test_topics_get_the_partitions_they_had() -> None:
    assert partition_counts(PLAN.spans, {}) == {"orders": 2}
    assert partition_counts(PLAN.spans, {"orders": 6, "payments": 3}) == {"orders": 6}


def test_topics_that_would_not_keep_what_they_are_given_are_refused() -> None:
    assert would_change({"retention.ms": "-1"}, 0, now=DAY) is None
    assert would_change({"retention.ms": str(2 * DAY)}, 0, now=DAY) is None
    assert "retention.ms is 1, but the oldest record is of 3 days ago" in str(
        would_change({"retention.ms": "1"}, 0, now=3 * DAY)
    )
    assert would_change({"retention.ms": "1", "cleanup.policy": "compact"}, 0, now=3 * DAY) is None
    assert "LogAppendTime" in str(would_change({"message.timestamp.type": "LogAppendTime"}, 0, now=0))


def options(**said: object) -> BackfillOptions:
    return BackfillOptions(**{"source": "/data/orders", **said})


def test_times_and_offsets() -> None:
    given_options = options(
        starting_timestamp="2026-11-21T15:00:00",
        ending_timestamp="1795273200000",
        ending_offsets='{"orders": {"0": 17}}',
    )
    assert given_options.times() == (1795273200000, 1795273200000)
    assert given_options.offsets() == ({}, {"orders": {0: 17}})
    assert options(starting_timestamp="2026-11-21T16:00:00+01:00").times()[0] == 1795273200000


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"starting_timestamp": "yesterday"}, "starting_timestamp is 'yesterday'"),
        ({"ending_offsets": "[1]"}, "ending_offsets is"),
        ({"starting_offsets": '{"orders": 3}'}, "starting_offsets is"),
        ({"batch_records": 0}, "batch_records is 0"),
    ],
)
def test_options_that_cannot_be_are_named(said: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        options(**said)


def test_other_options_are_another_backfill() -> None:
    assert options().checkpoint_beside() == options(batch_records=5).checkpoint_beside()
    assert options().checkpoint_beside() != options(to_topic="x").checkpoint_beside()
    given_options = options(client={"client.id": "me", "compression.type": "zstd"})
    assert given_options.client_settings()["client.id"] == "me"
    assert given_options.write_settings().compression.name == "ZSTD"
