"""Topics that a broker creates by requests to a controller on another node."""

import pytest

from barnabas.broker.envelopes import Sender, principal_of
from barnabas.broker.topic_creation import VERSION, TopicCreation
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.config import BrokerConfig
from barnabas.errors import InvalidReplicationFactor, RequestTimedOut, UnknownServerError
from barnabas.security.principals import Principal
from barnabas.wire.headers import read_request_header
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.envelope import EnvelopeResponse

ALICE = Sender(Principal("User", "alice"), "10.0.0.7", client_id="c", correlation_id=9)


class Channel:
    def __init__(self):
        self.sent, self.done = [], []

    def send(self, request, done, *, timeout_ms=None, lane=""):
        assert (timeout_ms, lane) == (60_000, "forwarding")
        self.sent.append(request)
        self.done.append(done)


class Creator:
    def __init__(self, **properties):
        self.channel, self.outcomes = Channel(), []
        config = BrokerConfig.from_properties(properties)
        self.creation = TopicCreation(self.channel, lambda: config)

    def create(self, *topics, sender=None):
        self.creation.create(topics, sender, lambda results, error: self.outcomes.append((results, error)))


@pytest.fixture
def creator():
    return Creator()


def answer(*results):
    return CreateTopicsResponse(
        topics=[CreateTopicsResponse.CreatableTopicResult(name=name, error_code=code) for name, code in results]
    )


def test_the_broker_asks_in_its_own_name(creator):
    creator.create(NewTopic("t", 3, 2, configs=[("cleanup.policy", "compact")]))
    (request,) = creator.channel.sent
    (topic,) = request.topics
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("t", 3, 2)
    assert [(each.name, each.value) for each in topic.configs] == [("cleanup.policy", "compact")]
    creator.channel.done[0](answer(("t", InvalidReplicationFactor.code)), None)
    (((created,), error),) = creator.outcomes
    assert (created.name, type(created.error), error) == ("t", InvalidReplicationFactor, None)


def test_a_topic_is_requested_once_at_a_time(creator):
    creator.create(NewTopic("t"), NewTopic("u"))
    creator.create(NewTopic("u"), NewTopic("v"))
    creator.create(NewTopic("t"))
    assert [[topic.name for topic in request.topics] for request in creator.channel.sent] == [["t", "u"], ["v"]]
    assert creator.outcomes == [([], None)]
    creator.channel.done[0](None, RequestTimedOut())
    creator.create(NewTopic("u"))
    assert [topic.name for topic in creator.channel.sent[-1].topics] == ["u"]


def test_numbers_are_the_controller_s_unless_the_broker_has_its_own():
    creator = Creator(**{"num.partitions": "7"})
    creator.create(NewTopic("t"))
    (topic,) = creator.channel.sent[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (7, -1)


def test_a_client_s_topic_is_requested_in_its_name(creator):
    creator.create(NewTopic("t"), sender=ALICE)
    (envelope,) = creator.channel.sent
    assert principal_of(envelope.request_principal) == (ALICE.principal, False)
    assert envelope.client_host_address == bytes((10, 0, 0, 7))
    header, body = read_request_header(envelope.request_data)
    assert (header.client_id, header.correlation_id) == ("c", 9)
    request = CreateTopicsRequest.decode(envelope.request_data, version=VERSION, at=body)
    assert [topic.name for topic in request.topics] == ["t"]
    frame = b"".join(answer(("t", 0)).encode_frame(9, VERSION))
    creator.channel.done[0](EnvelopeResponse(response_data=frame[4:]), None)
    (((created,), _),) = creator.outcomes
    assert (created.name, created.error) == ("t", None)


@pytest.mark.parametrize("envelope", [EnvelopeResponse(error_code=97), EnvelopeResponse(response_data=b"\0")])
def test_an_envelope_without_an_answer(creator, envelope):
    creator.create(NewTopic("t"), sender=ALICE)
    creator.channel.done[0](envelope, None)
    ((results, error),) = creator.outcomes
    assert (results, type(error)) == (None, UnknownServerError)
