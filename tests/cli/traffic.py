"""Traffic of clients: an admin, producers of three kinds, groups of both protocols.

Knows nothing of the broker.
"""

from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

TOPIC = "orders"


def group(bootstrap, name, count, **more):
    """Runs a group of one member, which reads this number of records and commits."""
    settings = {"bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest", **more}
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    found = []
    while len(found) < count:
        found += [each.value() for each in consumer.consume(count - len(found), timeout=30) if not each.error()]
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def transactions(bootstrap):
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "billing"})
    producer.init_transactions()
    for value, end in ((b"kept", producer.commit_transaction), (b"lost", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(TOPIC, value, partition=0)
        producer.flush(30)  # otherwise an abort drops unsent records
        end()


def traffic(bootstrap):
    """Creates a topic, writes records to it, and reads each of them several times."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(TOPIC, 2, 1)])
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for value in (b"tea", b"milk"):
        producer.send(TOPIC, value).get(10)
    producer.close()
    transactions(bootstrap)
    group(bootstrap, "classic", 3)
    group(bootstrap, "new", 3, **{"group.protocol": "consumer", "isolation.level": "read_committed"})
    consumer = KafkaConsumer(bootstrap_servers=bootstrap)
    consumer.assign([TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)])
    consumer.seek_to_beginning()
    found = []
    while len(found) < 4:
        found += [each for some in consumer.poll(1000).values() for each in some]
    consumer.close()
    admin.close()
