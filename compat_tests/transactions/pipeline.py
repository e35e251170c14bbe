"""Consume, transform, produce, exactly once: LIBRARY BOOTSTRAP SOURCE TARGET GROUP ID [PARTITION ...].

Copies each record of SOURCE to the same partition of TARGET, with its offset before its value, and commits the group's
offsets in the same transaction. Reads the named PARTITIONs, or shares SOURCE with the group's other members. Exits at
an unexpected error, as an application that its supervisor restarts.
"""

import sys
from collections.abc import Sequence

from compat_tests.adapters import CLIENTS, Consumer, Place, Record, Refused, Transactional


def transform(producer: Transactional, consumer: Consumer, records: Sequence[Record], target: str) -> None:
    """Runs one transaction; aborts and repeats it if the broker or the group requires it."""
    offsets: dict[Place, int] = {}
    producer.begin()
    try:
        for record in records:
            producer.send(target, b"%d:%b" % (record.offset, record.value), partition=record.partition)
            offsets[record.topic, record.partition] = record.offset + 1
        producer.flush()
        if not consumer.assignment().issuperset(offsets):
            raise Refused(27, "these are another's by now")  # REBALANCE_IN_PROGRESS
        producer.send_offsets(consumer, offsets)
        producer.commit()
    except Refused as refusal:
        sys.stderr.write(f"undone: {refusal}\n")
        producer.abort()
        for place in consumer.assignment():
            consumer.seek(place, consumer.committed(place) or 0)


def main() -> None:
    library, bootstrap, source, target, group, transactional_id, *partitions = sys.argv[1:]
    client = CLIENTS[library](bootstrap)
    producer = client.transactional(transactional_id)
    consumer = client.consumer(group=group, isolation="read_committed", session_ms=1000)
    if partitions:
        consumer.assign([(source, int(partition)) for partition in partitions])
    else:
        consumer.subscribe([source])
    while True:
        if records := consumer.poll(0.1):
            transform(producer, consumer, records, target)


if __name__ == "__main__":
    main()
