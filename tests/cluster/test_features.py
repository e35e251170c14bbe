"""Features: the supported levels, and those of a new cluster."""

import pytest

from barnabas.cluster import features
from barnabas.cluster.features import METADATA_VERSION, first_levels, loses_metadata, metadata_version_named
from barnabas.config import ConfigError

NEWEST = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def test_the_newest_by_itself():
    assert list(first_levels({}).items()) == list(NEWEST.items())  # in the order of the records


@pytest.mark.parametrize(
    ("metadata_version", "levels"),
    [  # as kafka-storage 4.3.1 formats
        (7, {}),
        (21, {}),
        (22, {"group.version": 1}),
        (25, {"group.version": 1, "transaction.version": 2}),
        (27, {"group.version": 1, "transaction.version": 2, "eligible.leader.replicas.version": 1}),
        (28, {name: level for name, level in NEWEST.items() if name not in ("streams.version", METADATA_VERSION)}),
        (29, {name: level for name, level in NEWEST.items() if name != METADATA_VERSION}),
    ],
)
def test_what_goes_with_a_metadata_version(metadata_version, levels):
    assert first_levels({METADATA_VERSION: metadata_version}) == {METADATA_VERSION: metadata_version, **levels}


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"transaction.version": 1}, {"transaction.version": 1}),
        ({"transaction.version": 0, "group.version": 0}, {"transaction.version": None, "group.version": None}),
        ({"kraft.version": 1}, {}),  # which has no bootstrap record
        ({"eligible.leader.replicas.version": 1}, {}),
    ],
)
def test_given_levels_override_the_defaults(given, changed):
    wanted = {name: level for name, level in {**NEWEST, **changed}.items() if level is not None}
    assert first_levels(given) == wanted


def test_a_level_may_be_newer_than_what_goes_with_its_metadata_version():
    given = {METADATA_VERSION: 21, "transaction.version": 2, "share.version": 1, "streams.version": 1}
    assert first_levels(given) == given
    assert first_levels({METADATA_VERSION: 23, "eligible.leader.replicas.version": 1})[METADATA_VERSION] == 23


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nope": 1}, "--feature is 'nope', but must be a feature: eligible.leader.replicas.version, group.version,"),
        ({"transaction.version": 3}, "--feature transaction.version is '3', but must be a level from 0 to 2"),
        ({"transaction.version": -1}, "--feature transaction.version is '-1', but must be a level from 0 to 2"),
        ({METADATA_VERSION: 6}, "--feature metadata.version is '6', but must be a level from 7 to 30"),
        ({METADATA_VERSION: 31}, "--feature metadata.version is '31', but must be a level from 7 to 30"),
        ({"kraft.version": 2}, "--feature kraft.version is '2', but must be a level from 0 to 1"),
        (
            {METADATA_VERSION: 22, "eligible.leader.replicas.version": 1},
            "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
        ),
    ],
)
def test_what_cannot_be(given, said):
    with pytest.raises(ConfigError) as caught:
        first_levels(given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3.3", 7),
        ("3.3-IV3", 7),
        ("3.7", 19),
        ("3.7.2", 19),
        ("3.7-IV2", 17),
        ("4.0", 25),
        ("4.0-IV1", 23),
        ("4.3", 30),
    ],
)
def test_a_release_stands_for_the_last_of_its_levels(text, level):
    assert metadata_version_named(text) == level


@pytest.mark.parametrize("text", ["2.8", "3.3-IV2", "4.4", "4", "x", "", "4.3-IV"])
def test_a_release_that_there_is_not(text):
    with pytest.raises(ConfigError, match=r"3\.3-IV3, 3\.4-IV0, .*, 4\.3-IV0"):
        metadata_version_named(text)


def test_every_level_of_metadata_version_has_a_name():
    known = features.FEATURES[METADATA_VERSION]
    assert list(features.METADATA_VERSIONS) == list(range(known.first, known.last + 1))


def test_going_down_past_new_records_loses_metadata():
    lossless = {
        (before, after) for before in range(7, 31) for after in range(7, before) if not loses_metadata(before, after)
    }
    for before, after in lossless:
        assert all((between, after) in lossless for between in range(after + 1, before + 1))
    # Apache Kafka's MetadataVersion declares for each level whether it changes metadata.
    assert {before for before in range(8, 31) if (before, before - 1) not in lossless} == {
        8,
        11,
        13,
        14,
        15,
        17,
        23,
        30,
    }
    assert not loses_metadata(25, 25)
    assert not loses_metadata(25, 30)
