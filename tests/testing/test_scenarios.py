"""What clients go through in each scenario: kafka-python, librdkafka and aiokafka, over sockets."""

import asyncio
import threading

import aiokafka
import confluent_kafka
import kafka
import pytest

from barnabas.testing import Broker

PATIENCE_S = 20


class KafkaPython:
    """kafka-python, as this test uses it."""

    outlives_request_timeouts = True

    def send(self, broker, *, idempotent=False, timeout_ms=30000, transactional_id=None, connected=lambda: None):
        with kafka.KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            client_id="writer",
            acks="all",
            retries=100,
            retry_backoff_ms=20,
            request_timeout_ms=timeout_ms,
            delivery_timeout_ms=30000,
            enable_idempotence=idempotent or transactional_id is not None,
            transactional_id=transactional_id,
        ) as producer:
            connected()
            if transactional_id is not None:
                producer.init_transactions()
                producer.begin_transaction()
            sent = producer.send("t", b"tea")
            if transactional_id is not None:
                producer.commit_transaction()
            sent.get(PATIENCE_S)

    def commit(self, broker):
        with kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g", retry_backoff_ms=20) as one:
            partition = kafka.TopicPartition("t", 0)
            one.assign([partition])
            one.seek(partition, 0)
            one.commit({partition: kafka.OffsetAndMetadata(7, "", -1)})
            return one.committed(partition)


class ConfluentKafka:
    """librdkafka."""

    outlives_request_timeouts = True

    def send(self, broker, *, idempotent=False, timeout_ms=30000, transactional_id=None, connected=lambda: None):
        configs = {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "writer",
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 50,
            "reconnect.backoff.ms": 20,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "socket.timeout.ms": timeout_ms,
            "request.timeout.ms": min(timeout_ms, 29000),
            "enable.idempotence": idempotent or transactional_id is not None,
            "log_level": 0,
        }
        if transactional_id is not None:
            configs |= {"transactional.id": transactional_id, "transaction.timeout.ms": 60000}
        producer = confluent_kafka.Producer(configs)
        producer.list_topics("t", PATIENCE_S)
        connected()
        errors = []
        if transactional_id is not None:
            producer.init_transactions(PATIENCE_S)
            producer.begin_transaction()
        producer.produce("t", b"tea", on_delivery=lambda error, message: errors.append(error))
        if transactional_id is not None:
            producer.commit_transaction(PATIENCE_S)
        assert producer.flush(PATIENCE_S) == 0
        assert errors == [None]

    def commit(self, broker):
        configs = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
        consumer = confluent_kafka.Consumer(configs)
        partition = confluent_kafka.TopicPartition("t", 0, 7)
        consumer.assign([partition])
        try:
            consumer.commit(offsets=[partition], asynchronous=False)
            return consumer.committed([partition], PATIENCE_S)[0].offset
        finally:
            consumer.close()


class AioKafka:
    """aiokafka."""

    outlives_request_timeouts = False

    def send(self, broker, **options):
        asyncio.run(asyncio.wait_for(self._send(broker, **options), PATIENCE_S))

    async def _send(self, broker, *, idempotent=False, timeout_ms=30000, transactional_id=None, connected=lambda: None):
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            client_id="writer",
            acks="all",
            retry_backoff_ms=20,
            request_timeout_ms=timeout_ms,
            enable_idempotence=idempotent or transactional_id is not None,
            transactional_id=transactional_id,
        ) as producer:
            await producer.partitions_for("t")
            connected()
            if transactional_id is None:
                await producer.send_and_wait("t", b"tea")
            else:
                async with producer.transaction():
                    await producer.send_and_wait("t", b"tea")

    def commit(self, broker):
        return asyncio.run(asyncio.wait_for(self._commit(broker), PATIENCE_S))

    async def _commit(self, broker):
        partition = aiokafka.TopicPartition("t", 0)
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, group_id="g", enable_auto_commit=False, retry_backoff_ms=20
        )
        consumer.assign([partition])
        async with consumer:
            await consumer.commit({partition: 7})
            return await consumer.committed(partition)


@pytest.fixture(scope="module")
def running():
    with Broker() as broker:
        yield broker


@pytest.fixture
def broker(running):
    running.reset()
    running.create_topic("t")
    return running


