"""Everything that uses the clock of a broker in a test, each over a socket. No test waits for real time."""

import kafka
import pytest

from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from tests.raw import Client, framed

NONE, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 0, 25, 27
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def running():
    internal = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    with Broker(internal) as broker:
        yield broker


@pytest.fixture
def broker(running):
    running.reset()
    return running


@pytest.fixture
def client(broker):
    with Client(broker.port) as client:
        yield client


def values(broker, topic="t"):
    return [record.value for record in broker.records(topic)]


def seed(broker, *pairs):
    broker.seed([{"topic": "t", "partition": 0, "key": key, "value": value} for key, value in pairs])


def coordinator(client, kind=0):
    """Waits for the coordinator."""
    while client.ask(FindCoordinatorRequest(key="g", key_type=kind), 3).error_code:
        pass


# ---------------------------------------------------------------- logs


def test_retention_by_time(broker):
    broker.create_topic("t", configs={"retention.ms": HOUR_MS})
    seed(broker, ("k", "tea"))
    broker.clock.advance(minutes=50)
    assert values(broker) == [b"tea"]
    broker.clock.advance(minutes=30)
    assert values(broker) == []


def test_compaction_lag(broker):
    lag = {"min.compaction.lag.ms": HOUR_MS, "min.cleanable.dirty.ratio": 0, "segment.ms": 60_000}
    broker.create_topic("t", configs={"cleanup.policy": "compact", **lag})
    for value in ("old", "new"):
        seed(broker, ("k", value))
        broker.clock.advance(minutes=2)
    seed(broker, ("other", "active"))
    broker.clock.advance(minutes=30)
    assert values(broker) == [b"old", b"new", b"active"]
    broker.clock.advance(hours=2)
    assert values(broker) == [b"new", b"active"]


def producers(client):
    topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])
    (topic,) = client.ask(DescribeProducersRequest(topics=[topic]), 0).topics
    return [producer.producer_id for producer in topic.partitions[0].active_producers]


def test_producer_ids_expire(broker, client):
    broker.create_topic("t")
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
    producer.send("t", b"tea").get(10)
    producer.close()
    broker.clock.advance(hours=20)
    assert len(producers(client)) == 1
    broker.clock.advance(hours=5)
    assert producers(client) == []


# ---------------------------------------------------------------- groups and transactions


def test_offsets_expire(broker):
    broker.create_topic("t")
    partition = kafka.TopicPartition("t", 0)

    def committed(offset=None):
        consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g")
        consumer.assign([partition])
        if offset is not None:
            consumer.commit({partition: kafka.OffsetAndMetadata(offset, "", -1)})
        found = consumer.committed(partition)
        consumer.close(autocommit=False)
        return found

    assert committed(5) == 5
    broker.clock.advance(days=6)
    assert committed() == 5
    broker.clock.advance(days=2)
    assert committed() is None


def test_transactions_time_out(broker):
    broker.create_topic("t")
    settings = {"transactional_id": "tx", "transaction_timeout_ms": 60_000}
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("t", b"tea").get(10)
    seed(broker, ("k", "after"))
    broker.clock.advance(seconds=40)
    assert broker.records("t", committed=True) == []
    broker.clock.advance(seconds=60)
    assert [record.value for record in broker.records("t", committed=True)] == [b"after"]
    producer.close(timeout=0)


def join(client, member="", session_ms=10_000, rebalance_ms=60_000):
    protocols = [JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")]
    times = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": rebalance_ms}
    return JoinGroupRequest(group_id="g", member_id=member, protocol_type="consumer", protocols=protocols, **times)


def joined(client, **times):
    """Returns the id of the only member, which leads a stable group."""
    coordinator(client)
    member = client.ask(join(client, **times), 1)
    assert member.error_code == NONE
    own = SyncGroupRequest.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"")
    sync = SyncGroupRequest(
        group_id="g", generation_id=member.generation_id, member_id=member.member_id, assignments=[own]
    )
    assert client.ask(sync, 0).error_code == NONE
    return member


def heartbeat(client, member):
    request = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
    return client.ask(request, 0).error_code


def test_sessions_of_classic_members(broker, client):
    member = joined(client)
    for _ in range(3):
        broker.clock.advance(seconds=7)
        assert heartbeat(client, member) == NONE
    broker.clock.advance(seconds=12)
    assert heartbeat(client, member) == UNKNOWN_MEMBER_ID


def test_rebalance_time_outs_of_classic_members(broker, client):
    """A member that does not rejoin is removed, and the other one gets its response."""
    member = joined(client, session_ms=60_000, rebalance_ms=20_000)
    with Client(broker.port) as other:
        other.send(framed(join(other, session_ms=60_000, rebalance_ms=20_000), 1))
        while heartbeat(client, member) != REBALANCE_IN_PROGRESS:
            pass
        broker.clock.advance(seconds=25)
        assert other.receive() is not None
    assert heartbeat(client, member) == UNKNOWN_MEMBER_ID


def consumer(client, member, epoch, **fields):
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=epoch, **fields)
    return client.ask(request, 1)


def consumer_joined(client, member, **fields):
    coordinator(client)
    subscribed = {"subscribed_topic_names": ["t"], "topic_partitions": [], "rebalance_timeout_ms": 20_000, **fields}
    answer = consumer(client, member, 0, **subscribed)
    assert answer.error_code == NONE
    return answer


def test_sessions_of_consumer_members(broker, client):
    broker.create_topic("t")
    epoch = consumer_joined(client, "one").member_epoch
    broker.clock.advance(seconds=30)
    assert consumer(client, "one", epoch).error_code == NONE
    broker.clock.advance(seconds=60)
    assert consumer(client, "one", epoch).error_code == UNKNOWN_MEMBER_ID


