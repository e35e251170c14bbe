"""The same transactions at Barnabas and at Apache Kafka, and a comparison of their files."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from . import compare, transaction_files
from .batches import T0
from .conftest import Pair
from .play import Play, Step
from .steps import HELPERS, create, flat, produce
from .test_transaction_levels import put_at
from .transaction_steps import (
    OLD,
    add,
    add_offsets,
    begin,
    end,
    ended,
    mark,
    marker,
    pending,
    send,
)

DAY = 24 * 3600 * 1000
numbers = itertools.count(1)


def of_old_clients() -> list[Any]:
    """Transactions that are committed, aborted, timed out, fenced, left open; with offsets, on two partitions."""
    old = {"v": OLD["Produce"], "quiet": True}
    begun = [begin("~old"), begin("~older", save="q")]
    one = [
        add("~old", [("~t", (0, 1))], v=3, quiet=True),
        add_offsets("~old", v=3, quiet=True),
        add("~older", pid="$q", v=3, quiet=True),
        send("a", "b", txn="~old", **old),
        send("aa", txn="~older", pid="$q", **old),
        send("c", txn="~old", partition=1, **old),
        pending(5, "~old", v=4, quiet=True),
        end(txn="~old", v=4, quiet=True),
        ended(txn="~old"),
        send("bb", txn="~older", pid="$q", sequence=1, **old),
        end(False, "~older", pid="$q", v=4, quiet=True),
        ended(False, "~older"),
    ]
    other = [
        add_offsets("~old", v=3, quiet=True),
        pending(6, "~old", v=4, quiet=True),
        end(False, "~old", v=4, quiet=True),
        ended(False, "~old"),
        begin("~old"),
        add("~old", epoch=1, v=3, quiet=True),
        send("taken away", txn="~old", epoch=1, **old),
        begin("~old"),
        begin("~late", timeout=200, save="l"),
        add("~late", pid="$l", v=3, quiet=True),
        send("late", txn="~late", pid="$l", **old),
        ended(False, "~late"),
        begin("~open", save="o"),
        add("~open", pid="$o", v=3, quiet=True),
        add_offsets("~open", pid="$o", v=3, quiet=True),
        send("open", txn="~open", pid="$o", **old),
        pending(7, "~open", pid="$o", v=4, quiet=True),
    ]
    return [begun, one, other]


def of_new_clients() -> list[Any]:
    new = {"v": 12, "quiet": True}
    return [
        begin(),
        send("a", "b", **new),
        pending(5, v=5, quiet=True),
        end(v=5, quiet=True),
        ended(),
        send("c", epoch=1, **new),
        send("d", epoch=1, partition=1, **new),
        pending(6, epoch=1, v=5, quiet=True),
        end(False, epoch=1, v=5, quiet=True),
        ended(False),
        end(False, epoch=2, v=5, quiet=True),  # an empty transaction
        ended(False),
        send("e", epoch=3, **new),
        begin(),
        begin("~late new", timeout=200, save="n"),
        send("late", txn="~late new", pid="$n", **new),
        ended(False, "~late new"),
        begin("~open new", save="m"),
        send("open", txn="~open new", pid="$m", **new),
        pending(7, "~open new", pid="$m", v=5, quiet=True),
    ]


def of_rolls() -> list[Any]:
    """Markers have the current time, and the log has old records: each marker begins a segment."""
    return [
        create("~rolled"),
        begin("~r", save="r"),
        [
            [
                add("~r", [("~rolled", (0,))], pid="$r", v=3, quiet=True),
                send(b"%d" % turn, txn="~r", pid="$r", topic="~rolled", sequence=turn, v=11, quiet=True),
                end(turn % 3 == 0, "~r", pid="$r", v=4, quiet=True),
                ended(turn % 3 == 0, "~r"),
                produce("~rolled", "plain", base_timestamp=T0 + turn * 30 * DAY, v=11, quiet=True),
            ]
            for turn in range(4)
        ],
        mark(marker(topics=[("~rolled", (0,))], pid="$r", epoch=4), v=2, quiet=True),
    ]


CONVERSATIONS = {
    "old clients": list(flat([create("~t", 2), of_old_clients()])),
    "new clients": list(flat([create("~t", 2), of_new_clients()])),
    "rolls": list(flat(of_rolls())),
}


def left(broker: Any, steps: list[Step], prefix: str) -> dict[str, Any]:
    """Returns the files of a conversation, without its own names and times."""
    play = Play(("127.0.0.1", broker.port), prefix, HELPERS)
    play.run(steps)
    assert not play.transcript, play.transcript
    data = broker.home / "data"
    found = {
        "partitions": {
            directory.name.removeprefix(prefix): transaction_files.partition_files(directory)
            for directory in sorted(data.glob(f"{prefix}*"))
        },
        "transactions": transaction_files.transactions(data, prefix),
        "offsets": transaction_files.offsets(data, prefix),
    }
    normal = compare.Normal(broker.port, time.time_ns() // 1_000_000, prefix, play.saved)
    return dict(normal.answer(found))


def judged(brokers: Pair, steps: list[Step]) -> None:
    prefix = f"files-{next(numbers)}-"
    with ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(lambda broker: left(broker, steps, prefix), brokers)
    shown = [
        f"{path}: Apache Kafka {one!r}, Barnabas {other!r}" for path, one, other in compare.differences(theirs, ours)
    ]
    if shown:
        pytest.fail("\n".join(shown), pytrace=False)
    assert theirs["transactions"]
    found = [each for files in theirs["partitions"].values() for each in files.items()]
    assert any(name.endswith(".txnindex") and content for name, content in found)
    assert any(name.endswith(".snapshot") and content for name, content in found)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_the_files_are_the_same(apache_kafka: Any, beside: Any, conversation: str) -> None:
    judged((apache_kafka, beside), CONVERSATIONS[conversation])


@pytest.mark.parametrize(
    ("level", "conversation"), [(1, "old clients"), (1, "new clients"), (1, "rolls"), (0, "old clients"), (0, "rolls")]
)
def test_so_they_are_in_the_first_generation(first_generation: Pair, level: int, conversation: str) -> None:
    put_at(level, first_generation)
    judged(first_generation, CONVERSATIONS[conversation])
