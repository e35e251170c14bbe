"""Valid entities and values of quotas, and the records of a change."""

import pytest

from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, AlteredQuotas, QuotaAlteration
from barnabas.wire.messages.metadata_records import ClientQuotaRecord

ALICE = {"user": "alice"}


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()


def alter(cluster, *alterations, **options):
    """Returns the message of each entity's error, or None."""
    before = cluster.image.quotas
    wanted = [QuotaAlteration(entity, list(values.items())) for entity, values in alterations]
    results = cluster.submit(AlterClientQuotas(wanted, **options))
    assert all(isinstance(each, AlteredQuotas) for each in results)
    if options.get("validate_only"):
        assert cluster.image.quotas == before
    return [None if each.error is None else str(each.error) for each in results]


def quotas(cluster):
    return {key: record.value for key, record in cluster.image.quotas.items()}


def test_a_quota_is_written_as_apache_kafka_writes_it(cluster):
    assert alter(cluster, ({"user": None, "client-id": "app"}, {"producer_byte_rate": 1024.0})) == [None]
    entity = [
        ClientQuotaRecord.EntityData(entity_type="client-id", entity_name="app"),
        ClientQuotaRecord.EntityData(entity_type="user", entity_name=None),
    ]
    assert cluster.records == [ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1024.0, remove=False)]
    key = (("client-id", True, "app"), ("user", False, ""))
    assert quotas(cluster) == {(key, "producer_byte_rate"): 1024.0}


@pytest.mark.parametrize("value", [1024.0, float("nan")])
def test_what_is_so_already_is_not_written(cluster, value):
    alter(cluster, (ALICE, {"producer_byte_rate": value}))
    alter(cluster, (ALICE, {"producer_byte_rate": value, "consumer_byte_rate": None, "nope": None}))
    assert cluster.records == []


def test_a_quota_is_removed(cluster):
    alter(cluster, (ALICE, {"producer_byte_rate": 1.0, "request_percentage": 0.5}))
    assert alter(cluster, (ALICE, {"producer_byte_rate": None})) == [None]
    assert quotas(cluster) == {((("user", True, "alice"),), "request_percentage"): 0.5}


def test_one_bad_value_leaves_the_others_of_its_entity(cluster):
    results = alter(
        cluster,
        (ALICE, {"producer_byte_rate": 1.0, "request_percentage": 0.0}),
        ({"user": "bob"}, {"producer_byte_rate": 1.0}),
    )
    assert results == ["Quota request_percentage must be greater than 0", None]
    assert list(quotas(cluster)) == [((("user", True, "bob"),), "producer_byte_rate")]


def test_of_an_entity_that_is_named_twice_the_first_counts(cluster):
    results = alter(cluster, (ALICE, {"producer_byte_rate": 1.0}), (ALICE, {"consumer_byte_rate": 1.0}))
    assert results == ["Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})"]
    assert [key for _, key in quotas(cluster)] == ["producer_byte_rate"]


def test_a_key_that_is_named_twice_is_refused(cluster):
    twice = [("producer_byte_rate", 1.0), ("producer_byte_rate", None)]
    results = cluster.submit(AlterClientQuotas([QuotaAlteration({"user": None}, twice)]))
    assert str(results[0].error) == "Ignoring duplicate entity ClientQuotaEntity(entries={user=null})"


def test_validation_changes_nothing(cluster):
    assert alter(cluster, (ALICE, {"producer_byte_rate": 1.0}), validate_only=True) == [None]


WHOLE = "{} cannot be a fractional value."
TOO_LARGE = "Proposed value for {} is too large for {}."


@pytest.mark.parametrize(
    "key, value, text",
    [
        ("producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        ("producer_byte_rate", float("-inf"), "Quota producer_byte_rate must be greater than 0"),
        ("producer_byte_rate", 0.5, WHOLE),
        ("consumer_byte_rate", 1.001, WHOLE),
        ("consumer_byte_rate", 1.0000001, None),
        ("consumer_byte_rate", 2.0**63, None),
        ("consumer_byte_rate", 9.3e18, TOO_LARGE),
        ("consumer_byte_rate", float("inf"), TOO_LARGE),
        ("consumer_byte_rate", float("nan"), None),
        ("request_percentage", 0.0001, None),
        ("request_percentage", float("inf"), None),
        ("controller_mutation_rate", 1e300, None),
        ("connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        ("nope", 1.0, "Invalid configuration key nope"),
    ],
)
def test_values_of_clients(cluster, key, value, text):
    expected = text and text.format(key, "a LONG")
    for entity in (ALICE, {"client-id": None}, {"user": None, "client-id": "app"}):
        assert alter(cluster, (entity, {key: value}), validate_only=True) == [expected]


@pytest.mark.parametrize(
    "key, value, text",
    [
        ("connection_creation_rate", 2.0**31 - 1, None),
        ("connection_creation_rate", 2.0**31, TOO_LARGE),
        ("connection_creation_rate", 0.5, WHOLE),
        ("producer_byte_rate", 1.0, "Invalid configuration key producer_byte_rate"),
    ],
)
def test_values_of_addresses(cluster, key, value, text):
    assert alter(cluster, ({"ip": "10.0.0.1"}, {key: value})) == [text and text.format(key, "an INT")]


@pytest.mark.parametrize(
    "entity, text",
    [
        ({}, "Invalid empty client quota entity"),
        ({"nope": "x"}, "Unhandled client quota entity type: nope"),
        ({"user": ""}, "Empty user not supported"),
        ({"ip": ""}, "Empty ip not supported"),
        ({"ip": "nowhere"}, "nowhere is not a valid IP or resolvable host."),
        (
            {"user": "alice", "ip": "10.0.0.1"},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
    ],
)
def test_entities_that_are_refused(cluster, entity, text):
    assert alter(cluster, (entity, {"producer_byte_rate": 1.0}), unresolvable=["nowhere"]) == [text]
