"""Each library reads the bytes that the others wrote: before and after a clean stop or a kill of the broker."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping

import pytest

from compat_tests.adapters import CLIENTS, Client, Record
from compat_tests.every_client.test_producing import CODECS, NOON, ODDITIES
from compat_tests.running import Running
from compat_tests.waiting import read

PAIRS = sorted(itertools.product(CLIENTS, CODECS))


@contextlib.contextmanager
def clients(bootstrap: str) -> Iterator[Mapping[str, Client]]:
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(contextlib.closing(make(bootstrap))) for name, make in CLIENTS.items()}


def write_all(bootstrap: str, round_name: str) -> dict[str, list[tuple[object, ...]]]:
    """Writes a topic with each client and codec; returns their records."""
    written = {}
    with clients(bootstrap) as by_name:
        for name, codec in PAIRS:
            topic = f"{round_name}-{name}-{codec}"
            by_name[name].create_topic(topic)
            producer = by_name[name].producer(compression=codec, linger_ms=20, idempotent=codec in ("none", "lz4"))
            written[topic] = []
            for n, (key, value, headers) in enumerate(ODDITIES):
                producer.send(topic, value, key=key, headers=headers, timestamp=NOON + n)
                written[topic].append((n, NOON + n, key, value, headers))
            producer.flush()
    return written


def read_all(bootstrap: str, written: Mapping[str, list[tuple[object, ...]]]) -> None:
    with clients(bootstrap) as by_name:
        for name, client in by_name.items():
            consumer = client.consumer()
            consumer.assign([(topic, 0) for topic in written])
            records = read(consumer, sum(map(len, written.values())))
            found: dict[str, list[tuple[object, ...]]] = {topic: [] for topic in written}
            for record in records:
                found[record.topic].append(seen(record))
            for topic in written:
                assert found[topic] == written[topic], f"{name} reads {topic}"


def seen(record: Record) -> tuple[object, ...]:
    return record.offset, record.timestamp, record.key, record.value, record.headers


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_written_by_one_read_by_all_also_after_a_restart(own_broker: Callable[..., Running], ending: str) -> None:
    broker = own_broker()
    first = write_all(broker.bootstrap, "first")
    read_all(broker.bootstrap, first)
    getattr(broker, ending)()
    broker.start()
    read_all(broker.bootstrap, first)
    second = write_all(broker.bootstrap, "second")
    getattr(broker, ending)()
    broker.start()
    read_all(broker.bootstrap, {**first, **second})
