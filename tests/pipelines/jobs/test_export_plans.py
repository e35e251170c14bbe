"""The files that an export merges, their names, and valid options."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.jobs.exporting.layout import Layout, Part, fingerprint, leaf_of
from barnabas.pipelines.jobs.exporting.merging import Limits, due
from barnabas.pipelines.jobs.exporting.options import ExportOptions
from barnabas.pipelines.values import Json, Raw, Utf8

LAYOUT = Layout("1f0c99aa-0000-4000-8000-000000000000", ".parquet")
LIMITS = Limits(100, 60)

leaves = st.sampled_from(["", "date=2026-11-21", "topic=orders/date=2026-11-21"])
parts = st.builds(
    Part, leaves, st.integers(0, 20), st.integers(0, 20), st.sampled_from(["00000000", "5d41402a"]),
    st.integers(0, 250), st.floats(0, 1000),
)  # fmt: skip
sets_of_parts = st.lists(parts, unique_by=lambda part: part[:3])


def test_the_largest_groups_that_are_needed_and_no_larger() -> None:
    sizes = [30, 30, 50, 120, 10, 10]
    given_parts = [Part("a", number, 0, "", size, 0.0) for number, size in enumerate(sizes)]
    assert [[part.size for part in group] for group in due(given_parts, LIMITS, now=1)] == [[30, 30, 50], [120]]
    assert [[part.size for part in group] for group in due(given_parts, LIMITS, now=60)][2:] == [[10, 10]]
    assert [[part.size for part in group] for group in due(given_parts, LIMITS, now=1, all_of_them=True)][2:] == [
        [10, 10]
    ]


def test_a_part_of_the_target_size_becomes_visible_by_itself() -> None:
    sizes = [30, 120, 40, 100, 20]
    given_parts = [Part("a", number, 0, "", size, 0.0) for number, size in enumerate(sizes)]
    assert [[part.size for part in group] for group in due(given_parts, LIMITS, now=1)] == [[120], [100]]
    assert [[part.size for part in group] for group in due(given_parts, LIMITS, now=60)][2:] == [[30, 40, 20]]


@given(sets_of_parts, st.floats(0, 1100), st.booleans())
def test_each_part_is_in_one_group_at_most(given_parts: list[Part], now: float, all_of_them: bool) -> None:
    groups = due(given_parts, LIMITS, now=now, all_of_them=all_of_them)
    grouped = [part for group in groups for part in group]
    assert len(grouped) == len(set(grouped))
    if all_of_them:
        assert sorted(grouped) == sorted(given_parts)
    for group in groups:
        assert len({(part.leaf, part.schema) for part in group}) == 1
        assert group == sorted(group, key=lambda part: (part.batch, part.number))
        assert sum(part.size for part in group[:-1]) < LIMITS.target_bytes
    for left in set(given_parts) - set(grouped):
        assert now - left.since < LIMITS.wait_seconds


@given(sets_of_parts)
def test_names_tell_the_parts_apart_and_are_read_back(given_parts: list[Part]) -> None:
    for part in given_parts:
        assert LAYOUT.parse_part(LAYOUT.part(part), part.size, part.since) == part
    for named in (LAYOUT.part, LAYOUT.published, LAYOUT.merge):
        assert len({named(part) for part in given_parts}) == len(given_parts)


def test_names() -> None:
    part = Part("topic=orders/date=2026-11-21", 7, 3, fingerprint("{}"), 0, 0)
    assert LAYOUT.published(part) == "topic=orders/date=2026-11-21/part-1f0c99aa-0000000007-0003.parquet"
    assert LAYOUT.published(part._replace(leaf="")) == "part-1f0c99aa-0000000007-0003.parquet"
    assert leaf_of(f"{LAYOUT.staging}/4/date=2026-11-21/x.parquet", f"{LAYOUT.staging}/4") == "date=2026-11-21"
    assert LAYOUT.parse_part(f"{LAYOUT.held}/something.else", 0, 0) is None


def options(**said: object) -> ExportOptions:
    return ExportOptions(**{"topics": ("orders",), "to": "/data/orders", **said})


def test_what_is_meant_where_nothing_is_said() -> None:
    parquet, csv = options(), options(format="csv")
    assert (parquet.shape().metadata, parquet.shape().flatten, parquet.codec()) == (True, False, "zstd")
    assert (csv.shape().metadata, csv.shape().flatten, csv.codec()) == (False, True, "none")
    assert parquet.decoding() == {"key": Raw(), "value": Raw()}
    assert csv.decoding() == {"key": Utf8(), "value": Utf8()}
    assert parquet.shape().directories == ("date",)
    assert options(topics=("a", "b"), partition_by="hour").shape().directories == ("topic", "date", "hour")
    assert options(topics=(), topic_pattern="o.*").shape().directories == ("topic", "date")
    assert parquet.checkpoint_beside() == "/data/orders/_barnabas/checkpoint"
    table = options(format="jdbc", to="jdbc:h2:mem:x", table="orders")
    assert (table.shape().directories, table.checkpoint_beside()) == ((), None)
    value = options(value_format="json,registry=http://host:1").decoding()["value"]
    assert isinstance(value, Json)
    assert value.subject == "orders-value"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"topics": ()}, "give either topics or topic_pattern"),
        ({"topic_pattern": "x"}, "give either topics or topic_pattern"),
        ({"format": "xml"}, "format is 'xml', but must be one of parquet"),
        ({"format": "jdbc", "table": "orders"}, "does not fit format jdbc"),
        ({"to": "jdbc:h2:x"}, "does not fit format parquet"),
        ({"table": "orders"}, "table is required with format jdbc"),
        ({"format": "delta", "to": "s3a://bucket/orders"}, "must be in a directory of this machine"),
        ({"format": "csv", "compression": "zstd"}, "compression is 'zstd', but csv allows: none, gzip"),
        ({"target_mib": 0}, "target_mib is 0"),
        ({"publish_seconds": -1.0}, "publish_seconds is -1.0"),
        ({"value_format": "jsn"}, "'jsn' is unknown"),
        ({"partition_by": "week"}, "partition_by is 'week'"),
    ],
)
def test_options_that_cannot_be_are_named(said: dict[str, object], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        options(**said)


def test_jars_that_are_not_there_are_named(tmp_path: Path) -> None:
    jar = tmp_path / "driver.jar"
    given_options = options(format="jdbc", to="jdbc:h2:mem:x", table="orders", driver_jars=(str(jar),))
    with pytest.raises(ValueError, match=r"driver_jars names .*driver\.jar"):
        given_options.spark_configs()
    jar.touch()
    assert given_options.spark_configs() == {"spark.jars": str(jar)}
    assert dataclasses.replace(given_options, driver_jars=()).spark_configs() == {}
