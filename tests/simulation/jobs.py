"""Runs seeds side by side, each in a process of its own, which is forked and ends with its seed.

Knows nothing of what a run is. The end of a process frees the memory of a run at once, without the garbage collector.
"""

import gc
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

FORK = get_context("fork")


def side_by_side(work: Callable[[int], Any], seeds: Iterable[int], jobs: int) -> Iterator[Any]:
    """Yields the results of all seeds in their order, while up to ``jobs`` of them run.

    :param work: is called with a seed in a process of its own, and returns what can be pickled
    :param seeds: the next one is taken when there is room for it
    :raises RuntimeError: a process ended without a result
    """
    waiting, order = iter(seeds), deque[int]()
    running: dict[Any, tuple[int, Any]] = {}
    results: dict[int, Any] = {}
    try:
        while True:
            for seed in islice(waiting, jobs - len(running)):
                ours, theirs = FORK.Pipe(duplex=False)
                process = FORK.Process(target=_run, args=(work, seed, theirs), daemon=True)
                process.start()
                theirs.close()
                order.append(seed)
                running[ours] = seed, process
            if not order:
                return
            for ready in wait(list(running)):
                seed, process = running.pop(ready)
                results[seed] = _result(ready, seed, process)
            while order and order[0] in results:
                yield results.pop(order.popleft())
    finally:
        for _, process in running.values():
            process.kill()
            process.join()


def _run(work: Callable[[int], Any], seed: int, connection: Connection) -> None:
    """Runs a seed in the forked process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the first one ends them
    gc.disable()
    connection.send(work(seed))


def _result(connection: Any, seed: int, process: Any) -> Any:
    """Receives a result. :raises RuntimeError: there is none"""
    try:
        return connection.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process of seed {seed} ended with {process.exitcode}, without a result") from None
    finally:
        connection.close()
        process.join()
