"""librdkafka without ApiVersions requests (``api.version.request=false``), configured for an old broker."""

from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, TopicPartition

from .modern import SECONDS, plain, poll, read, write

T0 = 1_600_000_000_000
CODECS = ["none", "gzip", "snappy", "lz4"]
#: Long enough to be compressed: librdkafka sends a batch uncompressed if compression does not make it smaller.
RECORDS: list[Any] = [("key", "one " * 50, T0 + 5), (None, "two " * 50, T0 + 2), ("gone", None, T0 + 9)]


@pytest.fixture(params=["0.8.2", "0.9.0"])
def old(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"api.version.request": False, "broker.version.fallback": request.param}


def in_words(messages: list[Any]) -> list[tuple[Any, ...]]:
    return [(*plain(each), each.headers()) for each in messages]


EXPECTED = [(n, key, value, None) for n, (key, value, _) in enumerate(RECORDS * len(CODECS))]
"""The expected records of four batches: these formats have no headers and no timestamps."""


def test_it_writes_and_both_read(bootstrap: str, topic: str, old: dict[str, Any]) -> None:
    for codec in CODECS:
        write(bootstrap, topic, RECORDS, codec, **old)
    assert in_words(read(bootstrap, topic, 12, **old)) == EXPECTED
    found = read(bootstrap, topic, 12)
    assert in_words(found) == EXPECTED
    assert {each.timestamp() for each in found} == {(TIMESTAMP_CREATE_TIME, -1)}


def test_it_reads_what_is_written_today(bootstrap: str, topic: str, old: dict[str, Any]) -> None:
    for codec in CODECS:
        write(bootstrap, topic, RECORDS, codec)
    found = read(bootstrap, topic, 12, **old)
    assert in_words(found) == EXPECTED
    assert {each.timestamp()[0] for each in found} == {TIMESTAMP_NOT_AVAILABLE}
    assert in_words(read(bootstrap, topic, 7, 5, **old)) == EXPECTED[5:]


def test_zstd_is_refused(bootstrap: str, topic: str, old: dict[str, Any]) -> None:
    """A consumer that cannot decompress the records gets an error."""
    write(bootstrap, topic, RECORDS, "zstd")
    with pytest.raises(AssertionError, match="UNSUPPORTED_COMPRESSION_TYPE"):
        read(bootstrap, topic, 1, **old)


def test_a_group_continues_at_its_committed_offsets(
    bootstrap: str, topic: str, group: str, old: dict[str, Any]
) -> None:
    if old["broker.version.fallback"] == "0.8.2":
        pytest.skip("groups' members are told of each other from 0.9 on")
    write(bootstrap, topic, [(None, str(n), T0) for n in range(6)], "gzip")
    for expected_values in (["0", "1", "2"], ["3", "4", "5"]):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **old,
            }
        )
        consumer.subscribe([topic])
        found = poll(consumer, 3)
        assert [each.value().decode() for each in found] == expected_values
        consumer.commit(message=found[-1], asynchronous=False)
        consumer.close()


def test_offsets(bootstrap: str, topic: str, old: dict[str, Any]) -> None:
    write(bootstrap, topic, RECORDS)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "offsets", **old})
    try:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS) == (0, 3)
    except KafkaException as error:
        pytest.fail(str(error))
    finally:
        consumer.close()
