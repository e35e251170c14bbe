"""Features: valid updates, and their records."""

import pytest

from barnabas.cluster.controller.commands.configs import (
    SET,
    AlteredConfigs,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
)
from barnabas.cluster.controller.commands.features import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    UpdateFeatures,
)
from barnabas.cluster.controller.feature_decisions import bootstrap_records, first_records
from barnabas.cluster.features import first_levels
from barnabas.cluster.image.records import broker_record
from barnabas.errors import InvalidConfig, InvalidUpdateVersion
from barnabas.wire.messages.metadata_records import ConfigRecord, FeatureLevelRecord, NoOpRecord

METADATA, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
TRANSACTIONS, GROUPS = "transaction.version", "group.version"
ANY = (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
DOWN = (SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


@pytest.fixture
def at_levels(make_cluster):
    """A cluster at these levels; the others are the defaults of its metadata.version."""

    def make(levels, **settings):
        made = make_cluster(brokers=(), **settings)
        for name in made.image.features:
            made.apply([FeatureLevelRecord(name=name, feature_level=0)])
        made.apply([FeatureLevelRecord(name=name, feature_level=level) for name, level in first_levels(levels).items()])
        made.start(1)
        return made

    return make


def update(cluster, *updates, validate_only=False, kraft_version=0):
    requested = [FeatureUpdate(*each) for each in updates]
    return cluster.submit(UpdateFeatures(requested, validate_only), kraft_version=kraft_version)


def level(name, to):
    return FeatureLevelRecord(name=name, feature_level=to)


def test_down_and_up(cluster):
    update(cluster, (TRANSACTIONS, 1, SAFE_DOWNGRADE))
    assert cluster.records == [level(TRANSACTIONS, 1)]
    assert cluster.image.features[TRANSACTIONS] == 1
    update(cluster, (TRANSACTIONS, 0, UNSAFE_DOWNGRADE), (GROUPS, 0, SAFE_DOWNGRADE))
    assert cluster.records == [level(TRANSACTIONS, 0), level(GROUPS, 0)]
    assert {TRANSACTIONS, GROUPS}.isdisjoint(cluster.image.features)
    update(cluster, (GROUPS, 1), (TRANSACTIONS, 2))
    assert cluster.records == [level(GROUPS, 1), level(TRANSACTIONS, 2)]


@pytest.mark.parametrize("upgrade_type", ANY)
@pytest.mark.parametrize(("name", "to"), [(TRANSACTIONS, 2), (METADATA, 30), (ELR, 1)])
def test_to_where_it_is_is_written_down_again(cluster, name, to, upgrade_type):
    update(cluster, (name, to, upgrade_type))
    assert cluster.records == [level(name, to)]


def test_validate_only(cluster):
    update(cluster, (TRANSACTIONS, 1, SAFE_DOWNGRADE), (KRAFT, 1), validate_only=True)
    assert (cluster.records, cluster.raises_kraft_version) == ([], False)
    with pytest.raises(InvalidUpdateVersion):
        update(cluster, (TRANSACTIONS, 3), validate_only=True)


@pytest.mark.parametrize("upgrade_type", ANY)
@pytest.mark.parametrize(
    ("name", "to", "said"),
    [
        ("nope", 1, r"feature nope\. Local controller 1 does not support this feature\.$"),
        ("", 0, r"Feature  not found\.$"),
        (TRANSACTIONS, 3, "Local controller 1 only supports versions 0-2$"),
        (TRANSACTIONS, -1, r"A feature version cannot be less than 0\.$"),
        (METADATA, 31, "Local controller 1 only supports versions 7-30$"),
        (METADATA, 6, "Local controller 1 only supports versions 7-30$"),
        (KRAFT, 2, "Local controller 1 only supports versions 0-1$"),
    ],
)
def test_levels_that_there_are_not(cluster, name, to, said, upgrade_type):
    with pytest.raises(InvalidUpdateVersion, match=said):
        update(cluster, (name, to, upgrade_type))


@pytest.mark.parametrize("upgrade_type", [0, 4, -1, 127])
def test_upgrade_types_that_there_are_not(cluster, upgrade_type):
    with pytest.raises(InvalidUpdateVersion, match="The controller does not support the given upgrade type"):
        update(cluster, (TRANSACTIONS, 2, upgrade_type))


@pytest.mark.parametrize("name", [TRANSACTIONS, METADATA, KRAFT])
def test_a_downgrade_has_to_be_allowed(at_levels, name):
    cluster = at_levels({METADATA: 25})
    to = {TRANSACTIONS: 1, METADATA: 24, KRAFT: 0}[name]
    with pytest.raises(InvalidUpdateVersion, match="without setting the upgrade type to either safe"):
        update(cluster, (name, to, UPGRADE), kraft_version=1)


@pytest.mark.parametrize("upgrade_type", DOWN)
@pytest.mark.parametrize("name", [TRANSACTIONS, METADATA, KRAFT])
def test_what_is_higher_is_no_downgrade(at_levels, name, upgrade_type):
    cluster = at_levels({METADATA: 25, TRANSACTIONS: 1})
    to = {TRANSACTIONS: 2, METADATA: 26, KRAFT: 1}[name]
    with pytest.raises(InvalidUpdateVersion, match="Can't downgrade to a newer version"):
        update(cluster, (name, to, upgrade_type))


def test_all_or_none(cluster):
    before = cluster.image
    with pytest.raises(InvalidUpdateVersion, match="nope"):
        update(cluster, (TRANSACTIONS, 1, SAFE_DOWNGRADE), ("nope", 1))
    assert cluster.image == before


# ---------------------------------------------------------------- metadata.version


@pytest.mark.parametrize("upgrade_type", DOWN)
def test_metadata_goes_down_where_nothing_is_lost(at_levels, upgrade_type):
    cluster = at_levels({METADATA: 29})
    update(cluster, (METADATA, 23, upgrade_type))
    assert cluster.image.features[METADATA] == 23
    with pytest.raises(InvalidUpdateVersion, match=r"Unsupported metadata\.version downgrade from 23 to 22\."):
        update(cluster, (METADATA, 22, upgrade_type))


def test_eligible_leader_replicas_rest_on_metadata(at_levels):
    cluster = at_levels({METADATA: 22})
    with pytest.raises(InvalidUpdateVersion, match=r"it depends on metadata\.version level 23$"):
        update(cluster, (ELR, 1))
    update(cluster, (ELR, 1), (METADATA, 23))  # both together are valid
    assert cluster.image.features[ELR] == 1


def test_directories_that_take_nothing_new_rest_on_metadata(at_levels):
    change = [(ConfigResource(4, "1"), [ConfigChange("cordoned.log.dirs", SET, "*")])]
    cluster = at_levels({METADATA: 29})
    (altered,) = cluster.submit(IncrementalAlterConfigs(change))
    assert isinstance(altered.error, InvalidConfig)
    assert "4.3-IV0" in str(altered.error)
    update(cluster, (METADATA, 30))
    assert cluster.submit(IncrementalAlterConfigs(change)) == [AlteredConfigs(ConfigResource(4, "1"))]


# ---------------------------------------------------------------- kraft.version


def test_kraft_version_is_raised_by_no_metadata_record(cluster):
    update(cluster, (KRAFT, 1))
    assert (cluster.records, cluster.raises_kraft_version) == ([NoOpRecord()], True)
    update(cluster, (KRAFT, 1), kraft_version=1)
    assert not cluster.raises_kraft_version
    update(cluster, (KRAFT, 1, SAFE_DOWNGRADE), kraft_version=1)
    assert not cluster.raises_kraft_version


@pytest.mark.parametrize("upgrade_type", DOWN)
def test_kraft_version_never_goes_down(cluster, upgrade_type):
    with pytest.raises(InvalidUpdateVersion, match="Can't downgrade the version of this feature"):
        update(cluster, (KRAFT, 0, upgrade_type), kraft_version=1)


# ---------------------------------------------------------------- eligible leader replicas


def config(name, value):
    return ConfigRecord(resource_type=4, resource_name=name, name="min.insync.replicas", value=value)


def test_all_brokers_agree_where_eligible_leader_replicas_begin(at_levels):
    cluster = at_levels({ELR: 0}, **{"min.insync.replicas": 3})
    cluster.apply([config("", None), config("1", "2")])
    update(cluster, (TRANSACTIONS, 1, SAFE_DOWNGRADE), (ELR, 1))
    agreement = [config("", "3"), config("1", None)]
    assert cluster.records == [*agreement, level(TRANSACTIONS, 1), level(ELR, 1)]


def test_what_is_set_for_all_of_them_stays(at_levels):
    cluster = at_levels({ELR: 0})
    cluster.apply([config("", "2")])
    update(cluster, (ELR, 1))
    assert cluster.records == [level(ELR, 1)]


def test_every_node_has_to_know_a_level(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    features = cluster.image.brokers[2].features
    older = {**features, "transaction.version": (0, 1)}
    without = {name: each for name, each in features.items() if name != "transaction.version"}
    for known, said in ((older, "Broker 2 only supports versions 0-1"), (without, "Broker 2 does not support this")):
        cluster.apply([broker_record(cluster.image.brokers[2]._replace(features=known))])
        with pytest.raises(InvalidUpdateVersion, match=said):
            cluster.submit(UpdateFeatures([FeatureUpdate("transaction.version", 2)]))
    cluster.submit(UpdateFeatures([FeatureUpdate("transaction.version", 0, SAFE_DOWNGRADE)]))


def test_first_records_have_it_from_the_start():
    with_elr, without = bootstrap_records(), bootstrap_records(first_levels({ELR: 0}))
    assert first_records(with_elr, 2) == [*with_elr, config("", "2")]
    assert first_records(without, 2) == without
    others = [NoOpRecord(), ConfigRecord(resource_type=4, resource_name="", name=ELR, value="1")]
    assert first_records(iter([*others, *with_elr]), 2) == [*others, *with_elr, config("", "2")]
