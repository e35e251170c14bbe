"""The shards of a coordinator without a log, as a ``CoordinatorRuntime`` for tests of state machines."""

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.clock import ManualClock
from barnabas.deadlines import Deadlines
from barnabas.errors import CoordinatorLoadInProgress, NotCoordinator

NO_PRODUCER_ID = -1


class FakeRuntime:
    """Shards are added, loaded and activated one step at a time."""

    def __init__(
        self,
        clock: ManualClock,
        new_shard: Callable[[int, Deadlines], Any],
        partition_of: Callable[[str], int] = lambda key: 0,
    ) -> None:
        self._clock = clock
        self._new_shard = new_shard
        self._partition_of = partition_of
        self._shards: dict[int, Any] = {}
        self._deadlines: dict[int, Deadlines] = {}
        self._active: set[int] = set()

    # ------------------------------------------------------------ what a coordinator asks

    def shard(self, key: str) -> Any:
        index = self._partition_of(key)
        if index not in self._shards:
            raise NotCoordinator
        return self._up_to_date(index)

    def shards(self) -> list[Any]:
        return [self._up_to_date(index) for index in self._shards]

    def _up_to_date(self, index: int) -> Any:
        if index not in self._active:
            raise CoordinatorLoadInProgress
        self._deadlines[index].run_due()
        return self._shards[index]

    # ------------------------------------------------------------ what a test does

    def add(self, index: int = 0) -> Any:
        """Returns a new shard, which is being loaded."""
        deadlines = self._deadlines[index] = Deadlines(self._clock, self._clock)
        shard = self._shards[index] = self._new_shard(index, deadlines)
        return shard

    def start(self, records: Iterable[tuple[bytes, bytes | None]] = (), index: int = 0, first_offset: int = 0) -> Any:
        """Returns a new shard that has these records and is active."""
        shard = self.add(index)
        for offset, (key, value) in enumerate(records, first_offset):
            shard.replay(offset, NO_PRODUCER_ID, key, value)
        self.activate(index)
        return shard

    def activate(self, index: int = 0) -> None:
        self._active.add(index)
        self._shards[index].loaded()

    def kill(self, index: int = 0) -> None:
        """Removes the shard, as a crash does: callbacks are not called any more."""
        self._shards.pop(index)
        self._active.discard(index)
        self._deadlines.pop(index).close()

    def resign(self, index: int = 0) -> None:
        shard = self._shards.pop(index)
        self._active.discard(index)
        shard.unloaded()
        self._deadlines.pop(index).close()

    def has(self, index: int) -> bool:
        return index in self._shards

    @property
    def only(self) -> Any:
        """The only shard."""
        (shard,) = self._shards.values()
        return shard

    def guarded(self, written: Callable[[Any], object], index: int = 0) -> Callable[[Any], object]:
        """Returns ``written``, which gets NOT_COORDINATOR once the shard is resigned, as in a ``ShardContext``."""
        shard = self._shards.get(index)
        return lambda error: written(error if self._shards.get(index) is shard else NotCoordinator())
