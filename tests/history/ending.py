"""How a run ends: what is open comes to its end, all inputs are transformed, and everything is read once more.

Knows how long to wait for things that must come, and nothing of what is right.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from tests.history.clients.base import BEGINNING, Lost
from tests.history.clients.confluent_kafka import Consumer
from tests.history.plan import KEYS, TOPICS
from tests.history.records import OK, POLL, Operation, Poll, Transform
from tests.history.workers import Process, Scene

PATIENCE_S = 120.0
"""For what must come in the end, on a machine that may be busy: no promise of any speed."""

PAUSE_S = 0.1
PIECE = 1000


def finish(processes: Sequence[Process]) -> None:
    """Let them end; an error of ours in one of them is the run's."""
    for process in processes:
        process.ending.set()
    for process in processes:
        process.thread.join(PATIENCE_S)
        if process.error is not None:
            raise process.error
        if process.thread.is_alive():
            raise RuntimeError(f"{process.worker.name} does not come to an end")


def read_to_the_end(scene: Scene, transformers: Sequence[Process]) -> None:
    """Read all partitions from their beginnings, once the transformers have made something of every input."""
    everything = Consumer(scene.bootstrap, "the-end", committed=False)
    committed = Consumer(scene.bootstrap, "the-end", committed=True)
    groups: dict[str, list[Process]] = defaultdict(list)
    for process in transformers:
        groups[process.worker.group].append(process)
    try:
        for members in groups.values():
            _wait_for_inputs(scene, members, everything, committed)
        finish(transformers)
        for key in KEYS:
            _wait_for_end(scene, key, everything, committed)
        for reader in (everything, committed):
            _read_all(scene, reader, is_committed=reader is committed)
        for members in groups.values():
            scene.history.transforms.append(_transform(scene, members))
    finally:
        everything.close()
        committed.close()


def _within_patience(reached: Callable[[], bool]) -> bool:
    """Whether it came to be so before patience was over; what is `Lost` is tried again."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            if reached():
                return True
        except Lost:
            pass
        time.sleep(PAUSE_S)
    return False


def _wait_for_end(scene: Scene, key: str, everything: Consumer, committed: Consumer) -> None:
    """Wait until no transaction is open in a partition."""
    bounds: list[tuple[int, int]] = []

    def reached() -> bool:
        bounds[:] = [committed.bounds(key), everything.bounds(key)]
        return bounds[0] == bounds[1]

    if not _within_patience(reached):
        scene.history.stuck[key] = f"all is read up to {bounds[1:]}, what is committed up to {bounds[:1]}"


def _wait_for_inputs(scene: Scene, members: Sequence[Process], everything: Consumer, committed: Consumer) -> None:
    """Wait until a group has committed offsets beyond the last record of all its inputs."""
    keys = _partitions(members[0].worker.reads)
    for key in keys:
        _wait_for_end(scene, key, everything, committed)
    last = _last_offsets(keys, committed)
    member = Consumer(scene.bootstrap, members[0].worker.group, committed=True)

    def reached() -> bool:
        if not all(each.thread.is_alive() for each in members):
            finish(members)
        done = member.committed(keys)
        return all(done.get(key, 0) > offset for key, offset in last.items())

    try:
        if not _within_patience(reached):
            for key in keys:
                if member.committed([key]).get(key, 0) <= last.get(key, -1):
                    scene.history.stuck[key] = (
                        f"{members[0].worker.group} does not get beyond {member.committed([key])}"
                    )
    finally:
        member.close()


def _last_offsets(keys: Sequence[str], reader: Consumer) -> dict[str, int]:
    """The offset of each partition's last record, of those that have one."""
    last: dict[str, int] = {}
    reader.assign(dict.fromkeys(keys, BEGINNING))

    def reached() -> bool:
        for each in reader.poll(PIECE, 1.0):
            last[each.key] = each.offset
        return reader.ends >= set(keys)

    if not _within_patience(reached):
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

    if not _within_patience(reached):
        for key in set(KEYS) - reader.ends:
            scene.history.stuck.setdefault(key, f"{name} was not reached")


def _transform(scene: Scene, members: Sequence[Process]) -> Transform:
    worker = members[0].worker
    inputs, outputs = _partitions(worker.reads), _partitions(worker.writes)
    offsets: dict[str, int] = {}
    member = Consumer(scene.bootstrap, worker.group, committed=True)

    def reached() -> bool:
        offsets.update(member.committed(inputs))
        return True

    try:
        if not _within_patience(reached):
            raise RuntimeError(f"the offsets of {worker.group} cannot be read")
    finally:
        member.close()
    return Transform(inputs, outputs, offsets)


def _partitions(topic: str) -> list[str]:
    return [f"{topic}-{partition}" for partition in range(TOPICS[topic])]
