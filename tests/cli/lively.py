"""Creates a data directory with records and files of all kinds, by a broker that is used and stopped.

Knows nothing of the tools that read it.
"""

import random
import struct
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.testing import Broker

SMALL = {"internal.segment.bytes": 3000, "index.interval.bytes": 300}
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000


def make(directory: Path) -> Path:
    """Fills ``directory``, in two runs of the broker; the second has another leader epoch."""
    chance = random.Random(4)
    configs = {
        "log.dirs": str(directory),
        "offsets.topic.num.partitions": 2,
        "log.retention.ms": -1,
    }
    for life in range(2):
        with Broker(configs, on_disk=True) as broker:
            if life == 0:
                broker.create_topic("orders", partitions=2, configs=SMALL)
                broker.create_topic("payments", configs=SMALL)
                broker.create_topic("empty")
                broker.create_topic("gone")
            produce(broker, chance, life)
            transact(broker, life)
            consume(broker)
            if life == 0:
                broker._call(lambda: broker._server.broker.metadata.snapshots.write_snapshot())
            else:
                with_admin(broker)
    return directory


def produce(broker: Broker, chance: random.Random, life: int) -> None:
    """Produces batches of every codec, with and without idempotence."""
    for number, codec in enumerate(CODECS):
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            compression_type=codec,
            enable_idempotence=number % 2 == 0,
            linger_ms=0,
        )
        for count in range(20):
            key = None if count % 3 else b"k%d" % count
            headers = [("h", b"1"), ("n", b"")] if count % 4 == 0 else []
            value = chance.randbytes(chance.randrange(60)) if count % 2 else b"gr\xc3\xbcezi " * 4
            at = START_MS + life * 10_000_000 + number * 100_000 + count * 10 - count % 7 * 40
            producer.send("orders", value, key=key, headers=headers, partition=count % 2, timestamp_ms=at)
            if count % 5 == 4:
                producer.flush()
        producer.close()


def transact(broker: Broker, life: int) -> None:
    """Writes transactions that are committed or aborted; the last one of the second run stays open."""

    def append(values: list[bytes], producer_id: int, sequence: int, marker: int | None = None) -> None:
        log = broker._server.broker.partition("payments", 0).log
        at = START_MS + life * 1_000_000 + log.log_end_offset
        if marker is None:
            records = [(None, value, at) for value in values]
        else:
            records = [(struct.pack(">hh", 0, marker), struct.pack(">hi", 0, 3), at)]
        batch = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
            is_control=marker is not None,
            compression=Compression.NONE if marker is not None else Compression.LZ4,
        )
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=log.latest_epoch, now_ms=at)
        log.maybe_set_high_watermark(log.log_end_offset)

    def all_of_them() -> None:
        for turn in range(12):
            first = (life * 12 + turn) * 3
            append([b"a" * 90, b"b" * 40], 700, first)
            append([b"c" * 90], 701, life * 12 + turn)
            append([b"d" * 30], 700, first + 2)
            append([], 700, -1, marker=turn % 2)
            append([], 701, -1, marker=turn % 3 > 0)
        if life:
            append([b"open"], 702, 0)

    broker._call(all_of_them)


def consume(broker: Broker) -> None:
    """Reads with a group, and commits."""
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    assert consumer.poll(60_000)
    consumer.commit()
    consumer.close()


def with_admin(broker: Broker) -> None:
    """Creates a topic, and deletes it."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_topics(["gone"])
    admin.close()
