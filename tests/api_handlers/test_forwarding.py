"""Forwarded requests: the envelope, the response of the active controller, and the response to the client."""

import logging
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.handling import handle
from barnabas.api_handlers.peer_requests import join
from barnabas.api_handlers.registry import APIS, BROKER_APIS, CONTROLLER_APIS, CONTROLLERS_PROMISE, FORWARDABLE
from barnabas.api_handlers.session import Session
from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.envelopes import Sender, enveloped, principal_bytes, principal_of
from barnabas.cluster.controller.commands.acls import CreateAcls
from barnabas.cluster.controller.commands.quotas import AlterClientQuotas, QuotaAlteration
from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.errors import (
    CloseConnection,
    ClusterAuthorizationFailed,
    DelegationTokenAuthDisabled,
    DelegationTokenRequestNotAllowed,
    InvalidRequest,
    MismatchedEndpointType,
    NotController,
    PrincipalDeserializationFailure,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
    UnsupportedVersion,
)
from barnabas.peers.in_process import InProcessPeers, Node
from barnabas.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from barnabas.security.principals import Principal
from barnabas.server.connection import Throttled
from barnabas.server.dispatch import Dispatcher
from barnabas.wire.messages.alter_configs import AlterConfigsRequest
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.raw import framed
from tests.submitting import submitted

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE = Principal("User", "alice")
ROOT = Principal("User", "root")


def creating(name, **fields):
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(**{"topics": [topic], "timeout_ms": 1000, "validate_only": False} | fields)


class Forwarder:
    """A broker that does not lead the quorum, and its channel to the controllers."""

    node_id = 2

    def __init__(self, clock, peers):
        self.clock, self.quotas, self.authorizer = clock, None, None
        self.quorum = SimpleNamespace(is_leader=False, is_sole_voter=False)
        self.leader = 1
        self.controller_channel = ControllerChannel(
            self.node_id,
            peers,
            lambda: Leadership(self.leader, 1),
            is_sole=lambda: False,
            clock=clock,
            scheduler=clock,
            timeout_ms=lambda: 30_000,
        )
        self.outcomes = []

    def dispatcher(self, principal=ALICE, host="10.0.0.7"):
        return Dispatcher(self, Session(listener="PLAINTEXT", client_host=host, principal=principal))

    def ask(self, request, version, correlation_id=7, principal=ALICE):
        """Returns the frame of the response, None if there is none yet, or the reason for closing the connection."""
        dispatcher = self.dispatcher(principal)
        try:
            answer = dispatcher.respond(memoryview(framed(request, version, correlation_id))[4:])
        except CloseConnection as closed:
            return closed
        if not isinstance(answer, Later):
            return b"".join(answer)
        self.outcomes.clear()
        answer.then(self.outcomes.append)
        if not self.outcomes:
            return None
        return self.encoded(dispatcher)

    def encoded(self, dispatcher):
        (outcome,) = self.outcomes
        return outcome if isinstance(outcome, Exception) else b"".join(dispatcher.encode(outcome))


def decoded(request, version, frame):
    kind = type(request).response
    return kind.decode(frame, version=version, at=8 + kind.header_version(version))


@pytest.fixture
def forwarder(node):
    """A broker that forwards to ``node``."""
    peers = InProcessPeers(encodes=True)
    join(peers, node.broker, CONTROLLERS_PROMISE)
    return Forwarder(node.clock, peers)


