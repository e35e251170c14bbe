"""Seeds side by side."""

import gc
import itertools
import os
import time

import psutil
import pytest

from tests.simulation.jobs import side_by_side


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_come_in_the_order_of_the_seeds(jobs):
    def work(seed):
        time.sleep(0.05 * (seed % 2))
        return seed, os.getpid(), gc.isenabled()

    results = list(side_by_side(work, range(6), jobs))
    assert [seed for seed, _, _ in results] == list(range(6))
    assert len({process for _, process, _ in results} | {os.getpid()}) == 7  # each in a process of its own
    assert not any(is_collecting for _, _, is_collecting in results)
    assert gc.isenabled()


def test_seeds_are_taken_while_there_is_room():
    taken = []
    found = side_by_side(str, (taken.append(seed) or seed for seed in itertools.count()), 2)
    assert next(found) == "0"
    assert len(taken) <= 3
    found.close()


def test_the_processes_of_results_that_nobody_wants_are_ended():
    others = set(psutil.Process().children())  # of other tests
    found = side_by_side(lambda seed: time.sleep(600 * (seed > 0)) or os.getpid(), range(3), 3)
    next(found)
    sleeping = set(psutil.Process().children()) - others
    assert len(sleeping) == 2
    found.close()
    assert psutil.wait_procs(sleeping, timeout=30)[1] == []


def test_a_process_that_ends_without_a_result_is_named():
    with pytest.raises(RuntimeError, match="seed 7 ended with 3"):
        list(side_by_side(lambda seed: os._exit(3), [7], 1))
