"""A random walk over elections, resignations, writes and the disk: shards have the state of their logs."""

from random import Random

import pytest

from barnabas.errors import CoordinatorLoadInProgress, NotCoordinator
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from tests.coordinators.tally import NUMBER, Node

STEPS = 400


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.node = Node(flush_messages=self.random.choice([1, 3, 1000]), buffer_size=self.random.choice([1, 200]))
        self.led: set[int] = set()
        self.results: list[tuple[int, list]] = []
        self.acknowledged: dict[int, int] = dict.fromkeys(range(3), 0)

    def step(self) -> None:
        random, node, index = self.random, self.node, self.random.randrange(3)
        match random.randrange(12):
            case 0:
                node.elect(index)
                self.led.add(index)
            case 1 if index in self.led:
                node.resign(index)
                self.led.discard(index)
            case 2:
                node.turn(random.randrange(1, 4))
            case 3:
                node.log(index).flush()
            case 4:
                node.clock.advance(random.randrange(3))
            case 5:
                node.clock.skip(random.random())
            case _:
                self.add(index)

    def add(self, index: int) -> None:
        name, number = self.random.choice("ab"), self.random.randrange(1, 100)
        results = self.node.add(f"{index}:{name}", number)
        self.results.append((index, results))
        if index not in self.led:
            assert results == [NotCoordinator]
        elif not self.node.runtime.is_active(index):
            assert results == [CoordinatorLoadInProgress]

    def in_log(self, index: int) -> dict[str, int]:
        log, sums = self.node.log(index), {}
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            for batch in batches(log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)):
                offset = batch.next_offset
                for record in records_of(batch):
                    key = record.key.decode()
                    if record.value is None:
                        sums.pop(key, None)
                    else:
                        sums[key] = sums.get(key, 0) + NUMBER.unpack(record.value)[0]
        return sums

    def check(self) -> None:
        for index in range(3):
            sums = self.node.sums(index)
            if index not in self.led:
                assert sums is NotCoordinator
            elif self.node.runtime.is_active(index):
                assert sums == self.in_log(index)
            else:
                assert sums is CoordinatorLoadInProgress

    def settle(self) -> None:
        """Checks that each request has one response."""
        for index in range(3):
            self.node.log(index).flush()
        self.node.settle()
        self.check()
        assert all(self.node.runtime.is_active(index) for index in self.led)
        assert all(len(found) == 1 for _, found in self.results)


@pytest.mark.parametrize("seed", range(20))
def test_shards_are_what_their_logs_say(seed):
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
        walk.check()
    walk.settle()