class Playing:
    """A controller that returns the response of the test."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []
        self.peers = InProcessPeers()
        self.peers.join(1, Node(self, lambda request: request.versions.last))

    def __call__(self, request, version, done):
        self.seen.append(request)
        answer = self.answers.pop(0)
        done(*((None, answer) if isinstance(answer, Exception) else (answer, None)))


# ---------------------------------------------------------------- who answers what


def test_controllers_answer_what_they_answer_in_apache_kafka():
    """Of the APIs that are supported; the keys are those of ``ApiKeys.apisForListener(CONTROLLER)`` in 4.3."""
    both = {
        1,
        17,
        18,
        19,
        20,
        29,
        30,
        31,
        32,
        33,
        36,
        37,
        38,
        39,
        40,
        41,
        43,
        44,
        45,
        46,
        49,
        50,
        51,
        55,
        57,
        60,
        64,
        80,
        81,
    }
    own = {52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
    assert set(CONTROLLER_APIS) <= both | own
    assert set(CONTROLLER_APIS) | {1} >= (both | own) & set(APIS)
    assert not set(BROKER_APIS) & own


def test_what_is_forwarded_is_what_apache_kafka_forwards():
    forwardable = {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81}
    assert forwardable & set(APIS) == FORWARDABLE


# ---------------------------------------------------------------- the way there and back


def test_a_topic_is_created_by_the_controller(forwarder, node):
    request = creating("t")
    response = decoded(request, 7, forwarder.ask(request, 7))
    assert [(each.name, each.error_code) for each in response.topics] == [("t", 0)]
    assert response.topics[0].topic_id == node.broker.image.topics_by_name["t"].id


@pytest.mark.parametrize("key", sorted(FORWARDABLE & {20, 30, 31, 37, 43, 45, 46, 49, 51, 55, 57}))
def test_the_client_s_bytes_are_those_of_the_controller(forwarder, node, key):
    api = APIS[key]
    for version in range(api.versions.first, api.versions.last + 1):
        request = empty_request(api.request, version)
        own = Dispatcher(node.broker, Session(listener="PLAINTEXT", client_host="10.0.0.7", principal=ALICE))
        expected = own.respond(memoryview(framed(request, version, 7))[4:])
        expected = own.encode(expected.response) if isinstance(expected, Later) else expected
        assert forwarder.ask(request, version) == b"".join(expected)


def empty_request(kind, version):
    fields = {field.name: [] for field in kind.wire_fields() if field.is_array and version in field.versions}
    required = {"timeout_ms": 1000, "validate_only": False, "election_type": 0}
    names = {field.name for field in kind.wire_fields()}
    return kind(**fields | {name: value for name, value in required.items() if name in names})


def test_a_node_that_leads_answers_itself(forwarder, node):
    forwarder.quorum.is_leader = True
    forwarder.image = node.broker.image
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=[])
    forwarder.leader = NO_NODE
    assert decoded(request, 0, forwarder.ask(request, 0)).topics == []


def test_without_a_controller_the_request_times_out(forwarder):
    forwarder.leader = NO_NODE
    request = creating("t")
    dispatcher = forwarder.dispatcher()
    dispatcher.respond(memoryview(framed(request, 7))[4:]).then(forwarder.outcomes.append)
    forwarder.clock.advance(59)
    assert forwarder.outcomes == []
    forwarder.clock.advance(1.1)
    response = decoded(request, 7, forwarder.encoded(dispatcher))
    assert [(each.name, each.error_code) for each in response.topics] == [("t", RequestTimedOut.code)]


def test_requests_go_to_another_controller_when_the_first_is_not_active_any_more(forwarder):
    answer = EnvelopeResponse(error_code=NotController.code)
    created = CreateTopicsResponse(topics=[]).encode_frame(7, 7)
    playing = Playing(answer, EnvelopeResponse(response_data=b"".join(created)[4:]))
    forwarder.controller_channel._peers = playing.peers
    dispatcher = forwarder.dispatcher()
    dispatcher.respond(memoryview(framed(creating("t"), 7, 7))[4:]).then(forwarder.outcomes.append)
    assert forwarder.outcomes == []
    forwarder.clock.advance(0.1)
    assert decoded(creating("t"), 7, forwarder.encoded(dispatcher)).topics == []


@pytest.mark.parametrize(
    "answer",
    [
        EnvelopeResponse(error_code=InvalidRequest.code),
        EnvelopeResponse(error_code=PrincipalDeserializationFailure.code),
        EnvelopeResponse(error_code=ClusterAuthorizationFailed.code),
        EnvelopeResponse(response_data=b"\0\0\0\x08\0"),
        EnvelopeResponse(response_data=b"\0\0\0\x07\0"),
        EnvelopeResponse(response_data=b""),
        EnvelopeResponse(response_data=None),
        UnsupportedVersion(),
    ],
    ids=["invalid", "principal", "rights", "of another request", "cut off", "empty", "null", "no envelopes"],
)
def test_the_client_is_not_told_what_is_wrong_between_the_nodes(forwarder, answer):
    forwarder.controller_channel._peers = Playing(answer).peers
    response = decoded(creating("t"), 7, forwarder.ask(creating("t"), 7))
    assert [each.error_code for each in response.topics] == [UnknownServerError.code]


def test_a_version_that_the_controller_does_not_know_closes_the_connection(forwarder):
    forwarder.controller_channel._peers = Playing(EnvelopeResponse(error_code=UnsupportedVersion.code)).peers
    assert "does not answer CreateTopicsRequest version 7" in str(forwarder.ask(creating("t"), 7))


def test_the_connection_is_closed_when_the_node_stops(forwarder):
    forwarder.leader = NO_NODE
    forwarder.dispatcher().respond(memoryview(framed(creating("t"), 7))[4:]).then(forwarder.outcomes.append)
    forwarder.controller_channel.close()
    (outcome,) = forwarder.outcomes
    assert str(outcome) == "this node stops"


def test_a_client_is_throttled_for_what_the_controller_has_counted(forwarder, node):
    quota = QuotaAlteration({"user": "alice"}, [("controller_mutation_rate", 1.0)])
    assert submitted(node.broker.controller, AlterClientQuotas([quota]))[0].error is None
    forwarder.quotas = node.broker.quotas
    dispatcher = forwarder.dispatcher()
    sent = []
    for name, partitions in (("t", 30), ("u", 1)):
        request = creating(name)
        request.topics[0].num_partitions = partitions
        answer = dispatcher.respond(memoryview(framed(request, 7))[4:])
        sent.append(dispatcher.encode(answer.response) if isinstance(answer, Later) else answer)
    first, second = sent
    assert [each.error_code for each in decoded(creating("t"), 7, b"".join(first)).topics] == [0]
    assert type(second) is Throttled
    refused = decoded(creating("t"), 7, b"".join(second.answer))
    assert [each.error_code for each in refused.topics] == [ThrottlingQuotaExceeded.code]
    assert refused.throttle_time_ms / 1000 == second.seconds > 10


# ---------------------------------------------------------------- the envelope at the controller


class Controller:
    """A controller with an authorizer; root is the broker that sends envelopes."""

    def __init__(self, quiet_node):
        self.node = quiet_node(**{"authorizer.class.name": STANDARD, "super.users": "User:root"})

    def open(self, envelope, by=ROOT):
        session = Session(listener="CONTROLLER", client_host="127.0.0.1", principal=by, promise=CONTROLLERS_PROMISE)
        context = Context(self.node.broker, session, time_ms=self.node.clock.time_ms())
        answer = handle(CONTROLLER_APIS[58], envelope, context)
        return answer.response if isinstance(answer, Later) else answer

    def allow(self, operation, name, host="*"):
        acl = Acl(ResourceType.TOPIC, name, PatternType.LITERAL, "User:alice", host, operation, Permission.ALLOW)
        assert submitted(self.node.broker.controller, CreateAcls([acl])) == [None]


@pytest.fixture
def controller(quiet_node):
    return Controller(quiet_node)


SENDER = Sender(ALICE, "10.0.0.7", client_id="c", correlation_id=5)


def test_an_envelope_needs_the_right_of_a_broker(controller):
    answer = controller.open(enveloped(creating("t"), 7, SENDER), by=ALICE)
    assert (answer.error_code, answer.response_data) == (ClusterAuthorizationFailed.code, None)


@pytest.mark.parametrize(("host", "code"), [("10.0.0.7", 0), ("10.0.0.8", TopicAuthorizationFailed.code)])
def test_the_client_s_rights_count_at_its_own_address(controller, host, code):
    controller.allow(Operation.CREATE, "t", host="10.0.0.7")
    answer = controller.open(enveloped(creating("t"), 7, SENDER._replace(host=host)))
    assert answer.error_code == 0
    response = decoded(creating("t"), 7, bytes(4) + answer.response_data)
    assert [each.error_code for each in response.topics] == [code]


@pytest.mark.parametrize(
    ("envelope", "error"),
    [
        ({"request_principal": None}, PrincipalDeserializationFailure),
        ({"request_principal": b""}, PrincipalDeserializationFailure),
        ({"request_principal": b"\0\1\2\2\0\0"}, PrincipalDeserializationFailure),
        ({"request_principal": b"\0\0\x09a"}, PrincipalDeserializationFailure),
        ({"client_host_address": b"abc"}, InvalidRequest),
        ({"request_data": b""}, UnsupportedVersion),
        ({"request_data": b"\x7f\0\0\0\0\0\0\0\0\0"}, UnsupportedVersion),
        ({"request_data": framed(creating("t"), 7)[4:20]}, UnsupportedVersion),
        ({"request_data": framed(creating("t"), 7, api_version=99)[4:]}, UnsupportedVersion),
        (
            {"request_data": framed(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)[4:]},
            InvalidRequest,
        ),
        (
            {
                "request_data": framed(
                    EnvelopeRequest(request_data=b"", request_principal=None, client_host_address=b""), 0
                )[4:]
            },
            InvalidRequest,
        ),
    ],
    ids=str,
)
def test_what_is_wrong_with_an_envelope(controller, envelope, error):
    good = enveloped(creating("t"), 7, SENDER)
    fields = {field.name: getattr(good, field.name) for field in good.wire_fields()} | envelope
    answer = controller.open(EnvelopeRequest(**fields))
    assert (answer.error_code, answer.response_data) == (error.code, None)


def test_an_inactive_controller_says_so_in_the_envelope(controller, monkeypatch):
    monkeypatch.setattr(type(controller.node.broker.quorum), "is_leader", property(lambda self: False))
    answer = controller.open(enveloped(creating("t"), 7, SENDER._replace(principal=ROOT)))
    assert (answer.error_code, answer.response_data) == (NotController.code, None)


def test_a_principal_is_as_apache_kafka_writes_it():
    """The bytes of ``DefaultKafkaPrincipalBuilder.serialize`` in 4.3.1, for a token's user."""
    data = principal_bytes(Principal("User", "übel"), by_token=True)
    assert data == b"\0\0" + b"\x05User" + b"\x06\xc3\xbcbel" + b"\x01" + b"\0"
    assert principal_of(data) == (Principal("User", "übel"), True)


