"""The effects of rules on requests and responses, for every API and version, and over sockets."""

import socket
import struct
from random import Random
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.error_responses import ERROR_CODES
from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.errors import CloseConnection, NotController
from barnabas.faults.naming import api_name
from barnabas.faults.placing import error_answer
from barnabas.faults.rules import Rules
from barnabas.faults.subjects import subjects_of
from barnabas.server.faulty import FaultyResponder, Watch
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.raw import framed
from tests.requests import EVERY_VERSION, name_of, named

every_version = pytest.mark.parametrize(("api", "version"), EVERY_VERSION, ids=name_of)


class Answering:
    """A responder that answers each request of an API with the same response."""

    max_request_bytes = None

    def __init__(self, response, version):
        self.session = Session(listener="PLAINTEXT", client_host="127.0.0.1", number=1, promise=Promise(APIS))
        self.response, self.version, self.frames = response, version, []

    def respond(self, frame):
        self.frames.append(bytes(frame))
        return self.response.encode_frame(struct.unpack_from(">i", frame, 4)[0], self.version)

    def encode(self, response):
        if isinstance(response, CloseConnection):
            raise response
        raise AssertionError(response)


class Bench:
    """One responder with rules, on a clock that only the test moves."""

    def __init__(self, api, version, response=None):
        self.api, self.version = api, version
        self.clock = ManualClock()
        self.rules = Rules(self.clock, Random(1))
        self.watch = Watch(self.rules, [], self.clock, self.clock, lambda topic_id: topic_id.hex(), lambda it: 1)
        self.inner = Answering(response or named(api.request.response, version), version)
        self.written = []
        connection = SimpleNamespace(transport=SimpleNamespace(write=self.written.append), wrap=lambda wrapped: None)
        self.responder = FaultyResponder(self.inner, connection, self.watch)
        self.outcomes = []

    def ask(self, request, seconds=0.0):
        """Returns the bytes of the response, or None if there is none in time."""
        answer = self.responder.respond(memoryview(framed(request, self.version, 7))[4:])
        if not isinstance(answer, list):
            answer.then(self.outcomes.append)
            self.clock.advance(seconds)
            if not self.outcomes:
                return None
            answer = self.responder.encode(self.outcomes.pop())
        return b"".join([*self.written, *answer])

    def decoded(self, frame):
        kind = self.api.request.response
        assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 7)
        return kind.decode(frame, version=self.version, at=8 + kind.header_version(self.version))


def codes(structure, version):
    for field in structure.wire_fields():
        if version in field.versions:
            value = getattr(structure, field.name)
            if field.name in ERROR_CODES:
                yield value
            elif field.is_array and isinstance(field.kind, type):
                for each in value or ():
                    yield from codes(each, version)


@every_version
def test_an_error_is_in_the_answer_of_every_api(api, version):
    bench = Bench(api, version)
    rule = bench.rules.add(api=api.key, error="NOT_CONTROLLER")
    request = named(api.request, version)
    response = bench.decoded(bench.ask(request))
    assert NotController.code in codes(response, version)
    assert rule.hits == 1
    handled = error_answer(request, NotController(), version) is None
    assert len(bench.inner.frames) == handled


@every_version
def test_an_error_is_returned_although_the_handler_ran(api, version):
    bench = Bench(api, version)
    bench.rules.add(api=api.key, error="NOT_CONTROLLER", handled=True)
    assert NotController.code in codes(bench.decoded(bench.ask(named(api.request, version))), version)
    assert len(bench.inner.frames) == 1


WITH_PARTITIONS = {
    "produce", "list_offsets", "offset_commit", "delete_records", "offset_for_leader_epoch", "txn_offset_commit",
    "offset_delete", "fetch", "describe_producers", "elect_leaders",
}  # fmt: skip


@pytest.mark.parametrize(
    ("api", "version"), [each for each in EVERY_VERSION if each[0].module in WITH_PARTITIONS], ids=name_of
)
def test_the_error_of_one_partition_leaves_the_others_to_the_handler(api, version):
    request = named(api.request, version)
    if api.module == "produce":
        request.acks = 1
    topics = sorted(subjects_of(request, bytes.hex).topics)
    (topic, partition), rest = topics[0], topics[1:]
    bench = Bench(api, version, api.request.response(**empty(api.request.response)))
    bench.rules.add(api=api.key, topic=topic, partition=partition, error="NOT_CONTROLLER")
    response = bench.decoded(bench.ask(request))
    assert list(codes(response, version)).count(NotController.code) == 1
    (frame,) = bench.inner.frames
    left = Bench(api, version)
    left.rules.add(delay=1)
    call = left.responder._call(memoryview(frame))
    assert sorted(call.subjects.topics) != topics
    assert {each for each in rest if each[1] is not None} <= call.subjects.topics | {(topic, None)}


def empty(kind):
    return {field.name: [] for field in kind.wire_fields() if field.is_array}


