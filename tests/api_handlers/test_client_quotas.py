"""AlterClientQuotas and DescribeClientQuotas, without a socket."""

import pytest

from barnabas.api_handlers.alter_client_quotas import alter_client_quotas
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.describe_client_quotas import describe_client_quotas
from barnabas.api_handlers.error_responses import error_response
from barnabas.broker.names import Names
from barnabas.errors import ClusterAuthorizationFailed, InvalidRequest, UnsupportedVersion
from barnabas.log.background import Inline
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasRequest
from tests.asking import context_of, handled

from .conftest import ConfigCluster

Entry, Component = AlterClientQuotasRequest.EntryData, DescribeClientQuotasRequest.ComponentData
EXACT, DEFAULT, ANY = 0, 1, 2


class Node(ConfigCluster):
    """A cluster of configs and quotas, in which only one host can be resolved."""

    def __init__(self):
        super().__init__()
        self.names = Names(Inline(), {"db.example": "10.0.0.7"}.get)

    def ask(self, handle, request):
        answer = handled(handle, request, context_of(self, 1))
        return answer.response if isinstance(answer, Later) else answer

    def alter(self, *entries, validate_only=False):
        """Returns the code and the message for each entity."""
        response = self.ask(alter_client_quotas, request(*entries, validate_only=validate_only))
        return {names(each.entity): (each.error_code, each.error_message) for each in response.entries}

    def describe(self, *components, strict=False):
        filter_ = [Component(entity_type=kind, match_type=how, match=match) for kind, how, match in components]
        response = self.ask(describe_client_quotas, DescribeClientQuotasRequest(components=filter_, strict=strict))
        if response.error_code:
            assert response.entries is None
            return response.error_code, response.error_message
        assert response.error_message == ""
        return {names(each.entity): {value.key: value.value for value in each.values} for each in response.entries}


def request(*entries, validate_only=False):
    return AlterClientQuotasRequest(
        entries=[
            Entry(
                entity=[Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                ops=[Entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
            )
            for entity, values in entries
        ],
        validate_only=validate_only,
    )


def names(entity):
    return tuple((each.entity_type, each.entity_name) for each in entity)


@pytest.fixture
def node():
    return Node()


OF_ALICE, OF_BOTH = (("user", "alice"),), (("client-id", "app"), ("user", "alice"))
BY_DEFAULT, OF_APP = (("user", None),), (("client-id", "app"),)


@pytest.fixture
def filled(node):
    for entity in (OF_ALICE, OF_BOTH, BY_DEFAULT, OF_APP):
        node.alter((dict(entity), {"producer_byte_rate": 1.0}))
    node.alter(({"ip": None}, {"connection_creation_rate": 5.0}))
    return node


def test_a_quota_is_set_shown_and_removed(node):
    assert node.alter(({"user": "alice"}, {"producer_byte_rate": 5.0})) == {OF_ALICE: (0, None)}
    assert node.describe() == {OF_ALICE: {"producer_byte_rate": 5.0}}
    node.alter(({"user": "alice"}, {"producer_byte_rate": None, "request_percentage": 2.5}))
    assert node.describe() == {OF_ALICE: {"request_percentage": 2.5}}
    node.alter(({"user": "alice"}, {"request_percentage": 9.0}), validate_only=True)
    node.alter(({"user": "alice"}, {"request_percentage": None}))
    assert node.describe() == {}


def test_names_of_hosts_are_looked_up(node):
    rate = {"connection_creation_rate": 5.0}
    results = node.alter(({"ip": "db.example"}, rate), ({"ip": "nowhere"}, rate), ({"ip": "127.1"}, rate))
    assert results == {
        (("ip", "db.example"),): (0, None),
        (("ip", "nowhere"),): (InvalidRequest.code, "nowhere is not a valid IP or resolvable host."),
        (("ip", "127.1"),): (0, None),
    }


@pytest.mark.parametrize(
    "components, loosely, strictly",
    [
        ([], {OF_ALICE, OF_BOTH, BY_DEFAULT, OF_APP, (("ip", None),)}, set()),
        ([("user", EXACT, "alice")], {OF_ALICE, OF_BOTH}, {OF_ALICE}),
        ([("user", ANY, None)], {OF_ALICE, OF_BOTH, BY_DEFAULT}, {OF_ALICE, BY_DEFAULT}),
        ([("user", DEFAULT, None)], {BY_DEFAULT}, {BY_DEFAULT}),
        ([("client-id", EXACT, "app"), ("user", ANY, None)], {OF_BOTH}, {OF_BOTH}),
        ([("ip", DEFAULT, None)], {(("ip", None),)}, {(("ip", None),)}),
        ([("user", EXACT, "bob")], set(), set()),
    ],
)
def test_filters(filled, components, loosely, strictly):
    assert set(filled.describe(*components)) == loosely
    assert set(filled.describe(*components, strict=True)) == strictly


@pytest.mark.parametrize(
    "components, code",
    [
        ([("nope", EXACT, "x")], UnsupportedVersion.code),
        ([("", EXACT, "x")], InvalidRequest.code),
        ([("user", EXACT, None)], InvalidRequest.code),
        ([("user", DEFAULT, "x")], InvalidRequest.code),
        ([("user", ANY, "x")], InvalidRequest.code),
        ([("user", 3, None)], InvalidRequest.code),
        ([("user", EXACT, "x"), ("user", ANY, None)], InvalidRequest.code),
        ([("user", EXACT, "x"), ("ip", ANY, None)], InvalidRequest.code),
    ],
)
def test_filters_that_are_refused(node, components, code):
    assert node.describe(*components)[0] == code


def test_a_refused_request_names_its_entities():
    requested = request(({"user": None, "client-id": "app"}, {"producer_byte_rate": 1.0}))
    entry = error_response(requested, ClusterAuthorizationFailed(), 1).entries[0]
    assert (entry.error_code, entry.error_message) == (31, "Cluster authorization failed.")
    assert names(entry.entity) == (("client-id", "app"), ("user", None))