@pytest.fixture(params=[KafkaPython, ConfluentKafka, AioKafka], ids=lambda each: each.__name__)
def client(request):
    return request.param()


def values(broker):
    return [record.value for record in broker.records("t")]


def test_the_leader_moves_in_mid_batch(broker, client):
    with broker.faults.leader_moves("t") as scenario:
        client.send(broker)
    assert scenario.rules[0].hits == 1
    assert values(broker) == [b"tea"]


def test_the_coordinator_moves(broker, client):
    with broker.faults.coordinator_moves("g") as scenario:
        assert client.commit(broker) == 7
    assert scenario.rules[0].hits == 1


def test_the_producer_is_fenced(broker, client):
    with broker.faults.producer_fenced("tx") as scenario, pytest.raises(Exception, match=r"(?i)fenced"):
        client.send(broker, transactional_id="tx")
    assert scenario.hits >= 1


@pytest.mark.parametrize("scenario", ["disk_full", "too_few_replicas"])
def test_nothing_can_be_appended_for_a_time(broker, client, scenario):
    with getattr(broker.faults, scenario)("t") as failing:
        sending = threading.Thread(target=client.send, args=(broker,))
        sending.start()
        failing.wait_for_hits(2)
        assert values(broker) == []
    sending.join(PATIENCE_S)
    assert values(broker) == [b"tea"]


@pytest.mark.parametrize(("idempotent", "times"), [(False, 2), (True, 1)])
def test_a_lost_answer_is_a_duplicate_without_idempotence(broker, client, idempotent, times):
    with broker.faults.answer_lost("t") as scenario:
        client.send(broker, idempotent=idempotent)
    assert scenario.hits == 1
    assert values(broker) == [b"tea"] * times


def test_a_slow_consumer_is_evicted(broker, client):
    """What commits as a member is told that it is none; these consumers assign themselves, and are told the same."""
    with broker.faults.slow_consumer_evicted("g") as scenario, pytest.raises(Exception, match=r"(?i)commit|member"):
        client.commit(broker)
    assert scenario.rules[0].hits == 1
    assert client.commit(broker) == 7


def test_a_quota_is_exceeded(broker, client):
    with broker.faults.quota_exceeded("writer", throttle_ms=50) as scenario:
        client.send(broker)
    assert scenario.rules[0].hits == 1
    assert values(broker) == [b"tea"]


def test_a_topic_above_the_quota_is_not_created(broker):
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, client_id="writer")
    with broker.faults.quota_exceeded("writer"), pytest.raises(Exception, match=r"(?i)quota"):
        admin.create_topics([kafka.admin.NewTopic("u", 1, 1)])
    admin.close()


@pytest.mark.parametrize("library", ["kafka-python", "confluent"])
def test_an_authentication_expires(library):
    with Broker(users={"alice": "secret"}) as broker:
        broker.create_topic("t")
        settings = broker.client_settings(library, user="alice")
        if library == "kafka-python":
            producer = kafka.KafkaProducer(**settings, retries=10)
            assert producer.partitions_for("t")
        else:
            producer = confluent_kafka.Producer(settings)
            producer.list_topics("t", PATIENCE_S)
        with broker.faults.authentication_expires("User:alice") as scenario:
            if library == "kafka-python":
                producer.send("t", b"tea").get(PATIENCE_S)
                producer.close()
            else:
                producer.produce("t", b"tea")
                assert producer.flush(PATIENCE_S) == 0
        assert scenario.hits == 1
        assert values(broker) == [b"tea"]


def test_the_network_between_client_and_broker_is_cut(broker, client):
    cuts = []

    def cut():
        cuts.append(broker.faults.network_cut("writer"))
        threading.Thread(target=mend).start()

    def mend():
        cuts[0].wait_for_hits(1)
        cuts[0].lift()

    if client.outlives_request_timeouts:
        client.send(broker, timeout_ms=1500, connected=cut)
        assert values(broker) == [b"tea"]
    else:  # aiokafka's batches live no longer than a request
        with pytest.raises(aiokafka.errors.RequestTimedOutError):
            client.send(broker, timeout_ms=1500, connected=cut)
        assert values(broker) == []
    assert cuts[0].hits >= 1