@pytest.fixture
def bench():
    return Bench(APIS[ApiVersionsRequest.api_key], 3)


REQUEST = ApiVersionsRequest(client_software_name="n", client_software_version="1")


def test_cut_before_the_handler(bench):
    bench.rules.add(cut="before")
    with pytest.raises(CloseConnection):
        bench.ask(REQUEST)
    assert not bench.inner.frames


@pytest.mark.parametrize("cut", ["after", "half"])
def test_cut_after_the_handler(bench, cut):
    whole = bench.ask(REQUEST)
    bench.rules.add(cut=cut)
    with pytest.raises(CloseConnection) as caught:
        bench.ask(REQUEST)
    assert len(bench.inner.frames) == 2
    sent = b"".join(getattr(caught.value, "answer", []))
    assert sent == (whole[: len(whole) // 2] if cut == "half" else b"")


@pytest.mark.parametrize(("silent", "handled"), [("before", 0), ("after", 1)])
def test_no_answer_at_all(bench, silent, handled):
    bench.rules.add(silent=silent)
    assert bench.ask(REQUEST, 1e6) is None
    assert len(bench.inner.frames) == handled


@pytest.mark.parametrize(("delay", "handled"), [("delay", 0), ("delay_after", 1)])
def test_late_answers(bench, delay, handled):
    bench.rules.add(**{delay: 5})
    assert bench.ask(REQUEST, 4.9) is None
    assert len(bench.inner.frames) == handled
    bench.clock.advance(0.2)
    assert bench.outcomes
    assert len(bench.inner.frames) == 1


def test_a_drip(bench):
    whole = bench.ask(REQUEST)
    bench.rules.add(drip=10)
    assert bench.ask(REQUEST, len(whole) / 20) is None
    assert 0 < len(b"".join(bench.written)) < len(whole)
    bench.clock.advance(len(whole))
    assert b"".join(bench.written) + b"".join(bench.responder.encode(bench.outcomes.pop())) == whole


def test_a_wrong_correlation_id_and_a_throttle_time(bench):
    bench.rules.add(api="ApiVersions", throttle_ms=1234)
    assert bench.decoded(bench.ask(REQUEST)).throttle_time_ms == 1234
    bench.rules.add(correlation_id=5)
    assert struct.unpack_from(">i", bench.ask(REQUEST), 4) == (12,)


@pytest.mark.parametrize(("version", "answered"), [(9, 8), (9, 0), (5, 12)])
def test_an_answer_of_another_version(version, answered):
    bench = Bench(APIS[3], version)
    bench.rules.add(api="Metadata", answer_version=answered)
    frame = bench.ask(named(MetadataRequest, version))
    kind = bench.api.request.response
    assert struct.unpack_from(">ii", frame) == (len(frame) - 4, 7)
    response = kind.decode(frame, version=answered, at=8 + kind.header_version(answered))
    assert [each.name for each in response.topics] == [each.name for each in bench.inner.response.topics]


def test_a_leader_and_a_coordinator_that_are_elsewhere():
    bench = Bench(APIS[3], 9)
    bench.rules.add(api="Metadata", leader=99)
    response = bench.decoded(bench.ask(named(MetadataRequest, 9)))
    assert {partition.leader_id for topic in response.topics for partition in topic.partitions} == {99}
    for version in (3, 4):
        bench = Bench(APIS[10], version)
        bench.rules.add(api="FindCoordinator", coordinator=(5, "elsewhere", 1))
        assert "elsewhere" in repr(bench.decoded(bench.ask(named(APIS[10].request, version))))


def test_stale_answers_are_those_since_the_rule_was_set():
    bench = Bench(APIS[3], 9)
    bench.rules.add(api="Metadata", stale=True)
    first = bench.ask(named(MetadataRequest, 9))
    bench.inner.response = named(MetadataRequest.response, 9, entries=1)
    assert bench.ask(named(MetadataRequest, 9)) == first
    assert bench.ask(named(MetadataRequest, 9, entries=1)) != first


def test_an_answer_that_a_function_edits(bench):
    bench.rules.add(api="ApiVersions", edit=lambda response: setattr(response, "error_code", 42))
    assert bench.decoded(bench.ask(REQUEST)).error_code == 42


# ---------------------------------------------------------------- over sockets


def connect(broker):
    return socket.create_connection(("127.0.0.1", broker.port), timeout=10)


def answered(client):
    client.sendall(framed(REQUEST, 3, 7))
    return client.recv(65536)


def test_rules_apply_to_connections_that_are_open_and_end_with_the_last_rule():
    with Broker() as broker, connect(broker) as old:
        whole = answered(old)
        with broker.faults.add(api="ApiVersions", cut="half") as rule:
            assert answered(old) == whole[: len(whole) // 2]
            assert old.recv(10) == b""
            rule.wait_for_hits(1, timeout=10)
        with connect(broker) as new:
            assert answered(new) == whole
            assert [type(each._responder).__name__ for each in broker._server.listeners[0].connections][-1:] == [
                "Dispatcher"
            ]


def test_connections_are_refused_or_never_answered():
    with Broker() as broker:
        with broker.faults.add(refuse=True, first=1) as rule:
            with connect(broker) as client, pytest.raises(OSError):
                if not answered(client):
                    raise ConnectionResetError
            assert rule.hits == 1
            with connect(broker) as client:
                assert answered(client)
        with broker.faults.add(silent="before"), connect(broker) as client:
            client.settimeout(0.2)
            with pytest.raises(TimeoutError):
                answered(client)


def test_requests_are_seen_with_their_answers():
    with Broker() as broker, connect(broker) as client:
        with pytest.raises(RuntimeError, match="record_requests"):
            broker.requests()
        with broker.expect(api="ApiVersions", times=2) as expected:
            answered(client)
            answered(client)
        (one, other) = expected.requests
        assert one.time_ms <= other.time_ms
        assert (one.version, one.connection, one.error) == (3, other.connection, None)
        assert one.request == REQUEST
        assert one.answer is not None
        assert broker.requests(client_id="nobody") == []
        (connection,) = broker.connections()
        assert (connection.number, connection.client_software_name) == (one.connection, "n")
        with (
            pytest.raises(AssertionError, match="0 instead of 1 requests of ApiVersions"),
            broker.expect(api="ApiVersions", times=1),
        ):
            pass
        broker.reset()
        with pytest.raises(RuntimeError):
            broker.requests()


def test_scripts_are_set_as_a_whole_or_not_at_all():
    with Broker() as broker:
        with pytest.raises(ValueError, match="did you mean Fetch"):
            broker.faults.script("ApiVersions cut=before\nFetsch cut=after")
        with connect(broker) as client:
            assert answered(client)
        broker.faults.script("ApiVersions error=NOT_CONTROLLER nth=1")
        with connect(broker) as client:
            assert answered(client)[8:10] == NotController.code.to_bytes(2)
        assert "[api=ApiVersions nth=1 error=NOT_CONTROLLER]" in broker.faults.report()


def test_every_api_can_be_named():
    assert len({api_name(key) for key in APIS}) == len(APIS)


@pytest.mark.parametrize("partition", [None, 1])
def test_an_error_is_put_into_the_handlers_answer_for_one_topic_or_partition_only(partition):
    with Broker() as broker:
        for topic in ("orders", "bills"):
            broker.create_topic(topic, partitions=2)
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in ("orders", "bills")]
        request = MetadataRequest(topics=names)
        given = {} if partition is None else {"partition": partition}
        broker.faults.add(api="Metadata", topic="orders", error="LEADER_NOT_AVAILABLE", handled=True)
        broker.record_requests()
        with connect(broker) as client:
            client.sendall(framed(request, 9))
            assert client.recv(65536)
        (seen,) = broker.requests("Metadata")
        assert seen.error == "LEADER_NOT_AVAILABLE"
        assert {topic.name: topic.error_code for topic in seen.answer.topics} == {"orders": 5, "bills": 0}
        assert all(len(topic.partitions) == 2 for topic in seen.answer.topics)
        broker.faults.clear()
        broker.faults.add(api="ListOffsets", topic="orders", error="LEADER_NOT_AVAILABLE", handled=True, **given)
        partitions = [named(APIS[2].request, 3, entries=1).topics[0].partitions[0] for _ in range(2)]
        for number, each in enumerate(partitions):
            each.partition_index, each.timestamp = number, -1
        topics = [APIS[2].request.ListOffsetsTopic(name=name, partitions=partitions) for name in ("orders", "bills")]
        with connect(broker) as client:
            client.sendall(framed(APIS[2].request(replica_id=-1, topics=topics), 3))
            assert client.recv(65536)
        (seen,) = broker.requests("ListOffsets")
        found = {
            (topic.name, each.partition_index): each.error_code
            for topic in seen.answer.topics
            for each in topic.partitions
        }
        wrong = {("orders", each) for each in (range(2) if partition is None else [partition])}
        assert {where for where, code in found.items() if code} == wrong
        assert len(found) == 4


def test_rules_know_who_has_authenticated_over_tls():
    import kafka

    with Broker(tls=True, users={"ann": "secret", "bob": "hidden"}) as broker:
        rule = broker.faults.add(principal="User:ann", api="Produce", error="NOT_LEADER_OR_FOLLOWER", nth=1)
        broker.record_requests()
        producer = kafka.KafkaProducer(**broker.client_settings("kafka-python", user="ann"))
        producer.send("t", b"tea").get(10)
        producer.close()
        assert rule.hits == 1
        first, last = broker.requests("Produce")
        assert (first.error, last.error) == ("NOT_LEADER_OR_FOLLOWER", None)
