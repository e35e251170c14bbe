"""``python -m benchmarks.columnar [--rounds N]``: CPU time of making columns of fetched batches.

Beside a bare pass over the same bytes (checksum and copy) and the reading record by record, in turns, in one process.
Knows nothing of brokers, nor of Spark.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from barnabas.columnar.decoding import decode_each
from barnabas.pipelines.client.memory import keep_freed_memory
from barnabas.records.batch import Compression, batches
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.checksum import crc32c
from barnabas.records.compression import decompress
from barnabas.records.record import records_of

FETCH = 4 << 20  # bytes, about as many as a fetch answers
START_MS = 1_700_000_000_000


class Case(NamedTuple):
    """Records of one kind, in batches of one size."""

    what: str
    sizes: tuple[int, int]  #: the shortest and the longest value, in bytes
    a_batch: int  #: records
    codec: Compression = Compression.NONE


CASES = [
    Case("100 B, batches of 10,000", (100, 100), 10_000),
    Case("20 to 180 B, batches of 10,000", (20, 180), 10_000),
    Case("20 to 180 B, batches of 140", (20, 180), 140),
    Case("20 to 180 B, batches of 10,000, lz4", (20, 180), 10_000, Compression.LZ4),
    Case("20 to 180 B, batches of one", (20, 180), 1),
    Case("1 KiB, batches of 1,000", (1024, 1024), 1_000),
    Case("1 KiB, batches of 1,000, lz4", (1024, 1024), 1_000, Compression.LZ4),
]


def fetched(case: Case) -> tuple[bytes, int]:
    """Returns the content of a fetch, the same for each run; and its number of records."""
    chance, data, count = random.Random(case.what), bytearray(), 0
    words = chance.randbytes(1 << 16).hex().encode()
    while len(data) < FETCH / (4 if case.a_batch == 1 else 1):
        records: list[NewRecord] = []
        for at in range(count, count + case.a_batch):
            begin, length = chance.randrange(1 << 16), chance.randint(*case.sizes)
            records.append((b"key-%d" % (at % 1000), words[begin : begin + length], START_MS + at // 9))
        data += build_batch(records, base_offset=count, compression=case.codec, compression_level=1)
        count += case.a_batch
    return bytes(data), count


def columns(data: bytes) -> None:
    for _ in decode_each(data, topic="topic", partition=0, start=0):
        pass


def bare(data: bytes) -> None:
    """The minimum work: the checksum, decompression, and one copy."""
    for batch in batches(data):
        crc32c(batch.buffer)
        codec = batch.compression
        body = batch.body if codec is Compression.NONE else decompress(codec, batch.body, 1 << 30)
        bytearray(body)


def one_by_one(data: bytes) -> None:
    for batch in batches(data):
        for _ in records_of(batch):
            pass


def nanoseconds(way: Callable[[bytes], None], data: bytes, records: int) -> float:
    began = time.process_time()
    way(data)
    return (time.process_time() - began) / records * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each; medians are printed (default 9)")
    rounds = parser.parse_args().rounds
    keep_freed_memory()  # as a reader does
    table = Table("records", "columns: ns a record", "bare", "ratio", "one by one", "ratio")
    for case in CASES:
        data, records = fetched(case)
        taken: dict[str, list[float]] = {}
        for _ in range(rounds):
            for way in (columns, bare, one_by_one):
                taken.setdefault(way.__name__, []).append(nanoseconds(way, data, records))
        ours, floor, single = map(statistics.median, taken.values())
        table.add_row(
            case.what, f"{ours:.0f}", f"{floor:.0f}", f"{ours / floor:.1f}x", f"{single:.0f}", f"{single / ours:.1f}x"
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