# ---------------------------------------------------------------- what a broker advertises


@pytest.mark.parametrize(
    ("controllers", "expected"),
    [
        (None, {19: (0, 7), 44: (0, 1), 55: (0, 2), 12: (0, 4)}),
        ({19: (2, 5), 44: (1, 7), 12: (0, 0)}, {19: (2, 5), 44: (1, 1), 12: (0, 4)}),
        ({19: (8, 9)}, {12: (0, 4)}),
    ],
    ids=["unknown", "others", "later"],
)
def test_what_is_forwarded_is_advertised_as_the_controller_has_it(second, monkeypatch, controllers, expected):
    monkeypatch.setattr(second.metadata, "quorum", Elsewhere())
    second.controller_channel = SimpleNamespace(versions=controllers)
    second.metadata.quorum.kraft = SimpleNamespace(version=1)
    response = response_of(second, ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3)
    versions = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert {key: versions[key] for key in (12, 19, 44, 55) if key in versions} == expected


# ---------------------------------------------------------------- what a broker answers itself

BROKER, LOGGER, TOPIC = 4, 8, 2


def altering(*resources, validate_only=False):
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            kind(
                resource_type=type_,
                resource_name=name,
                configs=[kind.AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs],
            )
            for type_, name, configs in resources
        ],
        validate_only=validate_only,
    )


