"""Quotas from a frame to its response: measured usage, throttle times, and the muting of connections."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.registry import Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.log.files import MemoryFiles
from barnabas.records.builder import build_batch
from barnabas.security.principals import ANONYMOUS, Principal
from barnabas.server.buffers import BufferPool
from barnabas.server.connection import Connection, Throttled
from barnabas.server.dispatch import Dispatcher
from barnabas.server.listener import Census, Listener
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.broker.opening import opened
from tests.raw import framed

Entry = AlterClientQuotasRequest.EntryData
ALICE = Principal("User", "alice")


class Client:
    """The dispatcher of one connection."""

    def __init__(self, broker, principal=ALICE, listener="PLAINTEXT"):
        self.broker = broker
        session = Session(listener=listener, client_host="127.0.0.1", principal=principal, number=1)
        self.dispatcher = Dispatcher(broker, session)

    def ask(self, request, version):
        """Returns the response, and for how many seconds the connection is muted."""
        answer = self.dispatcher.respond(memoryview(bytearray(framed(request, version)))[4:])
        if isinstance(answer, Later):
            found = []
            answer.then(found.append)
            while not found:
                self.broker.clock.advance(0.1)
            answer = self.dispatcher.encode(found[0])
        seconds = 0.0
        if isinstance(answer, Throttled):
            answer, seconds = answer
        if not answer:
            return None, seconds
        kind = type(request).response
        decoded = kind.decode(b"".join(answer), version=version, at=8 + kind.header_version(version))
        return decoded, seconds

    def set(self, entity, **values):
        """Sets quotas of an entity; None removes one."""
        entry = Entry(
            entity=[Entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[Entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in values.items()],
        )
        response, _ = self.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        assert response.entries[0].error_code == 0, response

    def create(self, *names, partitions=1, version=7, validate_only=False):
        """Creates topics; returns the error codes, and the throttle time."""
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[]
                )
                for name in names
            ],
            timeout_ms=1000,
            validate_only=validate_only,
        )
        response, seconds = self.ask(request, version)
        assert response.throttle_time_ms == round(seconds * 1000)
        return [each.error_code for each in response.topics], seconds

    def produce(self, size, acks=1):
        batch = build_batch([(None, b"x" * size, 0)])
        partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch)
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
        response, seconds = self.ask(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic]), 9)
        if response is not None:
            assert response.responses[0].partition_responses[0].error_code == 0
            assert response.throttle_time_ms == round(seconds * 1000)
        return seconds

    def fetch(self, offset=0, session_id=0, epoch=-1, max_bytes=1 << 20, wait_ms=0, min_bytes=1, replica=-1):
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=max_bytes
        )
        request = FetchRequest(
            replica_id=replica,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            session_id=session_id,
            session_epoch=epoch,
            topics=[] if epoch > 0 else [FetchRequest.FetchTopic(topic="t", partitions=[partition])],
            forgotten_topics_data=[],
        )
        response, seconds = self.ask(request, 12)
        assert response.throttle_time_ms == round(seconds * 1000)
        assert response.error_code == 0
        return response, seconds


def opened_broker(**properties):
    defaults = {"log.dirs": "/a", "listeners": "PLAINTEXT://127.0.0.1:9092", "offsets.topic.num.partitions": "1"}
    clock = ManualClock()
    config = BrokerConfig.from_properties(
        defaults | {name.replace("_", "."): text for name, text in properties.items()}
    )
    return opened(config, MemoryFiles(clock), clock)


@pytest.fixture
def broker():
    return opened_broker()


@pytest.fixture
def alice(broker):
    alice = Client(broker)
    alice.create("t")
    return alice


def records_in(response):
    return sum(len(each.records or b"") for topic in response.responses for each in topic.partitions)


# ---------------------------------------------------------------- whether there are quotas


def test_a_broker_without_quotas_has_nothing_that_could_ask(alice, broker):
    assert broker.quotas is None
    assert broker.connection_rates is None
    alice.set({"user": "alice"}, producer_byte_rate=1000.0)
    assert broker.quotas is not None
    assert broker.connection_rates is None
    alice.set({"user": "alice"}, producer_byte_rate=None)
    assert broker.quotas is None
    alice.set({"ip": None}, connection_creation_rate=5.0)
    assert broker.quotas is None
    assert broker.connection_rates is not None
    alice.set({"ip": None}, connection_creation_rate=None)
    assert broker.connection_rates is None


def test_quotas_are_there_after_a_restart():
    clock = ManualClock()
    files = MemoryFiles(clock)
    config = BrokerConfig.from_properties({"log.dirs": "/a", "listeners": "PLAINTEXT://127.0.0.1:9092"})
    broker = opened(config, files, clock)
    Client(broker).set({"user": "alice"}, producer_byte_rate=1000.0)
    Client(broker).set({"ip": "127.0.0.1"}, connection_creation_rate=5.0)
    broker.close()
    broker = opened(config, files, clock)
    assert broker.quotas.client("alice", "x").produced.bound == 1000.0
    assert broker.connection_rates is not None
    broker.close()


# ---------------------------------------------------------------- bytes


def test_produce_is_answered_at_once_and_throttled(alice):
    alice.set({"user": "alice"}, producer_byte_rate=1000.0)
    assert alice.produce(5000) == 0
    assert 0 < alice.produce(5000) < 1
    assert alice.produce(10_000) > 9


def test_others_are_not_throttled(alice, broker):
    alice.set({"user": "alice"}, producer_byte_rate=1000.0)
    alice.produce(50_000)
    assert Client(broker, ANONYMOUS).produce(50_000) == 0


def test_without_acks_nothing_is_told_but_the_connection_waits(alice):
    alice.set({"user": "alice"}, producer_byte_rate=1000.0, request_percentage=0.0001)
    assert alice.produce(9000, acks=0) == 0
    assert alice.produce(11_000, acks=0) > 9


def test_the_rate_holds_within_a_tenth(alice, broker):
    alice.set({"client-id": "raw"}, producer_byte_rate=10_000.0)
    start, sent, in_window = broker.clock.monotonic(), 0, 0
    while (now := broker.clock.monotonic() - start) < 40:
        seconds = alice.produce(1000)
        sent += 1000
        in_window += 1000 if 20 <= now < 30 else 0
        broker.clock.advance(seconds + 0.001)
    assert in_window == pytest.approx(100_000, rel=0.1)


def test_a_fetch_over_the_quota_is_empty(alice, broker):
    alice.produce(20_000)
    alice.set({"user": "alice"}, consumer_byte_rate=3000.0)
    response, seconds = alice.fetch()
    assert records_in(response) > 20_000
    assert seconds == 0
    response, seconds = alice.fetch()
    assert response.responses == []
    assert 3 < seconds < 5
    assert alice.fetch()[1] == pytest.approx(seconds), "what was not sent does not count"
    broker.clock.advance(12)
    assert records_in(alice.fetch()[0]) > 20_000


def test_a_fetch_asks_for_no_more_than_the_quota_can_ever_give(alice):
    for _ in range(4):
        alice.produce(9000)
    alice.set({"user": "alice"}, consumer_byte_rate=1000.0)
    response, seconds = alice.fetch()
    assert 9000 < records_in(response) <= 10_000
    assert seconds == 0


def test_a_throttled_fetch_begins_no_session_and_keeps_one_that_there_is(alice, broker):
    alice.produce(5000)
    first, _ = alice.fetch(epoch=0)
    assert first.session_id
    alice.set({"user": "alice"}, consumer_byte_rate=1.0)
    response, seconds = alice.fetch(epoch=0)
    assert seconds > 0
    assert response.session_id == 0
    sessions = len(broker.fetch_sessions)
    alice.produce(5000)
    response, seconds = alice.fetch(session_id=first.session_id, epoch=1)
    assert seconds > 0
    assert response.session_id == first.session_id
    assert len(broker.fetch_sessions) == sessions == 1
    alice.set({"user": "alice"}, consumer_byte_rate=None)
    response, _ = alice.fetch(session_id=first.session_id, epoch=2)
    assert records_in(response) > 5000


def test_a_fetch_that_has_waited_is_throttled(alice):
    alice.produce(100)
    alice.set({"user": "alice"}, consumer_byte_rate=10.0)
    response, seconds = alice.fetch(offset=1, wait_ms=300, min_bytes=1)
    assert response.responses != []
    response, seconds = alice.fetch(wait_ms=300, min_bytes=100_000)
    assert response.responses == []
    assert seconds > 0


def test_a_follower_is_not_subject_to_quotas(alice):
    alice.produce(5000)
    alice.set({"user": "alice"}, consumer_byte_rate=1.0, request_percentage=0.0001)
    for _ in range(3):
        _, seconds = alice.fetch(replica=2)
        assert seconds == 0


# ---------------------------------------------------------------- time


class SlowClock(ManualClock):
    """A clock that advances whenever it is read."""

    step = 0.0

    def monotonic(self):
        self._now += self.step
        return self._now


def test_time_on_the_loop_throttles_any_request():
    clock = SlowClock()
    config = BrokerConfig.from_properties({"log.dirs": "/a", "listeners": "PLAINTEXT://127.0.0.1:9092"})
    broker = opened(config, MemoryFiles(clock), clock)
    alice = Client(broker)
    alice.create("t")
    alice.produce(100)
    alice.set({"user": "alice"}, request_percentage=1.0)
    clock.step = 0.01
    for _ in range(20):
        response, seconds = alice.ask(MetadataRequest(topics=[]), 12)
    assert response.throttle_time_ms == 1000, "one sample at most"
    assert seconds == 1
    assert alice.produce(1) == 1
    assert alice.fetch()[0].responses == []
    assert alice.ask(MetadataRequest(topics=[]), 0)[1] == 1, "a version that cannot tell"
    assert Client(broker, ANONYMOUS).ask(MetadataRequest(topics=[]), 12)[1] == 0
    clock.step = 0
    broker.close()


# ---------------------------------------------------------------- changes of the cluster

REFUSED = ThrottlingQuotaExceeded.code


def test_topics_beyond_the_quota_are_refused(alice, broker):
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)
    assert alice.create("a", "b", partitions=8) == ([0, 0], 0), "a burst may go beyond the quota once"
    codes, seconds = alice.create("c", "d")
    assert codes == [REFUSED, REFUSED]
    assert seconds == 5
    assert "c" not in broker.image.topics_by_name
    broker.clock.advance(5)
    assert alice.create("c", "d") == ([0, REFUSED], 1)
    assert Client(broker, ANONYMOUS).create("e", partitions=50) == ([0], 0)


def test_validation_counts_too(alice):
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)
    assert alice.create("a", partitions=12, validate_only=True) == ([0], 0)
    assert alice.create("a", validate_only=True) == ([REFUSED], 1)


def test_what_is_wrong_anyway_does_not_count(alice):
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)
    alice.create(*["t"], partitions=100)
    assert alice.create("a") == ([0], 0)


def test_a_client_that_does_not_know_the_error_is_throttled(alice):
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)
    assert alice.create("a", partitions=15, version=5) == ([0], 4)
    assert alice.create("b", version=5) == ([0], 5)


def test_partitions_and_deletions_count(alice, broker):
    alice.create("a", partitions=1)
    alice.create("b", partitions=1)
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)

    def grow(total, version):
        topic = CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=total, assignments=None)
        response, seconds = alice.ask(
            CreatePartitionsRequest(topics=[topic], timeout_ms=1000, validate_only=False), version
        )
        assert response.throttle_time_ms == round(seconds * 1000)
        return response.results[0].error_code, response.results[0].error_message, seconds

    def delete(name, version):
        request = DeleteTopicsRequest(topics=[], topic_names=[name], timeout_ms=1000)
        if version > 5:
            topic = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=bytes(16))
            request = DeleteTopicsRequest(topics=[topic], timeout_ms=1000)
        response, seconds = alice.ask(request, version)
        return response.responses[0].error_code, seconds

    assert grow(13, 3) == (0, None, 0)
    assert grow(14, 3) == (REFUSED, None, 1)
    assert grow(14, 2) == (0, None, 2)
    assert delete("b", 6) == (REFUSED, 2)
    assert delete("b", 4) == (0, 3)
    assert "b" not in broker.image.topics_by_name


def test_topics_are_not_created_by_themselves_beyond_the_quota(alice, broker):
    alice.set({"user": "alice"}, controller_mutation_rate=1.0)
    alice.create("a", partitions=20)
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    _, seconds = alice.ask(request, 9)
    assert seconds == 0
    assert "new" not in broker.image.topics_by_name
    Client(broker, ANONYMOUS).ask(request, 9)
    assert "new" in broker.image.topics_by_name


# ---------------------------------------------------------------- connections


def test_limits_of_connections_come_from_configs_and_quotas():
    properties = {"listener.name.plaintext.max.connection.creation.rate": "2"}
    broker = opened_broker(**properties)
    assert [broker.connection_rates.arrives("PLAINTEXT") for _ in range(22)] == [0] * 20 + [500, 1000]
    broker.close()


def test_names_of_hosts_are_limited_by_their_addresses(broker):
    client = Client(broker)
    broker.names._address_of = {"db.example": "10.0.0.7"}.get
    client.set({"ip": "db.example"}, connection_creation_rate=1.0)
    client.set({"ip": "127.1"}, connection_creation_rate=1000.0)
    refused = [broker.connection_rates.refuses("PLAINTEXT", "10.0.0.7") for _ in range(12)]
    assert refused == [0] * 10 + [1000, 1000]
    assert not broker.connection_rates.refuses("PLAINTEXT", "10.0.0.8")


class Transport:
    """Records the calls."""

    def __init__(self, host="127.0.0.1"):
        self.peer, self.is_reading, self.was_aborted, self.is_closed = (host, 50000), True, False, False

    def get_extra_info(self, name):
        return self.peer if name == "peername" else None

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True

    def abort(self):
        self.was_aborted = True

    def close(self):
        self.is_closed = True


class Door:
    """A listener without a socket, on a broker with a manual clock."""

    def __init__(self, **properties):
        self.broker = opened_broker(**properties)
        self.clock = self.broker.clock
        (endpoint,) = self.broker.config.listeners
        self.listener = Listener(endpoint, self.broker, BufferPool(), Census(), Promise())

    def time(self):
        return self.clock.monotonic()

    def call_later(self, delay, callback, *args):
        return self.clock.call_later(delay, callback, *args)

    def come(self, host="127.0.0.1"):
        connection, transport = Connection(self.listener, self), Transport(host)
        connection.connection_made(transport)
        return transport


def test_connections_beyond_the_rate_wait_in_line():
    door = Door(max_connection_creation_rate="1")
    first = [door.come() for _ in range(10)]
    assert all(each.is_reading for each in first)
    second, third = door.come(), door.come()
    assert not second.is_reading
    assert not third.is_reading
    assert len(door.listener.connections) == 10
    door.clock.advance(1)
    assert (second.is_reading, third.is_reading) == (True, False)
    door.clock.advance(1)
    assert third.is_reading
    assert len(door.listener.connections) == 12


def test_a_line_is_no_longer_than_the_backlog():
    door = Door(max_connection_creation_rate="1", socket_listen_backlog_size="3")
    came = [door.come() for _ in range(15)]
    assert [each.was_aborted for each in came] == [False] * 13 + [True] * 2


def test_who_goes_while_it_waits_is_not_let_in():
    door = Door(max_connection_creation_rate="1")
    for _ in range(11):
        door.come()
    (waiting,) = door.listener._arriving
    waiting.connection_lost(None)
    door.clock.advance(5)
    assert len(door.listener.connections) == 10


def test_a_listener_that_stops_lets_nobody_in_any_more():
    door = Door(max_connection_creation_rate="1")
    came = [door.come() for _ in range(12)]
    door.listener.stop_accepting()
    door.clock.advance(5)
    assert [each.was_aborted for each in came] == [False] * 10 + [True] * 2


def test_a_connection_beyond_the_quota_of_its_address_is_closed_a_little_later():
    door = Door()
    Client(door.broker).set({"ip": "10.0.0.1"}, connection_creation_rate=1.0)
    came = [door.come("10.0.0.1") for _ in range(11)]
    assert not came[-1].is_reading
    assert not came[-1].was_aborted
    assert len(door.listener.connections) == 10
    assert door.come("10.0.0.2").is_reading
    door.clock.advance(1)
    assert came[-1].was_aborted


def test_a_listener_has_a_number_of_connections_of_its_own():
    door = Door(**{"listener.name.plaintext.max.connections": "2"})
    assert [door.come().was_aborted for _ in range(3)] == [False, False, True]
