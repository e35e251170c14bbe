"""Transactions that begin at one broker and end at the other, on one data directory.

The next broker on the directory completes prepared transactions after a kill. Requests are raw, so that a producer
continues with the same ids, epochs and sequence numbers.
"""

import struct
import time
from pathlib import Path
from typing import Any

import pytest

from .batches import contents, parse
from .hand_over import apache_on, barnabas_on, complaints, records, running
from .play import Play
from .steps import HELPERS, ask, committed, create, flat
from .transaction_files import log_of, partitions, text
from .transaction_steps import OLD, add, add_offsets, begin, described, end, ended, pending, send

pytestmark = pytest.mark.xdist_group("hand_over")

OK, FENCED = 0, 90
PATIENT = 900_000
"""A transaction's time-out in ms, longer than this test."""
COMPLETE_COMMIT, CONTROL = 4, 32


class Producers:
    """Producers that keep their ids from broker to broker, and the visible state of their transactions."""

    def __init__(self) -> None:
        self.saved: dict[str, Any] = {}

    def play(self, bootstrap: str, *steps: Any) -> list[Any]:
        """Returns the responses to all steps that are not quiet."""
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "", HELPERS)
        run.saved = self.saved
        run.run(list(flat(steps)))
        assert not [label for label, _, _ in run.transcript if label.endswith("setup")], run.transcript
        return [answer for _, _, answer in run.transcript]

    def state(self, bootstrap: str, txn: str) -> tuple[str, int]:
        (answer,) = self.play(bootstrap, described(txn))
        (found,) = answer["TransactionStates"]
        return found["TransactionState"], found["ProducerEpoch"]

    def offset(self, bootstrap: str, group: str) -> int:
        """Returns the group's committed offset for 0 of ``t``, once nothing is pending there."""
        (answer,) = self.play(bootstrap, committed(group, "t", v=7, RequireStable=True))
        (partition,) = answer["Topics"][0]["Partitions"]
        assert partition["ErrorCode"] == OK
        return int(partition["CommittedOffset"])


def values(bootstrap: str, topic: str, count: int = 0) -> list[bytes]:
    """Waits until a read_committed consumer gets this number of records of partition 0; returns their values.

    Apache Kafka may show the records of a complete transaction a moment later.
    """
    deadline = time.monotonic() + 60
    while len(found := given(bootstrap, topic)) < count and time.monotonic() < deadline:
        pass
    return found


def given(bootstrap: str, topic: str) -> list[bytes]:
    """Returns the committed values at this moment."""
    (found,) = records(bootstrap, [(topic, 0)], "read_committed").values()
    return [value for _, _, _, value, _ in found[1:]]


def left_open(name: str) -> list[Any]:
    """Begins transactions of a new and of an old client, with records and offsets, that stay open."""
    new, old = f"new {name}", f"old {name}"
    return [
        begin(new, save=new, timeout=PATIENT),
        send(f"of {new}", txn=new, pid=f"${new}", topic="t", v=12, quiet=True),
        pending(7, new, new, topic="t", pid=f"${new}", v=5, quiet=True),
        begin(old, save=old, timeout=PATIENT),
        add(old, [("t", (0,))], pid=f"${old}", v=3, quiet=True),
        add_offsets(old, old, pid=f"${old}", v=3, quiet=True),
        send(f"of {old}", txn=old, pid=f"${old}", topic="t", v=OLD["Produce"], quiet=True),
        pending(8, old, old, topic="t", pid=f"${old}", v=4, quiet=True),
    ]


def go_on(producers: Producers, bootstrap: str, name: str) -> None:
    """At the next broker: writes more records, commits one transaction, aborts the other, and begins the next."""
    new, old = f"new {name}", f"old {name}"
    assert producers.state(bootstrap, new) == ("Ongoing", 0)
    assert producers.state(bootstrap, old) == ("Ongoing", 0)
    committed_new, aborted_old, late = producers.play(
        bootstrap,
        send(f"more of {new}", txn=new, pid=f"${new}", topic="t", sequence=1, v=12, quiet=True),
        send(f"more of {old}", txn=old, pid=f"${old}", topic="t", sequence=1, v=OLD["Produce"], quiet=True),
        end(True, new, pid=f"${new}", v=5),
        ended(True, new),
        end(False, old, pid=f"${old}", v=4),
        ended(False, old),
        send(f"next of {new}", txn=new, pid=f"${new}", epoch=1, topic="t", v=12, quiet=True),
        end(False, new, pid=f"${new}", v=5),
    )
    assert (committed_new["ErrorCode"], committed_new["ProducerEpoch"]) == (OK, 1)
    assert (aborted_old["ErrorCode"], late["ErrorCode"]) == (OK, FENCED)
    assert producers.state(bootstrap, new) == ("Ongoing", 1)
    assert producers.offset(bootstrap, new) == 7
    assert producers.offset(bootstrap, old) == -1