@pytest.fixture
def second(forwarder, quiet_node):
    """A second broker that forwards to ``node``, with its own image."""
    made = quiet_node(**{"node.id": "2"}).broker
    made.controller_channel = forwarder.controller_channel
    return made


class Elsewhere:
    """The quorum of a broker that does not lead it."""

    is_leader = is_sole_voter = False


def response_of(broker, request, version, *, principal=ALICE, by_token=False, protocol="SASL_SSL"):
    """Sends the request, and returns the response, decoded from its bytes."""
    session = Session(listener="PLAINTEXT", client_host="10.0.0.7", principal=principal, security_protocol=protocol)
    session.by_token = by_token
    context = Context(broker, session, api_version=version, time_ms=broker.clock.time_ms())
    answer = handle(BROKER_APIS[request.api_key], request, context)
    answer = answer.response if isinstance(answer, Later) else answer
    return type(answer).decode(answer.encode(version=version), version=version)


@pytest.fixture
def elsewhere(second, monkeypatch):
    monkeypatch.setattr(second.metadata, "quorum", Elsewhere())
    return second


def test_the_levels_of_loggers_belong_to_the_broker_and_the_rest_to_the_controller(elsewhere, node):
    node.create_topic("t")
    logging.getLogger("barnabas.nothing")
    request = altering(
        (LOGGER, "2", [("barnabas.nothing", "DEBUG")]),
        (TOPIC, "t", [("retention.ms", "5")]),
        (TOPIC, "nope", [("retention.ms", "5")]),
        (BROKER, "2", [("log.retention.ms", "7")]),
        (BROKER, "1", [("log.retention.ms", "7")]),
        (BROKER, "2x", [("log.retention.ms", "7")]),
        (77, "2", []),
    )
    response = response_of(elsewhere, request, 1)
    found = [(each.resource_type, each.resource_name, each.error_code) for each in response.responses]
    assert found == [
        (LOGGER, "2", 0),
        (TOPIC, "t", 0),
        (TOPIC, "nope", UnknownTopicOrPartition.code),
        (BROKER, "2", 0),
        (BROKER, "1", InvalidRequest.code),
        (BROKER, "2x", InvalidRequest.code),
        (77, "2", InvalidRequest.code),
    ]
    configs_of = node.broker.image.configs_of
    assert dict(configs_of(TOPIC, "t")) == {"retention.ms": "5"}
    assert dict(configs_of(BROKER, "2")) == {"log.retention.ms": "7"}
    assert logging.getLogger("barnabas.nothing").level == logging.DEBUG
    assert (
        response_of(elsewhere, altering((LOGGER, "2", [("barnabas.nothing", "INFO")])), 1).responses[0].error_code == 0
    )


