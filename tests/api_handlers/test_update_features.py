"""UpdateFeatures in all versions, and the features in ApiVersions afterwards."""

import pytest

from barnabas.api_handlers.api_versions import api_versions
from barnabas.api_handlers.update_features import update_features
from barnabas.errors import NONE, InvalidUpdateVersion
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE, SAFE, UNSAFE = 1, 2, 3
METADATA, KRAFT, TRANSACTIONS = "metadata.version", "kraft.version", "transaction.version"


def update(node, *updates, version=2, validate_only=False, timeout_ms=5000):
    requested = [
        UpdateFeaturesRequest.FeatureUpdateKey(
            feature=name, max_version_level=level, upgrade_type=kind, allow_downgrade=kind > UPGRADE
        )
        for name, level, kind in updates
    ]
    request = UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=requested, validate_only=validate_only)
    return node.ask(update_features, request, version)


def finalized(node):
    """Returns the finalized levels, and their epoch."""
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    found = node.ask(api_versions, request, 4)
    return {each.name: each.max_version_level for each in found.finalized_features}, found.finalized_features_epoch


@pytest.mark.parametrize("version", [1, 2])
def test_a_level_is_downgraded_and_clients_see_it_at_once(node, version):
    before, epoch = finalized(node)
    answer = update(node, (TRANSACTIONS, 1, SAFE), version=version)
    assert (answer.error_code, answer.error_message) == (NONE, None)
    after, later = finalized(node)
    assert after == {**before, TRANSACTIONS: 1}
    assert later > epoch


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_feature_has_a_result_up_to_version_1(node, version):
    answer = update(node, ("share.version", 1, UPGRADE), (TRANSACTIONS, 2, UPGRADE), version=version)
    Result = UpdateFeaturesResponse.UpdatableFeatureResult
    results = [Result(feature=name, error_code=0, error_message="NONE") for name in ("share.version", TRANSACTIONS)]
    assert list(answer.results) == (results if version < 2 else [])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_one_that_cannot_be_spoils_them_all(node, version):
    before = finalized(node)
    answer = update(node, ("share.version", 1, UPGRADE), ("nope", 1, UPGRADE), version=version)
    assert answer.error_code == InvalidUpdateVersion.code
    assert "nope" in answer.error_message
    assert list(answer.results) == []
    assert finalized(node) == before


def test_version_0_only_goes_up(node):
    answer = update(node, (TRANSACTIONS, 1, SAFE), version=0)
    assert answer.error_code == InvalidUpdateVersion.code
    assert finalized(node)[0][TRANSACTIONS] == 2
    update(node, (TRANSACTIONS, 1, SAFE))
    assert update(node, (TRANSACTIONS, 2, UPGRADE), version=0).error_code == NONE
    assert finalized(node)[0][TRANSACTIONS] == 2


def test_validate_only(node):
    before = finalized(node)
    assert update(node, (TRANSACTIONS, 1, SAFE), (KRAFT, 1, UPGRADE), validate_only=True).error_code == NONE
    assert update(node, (TRANSACTIONS, 1, UPGRADE), validate_only=True).error_code == InvalidUpdateVersion.code
    assert finalized(node) == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_of_nothing(node, version):
    assert update(node, version=version).error_code == NONE


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_the_time_is_not_looked_at(node, timeout_ms):
    assert update(node, (TRANSACTIONS, 1, SAFE), timeout_ms=timeout_ms).error_code == NONE
    assert finalized(node)[0][TRANSACTIONS] == 1


def test_of_one_that_is_named_twice_the_last_counts(node):
    answer = update(node, (TRANSACTIONS, 3, UPGRADE), (TRANSACTIONS, 1, SAFE), version=1)
    assert answer.error_code == NONE
    assert [each.feature for each in answer.results] == [TRANSACTIONS, TRANSACTIONS]
    assert finalized(node)[0][TRANSACTIONS] == 1


def test_the_error_is_of_the_first_in_the_request(node):
    assert "nope" in update(node, ("nope", 1, UPGRADE), ("nada", 2, UPGRADE)).error_message


def test_kraft_version_shows_once_it_is_raised(node):
    assert KRAFT not in finalized(node)[0]
    assert update(node, (KRAFT, 1, UPGRADE)).error_code == NONE
    assert finalized(node)[0][KRAFT] == 1
    assert update(node, (KRAFT, 0, UNSAFE)).error_code == InvalidUpdateVersion.code


def test_a_feature_at_0_is_not_described(node):
    update(node, ("share.version", 0, SAFE))
    assert "share.version" not in finalized(node)[0]
