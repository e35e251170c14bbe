"""Offsets in open transactions while the data directory goes from one broker to the other, and back.

Must not read files: committed and unstable offsets are fetched from the running broker.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import NewTopic

from .apache import ApacheKafka
from .hand_over import admin_of, apache_on, barnabas_on, commit, complaints, play, running, wait
from .play import Step
from .steps import ask
from .transaction_steps import add_offsets, ended, init, pending
from .transaction_steps import end as end_step

pytestmark = pytest.mark.xdist_group("hand_over")

GROUP, TOPIC, PARTITIONS = "exactly-once", "ledger", 6
BEFORE, UNSTABLE = 1, "unstable"
UNSTABLE_OFFSET_COMMIT = 88
TIMEOUT_MS = 600_000


class Open(NamedTuple):
    """A producer with an open transaction."""

    name: str
    id: int
    epoch: int
    is_new: bool

    @property
    def identity(self) -> dict[str, Any]:
        return {"pid": self.id, "epoch": self.epoch}


def ready(bootstrap: str, name: str) -> list[Step]:
    keys = (GROUP, 0), (name, 1)
    return [ask("FindCoordinator", v=4, KeyType=kind, CoordinatorKeys=[key]) for key, kind in keys]


def begin(bootstrap: str, partition: int, *, is_new: bool) -> Open:
    """Begins a transaction of the second or of the first generation that sets the group's offset to 10."""
    name = f"writer-{partition}"
    *_, results = play(bootstrap, *ready(bootstrap, name), init(name, timeout=TIMEOUT_MS, v=4))
    assert results["ErrorCode"] == 0, results
    producer = Open(name, results["ProducerId"], results["ProducerEpoch"], is_new)
    place: dict[str, Any] = {"topic": TOPIC, "partition": partition, "v": 5 if is_new else 3}
    steps = [] if is_new else [add_offsets(name, GROUP, **producer.identity, v=3)]
    *_, results = play(bootstrap, *steps, pending(10 + partition, name, GROUP, **place, **producer.identity))
    assert results["Topics"][0]["Partitions"] == [{"PartitionIndex": partition, "ErrorCode": 0}]
    return producer


def end(bootstrap: str, producer: Open, *, is_commit: bool) -> None:
    version = 5 if producer.is_new else 4
    step = end_step(is_commit, producer.name, **producer.identity, v=version)
    results, *_ = play(bootstrap, step, ended(is_commit, producer.name))
    assert results["ErrorCode"] == 0, results


def offsets(bootstrap: str) -> list[int | str]:
    """Returns the offset of each partition, or that it is not stable."""
    topic = {"Name": TOPIC, "PartitionIndexes": list(range(PARTITIONS))}
    group = {"GroupId": GROUP, "Topics": [topic]}
    (found,) = play(bootstrap, ask("OffsetFetch", v=8, Groups=[group], RequireStable=True))
    rows = found["Groups"][0]["Topics"][0]["Partitions"]
    return [UNSTABLE if row["ErrorCode"] == UNSTABLE_OFFSET_COMMIT else row["CommittedOffset"] for row in rows]


@pytest.fixture
def ours_and_theirs(kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[Any, ApacheKafka]]:
    """Returns both brokers on one directory and one port; neither runs."""
    theirs = apache_on(tmp_path)
    ours = barnabas_on(tmp_path)
    ours.port = theirs.port
    yield ours, theirs
    assert not complaints(theirs.log)
    assert not ours.complaints()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_what_is_open_is_ended_by_the_other(ours_and_theirs: tuple[Any, ApacheKafka], kill: bool) -> None:
    ours, theirs = ours_and_theirs
    with running(ours, kill=kill) as bootstrap:
        admin = admin_of(bootstrap)
        wait(admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]))
        commit(bootstrap, GROUP, {(TOPIC, partition): BEFORE for partition in range(PARTITIONS)})
        producers = [begin(bootstrap, partition, is_new=partition % 2 == 1) for partition in range(5)]
        end(bootstrap, producers[0], is_commit=True)
        end(bootstrap, producers[1], is_commit=False)
        assert offsets(bootstrap) == [10, BEFORE, UNSTABLE, UNSTABLE, UNSTABLE, BEFORE]
    with running(theirs, kill=kill) as bootstrap:
        assert offsets(bootstrap) == [10, BEFORE, UNSTABLE, UNSTABLE, UNSTABLE, BEFORE]
        commit(bootstrap, GROUP, {(TOPIC, 3): 99})  # newer than the transaction's pending offset
        end(bootstrap, producers[2], is_commit=True)
        end(bootstrap, producers[3], is_commit=True)
        producers += [begin(bootstrap, 5, is_new=True)]
        assert offsets(bootstrap) == [10, BEFORE, 12, 99, UNSTABLE, UNSTABLE]
    with running(ours) as bootstrap:
        assert offsets(bootstrap) == [10, BEFORE, 12, 99, UNSTABLE, UNSTABLE]
        end(bootstrap, producers[4], is_commit=False)
        end(bootstrap, producers[5], is_commit=True)
        assert offsets(bootstrap) == [10, BEFORE, 12, 99, BEFORE, 15]