def test_rebalance_time_outs_of_consumer_members(broker, client):
    """A member that does not revoke its partition is fenced."""
    broker.create_topic("t", partitions=2)
    answer = consumer_joined(client, "one")
    owned = [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
        for each in answer.assignment.topic_partitions
    ]
    assert [sorted(each.partitions) for each in owned] == [[0, 1]]
    consumer_joined(client, "two")
    revoking = consumer(client, "one", answer.member_epoch, topic_partitions=owned)
    assert [len(each.partitions) for each in revoking.assignment.topic_partitions] == [1]
    broker.clock.advance(seconds=15)
    assert consumer(client, "one", answer.member_epoch, topic_partitions=owned).error_code == NONE
    broker.clock.advance(seconds=10)
    assert consumer(client, "one", answer.member_epoch, topic_partitions=owned).error_code == UNKNOWN_MEMBER_ID


MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def acquired(client, topic_id, epoch):
    partition = ShareFetchRequest.FetchTopic.FetchPartition(partition_index=0, acknowledgement_batches=[])
    request = ShareFetchRequest(
        group_id="g",
        member_id=MEMBER,
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=0,
        max_records=100,
        batch_size=100,
        topics=[ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])] if epoch == 0 else [],
        forgotten_topics_data=[],
    )
    answer = client.ask(request, 1)
    assert answer.error_code == NONE
    return [
        (batch.first_offset, batch.delivery_count)
        for topic in answer.responses
        for partition in topic.partitions
        for batch in partition.acquired_records
    ]


def test_locks_of_share_groups(broker, client):
    broker.create_topic("t")
    broker.configure_group("g", {"share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": 30_000})
    seed(broker, ("k", "tea"))
    coordinator(client)
    wanted = [MetadataRequest.MetadataRequestTopic(name="t")]
    (topic,) = client.ask(MetadataRequest(topics=wanted), 12).topics
    beat = ShareGroupHeartbeatRequest(group_id="g", member_id=MEMBER, member_epoch=0, subscribed_topic_names=["t"])
    assert client.ask(beat, 1).error_code == NONE
    epochs = iter(range(1000))
    first = []
    while not first:  # the state of the partition is loaded first
        first = acquired(client, topic.topic_id, next(epochs))
    assert first == [(0, 1)]
    broker.clock.advance(seconds=20)
    assert acquired(client, topic.topic_id, next(epochs)) == []
    broker.clock.advance(seconds=15)
    assert acquired(client, topic.topic_id, next(epochs)) == [(0, 2)]


# ---------------------------------------------------------------- quotas


def produce(client, size):
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(
        index=0, records=build_batch([(None, bytes(size), 0, ())])
    )
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    return client.ask(ProduceRequest(transactional_id=None, acks=1, timeout_ms=1000, topic_data=[topic]), 9)


def test_windows_of_quotas(broker, client):
    """Above its quota a client is throttled; after the windows it is not."""
    broker.create_topic("t")
    Entry = AlterClientQuotasRequest.EntryData
    entry = Entry(
        entity=[Entry.EntityData(entity_type="client-id", entity_name="raw")],
        ops=[Entry.OpData(key="producer_byte_rate", value=1000.0, remove=False)],
    )
    client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)

    def throttled_ms(size):
        with Client(broker.port) as another:  # a throttled connection is muted for that time
            return produce(another, size).throttle_time_ms

    assert throttled_ms(50_000) > 0
    assert throttled_ms(10) > 0
    broker.clock.advance(minutes=2)
    assert throttled_ms(10) == 0


# ---------------------------------------------------------------- users


@pytest.fixture(scope="module")
def with_users():
    times = {"connections.max.reauth.ms": 60_000, "delegation.token.secret.key": "not very secret"}
    with Broker(times, users={"ann": "secret"}) as broker:
        yield broker


def log_in(client):
    assert client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == NONE
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\0ann\0secret"), 2)
    assert answer.error_code == NONE
    return answer.session_lifetime_ms


def test_authentications_expire(with_users):
    with Client(with_users.port) as client:
        assert 0 < log_in(client) <= 60_000
        with_users.clock.advance(seconds=40)
        assert client.ask(MetadataRequest(topics=[]), 12) is not None
        with_users.clock.advance(seconds=30)
        assert client.ask(MetadataRequest(topics=[]), 12) is None
    with Client(with_users.port) as client:
        log_in(client)
        with_users.clock.advance(seconds=40)
        log_in(client)  # again, on the same connection (KIP-368)
        with_users.clock.advance(seconds=30)
        assert client.ask(MetadataRequest(topics=[]), 12) is not None


def tokens(broker):
    with Client(broker.port) as client:
        log_in(client)
        return client.ask(DescribeDelegationTokenRequest(owners=None), 3).tokens


def test_delegation_tokens_expire(with_users):
    with Client(with_users.port) as client:
        log_in(client)
        request = CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=48 * HOUR_MS)
        assert client.ask(request, 3).error_code == NONE
    with_users.clock.advance(hours=20)
    assert len(tokens(with_users)) == 1
    with_users.clock.advance(hours=8)
    assert tokens(with_users) == []


# ---------------------------------------------------------------- faults


def test_rules_between_two_moments(broker, client):
    rule = broker.faults.add(api="Metadata", error="UNKNOWN_SERVER_ERROR", topic="t", since=60, seconds=120)
    topics = [MetadataRequest.MetadataRequestTopic(name="t")]
    broker.create_topic("t")

    def error():
        return client.ask(MetadataRequest(topics=topics), 12).topics[0].error_code

    assert error() == NONE
    broker.clock.advance(seconds=70)
    assert error() == -1
    broker.clock.advance(seconds=60)
    assert error() == NONE
    assert rule.hits == 1
