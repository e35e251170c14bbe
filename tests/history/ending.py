"""The end of a run: open transactions are ended, all inputs are transformed, and all partitions are read once more.

Knows how long to wait, and nothing of what is correct.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from tests.history.clients.base import BEGINNING, Lost
from tests.history.clients.confluent_kafka import Consumer
from tests.history.plan import KEYS, TOPICS
from tests.history.records import OK, POLL, Operation, Poll, Transform
from tests.history.workers import Process, Scene

PATIENCE_S = 120.0
"""The time for the end of a run, on a busy machine; not a measure of speed."""

PAUSE_S = 0.1
PIECE = 1000


def finish(processes: Sequence[Process]) -> None:
    """Waits for the processes; an error of ours in one of them fails the run."""
    for process in processes:
        process.ending.set()
    for process in processes:
        process.thread.join(PATIENCE_S)
        if process.error is not None:
            raise process.error
        if process.thread.is_alive():
            raise RuntimeError(f"{process.worker.name} does not come to an end")


def read_to_the_end(scene: Scene, transformers: Sequence[Process]) -> None:
    """Reads all partitions from their beginnings, once the transformers have processed every input."""
    everything = Consumer(scene.bootstrap, "the-end", committed=False)
    committed = Consumer(scene.bootstrap, "the-end", committed=True)
    groups: dict[str, list[Process]] = defaultdict(list)
    for process in transformers:
        groups[process.worker.group].append(process)
    try:
        patience = Patience()
        for members in groups.values():
            _wait_for_inputs(scene, members, everything, committed, patience)
        finish(transformers)
        patience = Patience()
        for key in KEYS:
            _wait_for_end(scene, key, everything, committed, patience)
        for reader in (everything, committed):
            _read_all(scene, reader, is_committed=reader is committed)
        for members in groups.values():
            _transformed(scene, members)
    finally:
        everything.close()
        committed.close()


class Patience:
    """A deadline for several conditions."""

    def __init__(self) -> None:
        self.deadline = time.monotonic() + PATIENCE_S

    def until(self, reached: Callable[[], bool]) -> bool:
        """Returns whether the condition is reached in time. It is checked at least once, and again after `Lost`."""
        while True:
            with contextlib.suppress(Lost):
                if reached():
                    return True
            if time.monotonic() > self.deadline:
                return False
            time.sleep(PAUSE_S)


def _wait_for_end(scene: Scene, key: str, everything: Consumer, committed: Consumer, patience: Patience) -> None:
    """Waits until no transaction is open in a partition."""
    bounds: list[tuple[int, int]] = []

    def reached() -> bool:
        bounds[:] = [committed.bounds(key), everything.bounds(key)]
        return bounds[0] == bounds[1]

    if not patience.until(reached):
        scene.history.stuck[key] = f"all is read up to {bounds[1:]}, what is committed up to {bounds[:1]}"


def _wait_for_inputs(
    scene: Scene, members: Sequence[Process], everything: Consumer, committed: Consumer, patience: Patience
) -> None:
    """Waits until a group has committed offsets after the last record of all its inputs."""
    keys = _partitions(members[0].worker.reads)
    for key in keys:
        _wait_for_end(scene, key, everything, committed, patience)
    last = _last_offsets(keys, committed)
    done: dict[str, int] = {}

    def reached() -> bool:
        if not all(each.thread.is_alive() for each in members):
            finish(members)
        done.update(member.committed(keys))
        return all(done.get(key, 0) > offset for key, offset in last.items())

    with contextlib.closing(Consumer(scene.bootstrap, members[0].worker.group, committed=True)) as member:
        if not patience.until(reached):
            for key in keys:
                if done.get(key, 0) <= last.get(key, -1):
                    scene.history.stuck.setdefault(key, f"{members[0].worker.group} stays at {done.get(key)}")


def _last_offsets(keys: Sequence[str], reader: Consumer) -> dict[str, int]:
    """Returns the offset of each partition's last committed record, if it has one."""
    last: dict[str, int] = {}
    reader.assign(dict.fromkeys(keys, BEGINNING))

    def reached() -> bool:
        for each in reader.poll(PIECE, 1.0):
            last[each.key] = each.offset
        return reader.ends >= set(keys)

    if not Patience().until(reached):
        raise RuntimeError(f"{keys} cannot be read to the end")
    return last


def _read_all(scene: Scene, reader: Consumer, *, is_committed: bool) -> None:
    name = "the-end-of-what-is-committed" if is_committed else "the-end-of-everything"
    reader.assign(dict.fromkeys(KEYS, BEGINNING))

    def reached() -> bool:
        operation = Operation(name, POLL, OK, start=scene.now(), client="confluent-kafka")
        given = [(each.key, each.offset, int(each.value.split()[0])) for each in reader.poll(PIECE, 1.0)]
        if given:
            operation.polls.append(Poll(name, is_committed, given, scene.now()))
            scene.record(operation)
        return reader.ends >= set(KEYS)

    if not Patience().until(reached):
        for key in set(KEYS) - reader.ends:
            scene.history.stuck.setdefault(key, f"{name} was not reached")


def _transformed(scene: Scene, members: Sequence[Process]) -> None:
    """Records the committed offsets of a group; an offset in an open transaction is unknown."""
    worker = members[0].worker
    inputs, outputs = _partitions(worker.reads), _partitions(worker.writes)
    offsets: dict[str, int] = {}

    def reached() -> bool:
        offsets.update(member.committed(inputs))
        return True

    with contextlib.closing(Consumer(scene.bootstrap, worker.group, committed=True)) as member:
        if Patience().until(reached):
            scene.history.transforms.append(Transform(inputs, outputs, offsets))
        else:
            scene.history.stuck.setdefault(inputs[0], f"the offsets of {worker.group} cannot be read")


def _partitions(topic: str) -> list[str]:
    return [f"{topic}-{partition}" for partition in range(TOPICS[topic])]
