"""Producers whose epochs run out, at Barnabas and Apache Kafka: both start on directories with nearly the last epoch.

32,767 transactions would take too long: the test raises the epochs in the coordinator's log on disk.
"""

import shutil
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import crc32c
import pytest

from . import compare
from .batches import CRC_FROM, contents, parse
from .hand_over import apache_on, barnabas_on, running
from .play import Play, Step
from .steps import HELPERS, ask, create, flat
from .transaction_files import log_of, partitions, text
from .transaction_steps import OLD, add, begin, described, end, ended, init, producers, read, send

pytestmark = pytest.mark.xdist_group("hand_over")

LAST = 32766
"""The last epoch of a client; the next one occurs only in markers."""


def named(epoch: int, what: str) -> str:
    return f"{epoch} {what}"


def conversation(epoch: int) -> list[Any]:
    """Returns the results of each way to continue from an epoch, each with its own transactional id."""

    def of(what: str) -> dict[str, Any]:
        return {"txn": named(epoch, what), "pid": f"${named(epoch, what)}"}

    def produced(what: str, *, v: int = 12) -> Step:
        return send(what, **of(what), epoch=epoch, topic="t", v=v, quiet=True)

    taken, own, new, old = (named(epoch, what) for what in WAYS[:4])
    return [
        [[init(taken, v=5), described(taken)] for _ in range(3)],
        [[init(own, pid=f"${own}", epoch=each, v=5), described(own)] for each in OWN[epoch]],
        produced("new client"),
        [end(**of("new client"), epoch=epoch, v=5), ended(True, new), described(new)],
        [end(is_commit, **of("new client"), epoch=epoch, v=5) for is_commit in (True, False)],
        [init(new, pid=f"${new}", epoch=epoch, v=5), described(new)] if epoch + 1 != LAST else [],
        add(**of("old client"), topics=[("t", (0,))], epoch=epoch, v=3, quiet=True),
        produced("old client", v=OLD["Produce"]),
        [end(False, **of("old client"), epoch=epoch, v=4), ended(False, old), described(old)],
        [init(old, v=4), described(old)],
        produced("fenced"),
        [init(named(epoch, "fenced"), v=5), described(named(epoch, "fenced"))],
        [end(False, **of("nothing"), epoch=epoch, v=5), described(named(epoch, "nothing"))],
        [end(False, **of("nothing"), epoch=epoch, v=5), described(named(epoch, "nothing"))],
        produced("late"),
        ended(False, named(epoch, "late")),
        described(named(epoch, "late")),
        [init(named(epoch, "late"), v=5), described(named(epoch, "late"))],
        producers("t"),
        read(topic="t", v=11),
    ]


WAYS = ("taken", "own", "new client", "old client", "fenced", "nothing", "late")
EPOCHS = (LAST - 2, LAST - 1, LAST)
OWN = {LAST - 2: (0, LAST - 2, LAST - 2, LAST - 1), LAST - 1: (0, LAST - 1, LAST), LAST: (LAST, LAST)}
"""The epochs that a producer says are its own. Never an older one than the last: at that Apache Kafka fails (-1), where
Barnabas takes a retry for one, and fences others."""

COORDINATORS = [ask("FindCoordinator", v=3, Key="any", KeyType=kind, quiet=True) for kind in (0, 1)]
BEGINNING = [
    COORDINATORS,
    create("t"),
    [
        begin(named(epoch, what), save=named(epoch, what), timeout=500 if what == "late" else 60_000)
        for epoch in EPOCHS
        for what in WAYS
    ],
]


def raise_epochs(data: Path) -> None:
    """Raises the epoch of each transactional id to the number that its name begins with."""
    for directory in partitions(data, "__transaction_state"):
        for path in directory.glob("*.log"):
            log, at, raised = path.read_bytes(), 0, b""
            while at < len(log):
                size = 12 + struct.unpack_from(">i", log, at + 8)[0]
                raised += with_epoch(log[at : at + size])
                at += size
            path.write_bytes(raised)


def with_epoch(batch: bytes) -> bytes:
    ((key, value),) = contents(batch)
    assert key is not None
    assert value is not None
    name, _ = text(key, 2)
    changed = value[:10] + struct.pack(">h", int(name.split()[0])) + value[12:]
    covered = batch[CRC_FROM:].replace(value, changed)
    return batch[: CRC_FROM - 4] + struct.pack(">I", crc32c.crc32c(covered)) + covered


def transcript_of(bootstrap: str, saved: dict[str, Any]) -> list[tuple[str, str, Any]]:
    host, _, port = bootstrap.partition(":")
    play = Play((host, int(port)), "", HELPERS)
    play.saved = dict(saved)
    play.run(list(flat([COORDINATORS, *(conversation(epoch) for epoch in EPOCHS)])))
    normal = compare.Normal(int(port), time.time_ns() // 1_000_000, "\0", saved)
    return [(label, api, normal.answer(answer, api=api)) for label, api, answer in play.transcript]


def test_epochs_run_out(kafka_jars: Path, tmp_path: Path) -> None:
    quick = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    ours, theirs = barnabas_on(tmp_path / "ours", quick), apache_on(tmp_path / "theirs", quick)
    with running(ours) as bootstrap:
        host, _, port = bootstrap.partition(":")
        play = Play((host, int(port)), "", HELPERS)
        play.run(list(flat(BEGINNING)))
        assert not play.transcript, play.transcript
    raise_epochs(ours.home / "data")
    for directory in partitions(ours.home / "data", "__transaction_state"):
        assert all(each["crc_holds"] for each in parse(log_of(directory)))
    shutil.copytree(ours.home / "data", theirs.home / "data")
    with running(ours) as here, running(theirs) as there, ThreadPoolExecutor(2) as pool:
        mine, wanted = pool.map(lambda bootstrap: transcript_of(bootstrap, play.saved), (here, there))
    found = compare.compare(wanted, mine)
    assert not found, "\n".join(map(str, found))
    assert not ours.complaints()
