"""Generated records, the same for the same seed: sizes, keys, nulls, headers and timestamps of all kinds.

Knows nothing of Spark. Tests compare the records row by row.
"""

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from confluent_kafka import Producer

Headers = tuple[tuple[str, bytes | None], ...]

WORDS = [
    "träge",
    "Füchse",
    "springen",
    "über",
    "42",
    "große",
    "犬",
    "und",
    "猫",
    "nobody",
    "watches",
    "the",
    "tape",
    "of",
    "a",
    "log",
]


class Made(NamedTuple):
    """A record before it has an offset; `timestamp` in ms since the epoch."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int


def made(
    topic: str, count: int, *, partitions: int = 4, seed: int = 7, sizes: tuple[int, int] | None = None
) -> list[Made]:
    """Returns `count` records; values of a few bytes to tens of kilobytes, or of a length within `sizes`."""
    chance = random.Random(f"{topic} {seed}")
    now = 1_700_000_000_000
    records = []
    for _ in range(count):
        now += chance.choice((0, 1, 1, 7, 40, 1_000))
        records.append(
            Made(
                topic,
                chance.randrange(partitions),
                _key(chance),
                _value(chance, sizes),
                _headers(chance),
                now - chance.choice((0, 0, 0, 5_000, 86_400_000)),
            )
        )
    return records


def send(bootstrap: str, records: Iterable[Made], **settings: str | int) -> None:
    """Produces each to its own partition, with its own time; settings are librdkafka's, ``_`` for ``.``."""
    problems: list[object] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 5, **{k.replace("_", "."): v for k, v in settings.items()}}
    )
    for topic, partition, key, value, headers, timestamp in records:
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    timestamp=timestamp,
                    headers=list(headers),
                    on_delivery=lambda error, _: problems.append(error) if error else None,
                )
            except BufferError:
                producer.poll(0.1)
            else:
                break
    assert producer.flush(60) == 0
    assert not problems, problems[:3]


def renamed(records: Iterable[Made], topic: str) -> list[Made]:
    """Returns the same records, of another topic."""
    return [record._replace(topic=topic) for record in records]


def by_partition(records: Iterable[Made], partitions: int) -> list[list[Made]]:
    """Returns the records of each partition, in the order of their sends."""
    held: list[list[Made]] = [[] for _ in range(partitions)]
    for record in records:
        held[record.partition].append(record)
    return held


def _key(chance: random.Random) -> bytes | None:
    kind = chance.random()
    if kind < 0.1:
        return None
    if kind < 0.12:
        return b""
    return f"customer-{int(chance.paretovariate(0.8)) % 5_000}".encode()


def _value(chance: random.Random, sizes: tuple[int, int] | None) -> bytes | None:
    kind = chance.random()
    if kind < 0.03:
        return None
    if kind < 0.05:
        return b""
    length = chance.randint(*sizes) if sizes else min(60_000, int(chance.lognormvariate(4.5, 1.1)))
    if kind < 0.3:
        return chance.randbytes(length)
    text = " ".join(chance.choices(WORDS, k=length // 5 + 1)).encode()
    return text[:length]


def _headers(chance: random.Random) -> Headers:
    if chance.random() < 0.6:
        return ()
    names: Sequence[str] = ("trace", "trace", "source", "größe", "")
    return tuple(
        (chance.choice(names), chance.choice((None, b"", b"a", chance.randbytes(chance.randrange(40)))))
        for _ in range(chance.randrange(1, 4))
    )