def test_a_broker_refuses_what_it_cannot_go_on_with_itself(elsewhere, node):
    response = response_of(elsewhere, altering((BROKER, "2", [("log.retention.ms", "soon")])), 1)
    assert [each.error_code for each in response.responses] == [InvalidRequest.code]
    node.create_topic("t")
    kind = AlterConfigsRequest.AlterConfigsResource
    request = AlterConfigsRequest(
        resources=[
            kind(resource_type=type_, resource_name=name, configs=[kind.AlterableConfig(name=key, value=value)])
            for type_, name, key, value in (
                (BROKER, "2", "log.retention.ms", "soon"),
                (TOPIC, "t", "retention.ms", "90000"),
            )
        ],
        validate_only=False,
    )
    assert [each.error_code for each in response_of(elsewhere, request, 2).responses] == [InvalidRequest.code, 0]
    assert dict(node.broker.image.configs_of(TOPIC, "t")) == {"retention.ms": "90000"}


@pytest.mark.parametrize(
    ("by_token", "protocol", "code"),
    [
        (False, "SASL_SSL", DelegationTokenAuthDisabled.code),
        (True, "SASL_SSL", DelegationTokenRequestNotAllowed.code),
        (False, "PLAINTEXT", DelegationTokenRequestNotAllowed.code),
    ],
)
def test_a_broker_says_who_may_ask_for_tokens(elsewhere, by_token, protocol, code):
    """The controller, reached without TLS and SASL, relies on the broker's check."""
    request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
    assert response_of(elsewhere, request, 2, by_token=by_token, protocol=protocol).error_code == code
    request = RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1)
    assert response_of(elsewhere, request, 2, by_token=by_token, protocol=protocol).error_code == code
    request = ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=1)
    assert response_of(elsewhere, request, 2, by_token=by_token, protocol=protocol).error_code == code


# ---------------------------------------------------------------- a controller's own listener


def at_controller(broker, request, version):
    session = Session(listener="CONTROLLER", client_host="127.0.0.1", promise=CONTROLLERS_PROMISE)
    context = Context(broker, session, api_version=version, time_ms=broker.clock.time_ms())
    answer = handle(CONTROLLER_APIS[request.api_key], request, context)
    return answer.response if isinstance(answer, Later) else answer


def test_a_controller_describes_controllers(quiet_node):
    listeners = "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    names = {"controller.listener.names": "CONTROLLER", "controller.quorum.voters": "1@127.0.0.1:9093"}
    broker = quiet_node(listeners=listeners, **names).broker
    response = at_controller(
        broker, DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2), 1
    )
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [(1, "127.0.0.1", 9093)]
    assert (response.controller_id, response.endpoint_type, response.cluster_id) == (1, 2, broker.cluster_id)


@pytest.mark.parametrize(
    ("wanted", "version", "code"),
    [(1, 1, MismatchedEndpointType.code), (7, 1, UnsupportedEndpointType.code), (1, 0, InvalidRequest.code)],
)
def test_a_controller_s_listener_describes_nothing_else(node, wanted, version, code):
    response = at_controller(
        node.broker, DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=wanted), version
    )
    assert (response.error_code, response.brokers) == (code, [])


def test_a_controller_names_duplicates(node):
    node.create_topic("t")
    twice = (TOPIC, "t", [("retention.ms", "5")])
    response = at_controller(node.broker, altering(twice, twice, (BROKER, "7", [("log.retention.ms", "7")])), 1)
    found = [(each.error_code, each.error_message) for each in response.responses]
    assert found == [(InvalidRequest.code, "Duplicate resource.")] * 2 + [(0, None)]
