"""Disks and clocks of a simulation fail as they are told to."""

import errno
from random import Random

import pytest

from barnabas.log import meta_properties
from barnabas.testing.faults import FaultyFiles
from tests.simulation.cluster import BROKER, COMBINED, CONTROLLER, SimulatedCluster
from tests.simulation.loop import SimulatedLoop
from tests.simulation.machine_faults import SPACE
from tests.simulation.node import DIRECTORY, SECOND_DIRECTORY, NodeClock, NodeScheduler
from tests.simulation.plans import KINDS, WEIGHTS


def test_a_disk_fails_once_and_goes_on():
    files = FaultyFiles()
    file = files.create("/log")
    files.fail_once(2, code=errno.EIO, torn=1)
    file.write(b"one")
    with pytest.raises(OSError, match="error"):
        file.write(b"two")
    file.write(b"three")
    assert files.read("/log") == b"onetthree"


def test_a_full_disk_has_space_again():
    files = FaultyFiles()
    file = files.create("/log")
    files.fail_now(errno.ENOSPC, "write")
    with pytest.raises(OSError, match="space"):
        file.write(b"one")
    files.succeed()
    file.write(b"two")
    assert files.read("/log") == b"two"


@pytest.mark.parametrize("rate", [0.5, 1.1, 2.0])
def test_the_timers_of_a_machine_run_as_fast_as_its_clock(rate):
    loop = SimulatedLoop()
    loop.now = 100.0
    clock = NodeClock(loop)
    clock.run_at(rate)
    assert clock.monotonic() == pytest.approx(100.0)
    NodeScheduler(loop, clock).call_later(3.0, loop.stop)
    loop.run_forever()
    assert clock.monotonic() == pytest.approx(103.0)
    assert clock.monotonic() >= 103.0
    assert loop.now == pytest.approx(100.0 + 3.0 / rate)
    loop.close()


def test_time_passes_for_a_timer_of_a_clock_that_ran_fast():
    loop = SimulatedLoop()
    clock = NodeClock(loop)
    clock.run_at(1.1)
    loop.now = 16.0
    clock.run_at(1.0)
    NodeScheduler(loop, clock).call_later(1e-17, loop.stop)
    loop.run_forever()
    assert loop.now > 16.0
    loop.close()


def test_each_kind_of_fault_has_a_weight():
    assert len(KINDS) == len(WEIGHTS)


def test_an_empty_disk_is_not_full_where_the_old_one_was():
    cluster = SimulatedCluster(SimulatedLoop(), Random(1), (CONTROLLER,) + (BROKER,) * 3)
    node = cluster.nodes[1]
    before = node.directory_id
    node.disk_error = (errno.ENOSPC, SPACE)
    cluster.renew(node)
    assert node.directory_id != before


def test_of_two_disks_the_first_is_replaced():
    directories = (DIRECTORY, SECOND_DIRECTORY)
    cluster = SimulatedCluster(SimulatedLoop(), Random(1), (COMBINED,) * 3, is_dynamic=True, directories=directories)
    node = cluster.nodes[1]
    before, kept = node.directory_id, meta_properties.read(node.files, SECOND_DIRECTORY)
    cluster.replace_disks(node, [DIRECTORY])
    assert node.directory_id not in (before, kept.directory_id)
    assert cluster.voters[1].directory_id == node.directory_id
    assert meta_properties.read(node.files, SECOND_DIRECTORY) == kept