def finish(producers: Producers, bootstrap: str, name: str) -> None:
    """At the first broker again: commits the transaction that was begun at the other."""
    new = f"new {name}"
    (answer,) = producers.play(bootstrap, end(True, new, pid=f"${new}", epoch=1, v=5), ended(True, new))
    assert (answer["ErrorCode"], answer["ProducerEpoch"]) == (OK, 2)


def prepared(name: str) -> list[Any]:
    """Commits a last transaction, with its own topic and group, so that its end can be cut off."""
    return [
        create(name),
        begin(name, save=name, timeout=PATIENT),
        send(f"of {name}", txn=name, pid=f"${name}", topic=name, v=12, quiet=True),
        pending(9, name, name, topic="t", pid=f"${name}", v=5, quiet=True),
        end(True, name, pid=f"${name}", v=5, quiet=True),
        ended(True, name),
    ]


def cut(data: Path, name: str) -> None:
    """Removes the markers and the completion, as if the broker had been killed after the decision."""
    (data / ".kafka_cleanshutdown").unlink(missing_ok=True)
    last = shorten(data / f"{name}-0")
    assert last["attributes"] & CONTROL
    (offsets,) = (each for each in partitions(data, "__consumer_offsets") if name.encode() in log_of(each))
    assert shorten(offsets)["attributes"] & CONTROL
    (state,) = (each for each in partitions(data, "__transaction_state") if name.encode() in log_of(each))
    *_, (key, value) = contents(log_of(state))
    assert key is not None
    assert value is not None
    assert text(key, 2)[0] == name
    assert value[2 + 8 + 2 + 4] == COMPLETE_COMMIT
    shorten(state)


def shorten(directory: Path) -> dict[str, Any]:
    """Removes the last batch of a partition's last segment."""
    path = max(path for path in directory.glob("*.log") if path.stat().st_size)
    data, at = path.read_bytes(), 0
    while at + (size := 12 + struct.unpack_from(">i", data, at + 8)[0]) < len(data):
        at += size
    path.write_bytes(data[:at])
    (last,) = parse(data[at:])
    return last


def test_transactions_continue_at_the_other_broker(kafka_jars: Path, tmp_path: Path) -> None:
    theirs, ours = apache_on(tmp_path), barnabas_on(tmp_path)
    ours.port = theirs.port
    producers, data = Producers(), tmp_path / "data"
    # Stopped, not killed: until the session of a killed broker expires, Apache Kafka takes the partitions of a
    # prepared transaction for deleted, and completes it without markers.
    with running(ours) as bootstrap:
        coordinators = [ask("FindCoordinator", v=3, Key="any", KeyType=kind, quiet=True) for kind in (0, 1)]
        producers.play(bootstrap, coordinators, create("t"), left_open("first"), prepared("prepared-here"))
    cut(data, "prepared-here")
    with running(theirs, kill=True) as bootstrap:
        assert producers.play(bootstrap, ended(True, "prepared-here")) == []
        assert values(bootstrap, "prepared-here", 1) == [b"of prepared-here"]
        assert producers.offset(bootstrap, "prepared-here") == 9
        assert values(bootstrap, "t") == []
        go_on(producers, bootstrap, "first")
        assert values(bootstrap, "t", 2) == [b"of new first", b"more of new first"]
        producers.play(bootstrap, left_open("second"), prepared("prepared-there"))
    cut(data, "prepared-there")
    with running(ours) as bootstrap:
        assert producers.play(bootstrap, ended(True, "prepared-there")) == []
        assert values(bootstrap, "prepared-there", 1) == [b"of prepared-there"]
        assert producers.offset(bootstrap, "prepared-there") == 9
        finish(producers, bootstrap, "first")
        go_on(producers, bootstrap, "second")
        whole = values(bootstrap, "t", 5)
        expected = ["of new first", "more of new first", "next of new first", "of new second", "more of new second"]
        assert whole == [value.encode() for value in expected]
        states = {name: producers.state(bootstrap, name) for name in ("new first", "old first", "new second")}
    with running(theirs) as bootstrap:
        assert {name: producers.state(bootstrap, name) for name in states} == states
        finish(producers, bootstrap, "second")
        assert values(bootstrap, "t", 6) == [*whole, b"next of new second"]
    assert not complaints(theirs.log)
    assert not ours.complaints()
