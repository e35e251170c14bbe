"""Faults of disks and clocks in a simulation: slow, full, torn and old disks; clocks that jump, run fast or slow.

Knows nothing of plans. A failing disk ends its node, if it has all logs or the metadata log. The process is restarted
repeatedly.
"""

import errno
from random import Random

from barnabas.cluster.quorum.client import NO_NODE
from tests.simulation.cluster import BROKER, COMBINED, CONTROLLER
from tests.simulation.faults import DISK_DELAY_S, Fault, Faults, Undo, voter_of
from tests.simulation.node import SECOND_DIRECTORY, SimulatedNode

SPACE = ("write", "create", "makedirs")
"""Changes that need space on a disk."""
REPLACED = 0.5
"""How often a failed disk with a log directory is replaced by an empty one, if that may be."""
RATES = (0.5, 0.9, 0.99, 1.01, 1.1, 2.0)
"""The rates of clocks."""


def slow_disk(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Delays operations that wait for the disk."""
    node = faults.cluster.nodes[fault.node]
    node.disk_delay_s = chance.choice([0.05, 0.5, 2.0])

    def undo() -> None:
        node.disk_delay_s = DISK_DELAY_S

    return undo


def full_disk(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Fills a disk for a while. Files can still be deleted, truncated, renamed and fsynced."""
    node = faults.cluster.nodes[fault.node]
    if node.server is None or not _may_stop(faults, node):
        return None
    node.confine_failures(_one_disk(node, chance))
    node.disk_error = (errno.ENOSPC, SPACE)

    def undo() -> None:
        node.disk_error = None
        _repair(faults, node, chance)

    return undo


def failing_write(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Makes one of the next changes on a disk fail; a write may be partly done."""
    node = faults.cluster.nodes[fault.node]
    if node.server is None or not _may_stop(faults, node):
        return None
    node.confine_failures(_one_disk(node, chance))
    node.files.fail_once(chance.choice([1, 2, 5, 20, 100]), code=errno.EIO, torn=chance)

    def undo() -> None:
        node.files.fail_at = 0
        _repair(faults, node, chance)

    return undo


def _repair(faults: Faults, node: SimulatedNode, chance: Random) -> None:
    """Ends a failure of a disk. Of several, it is sometimes replaced by an empty one, if its node may lose records."""
    faults.failing.discard(node.id)
    lost = node.lost_directories
    if SECOND_DIRECTORY in lost and chance.random() < REPLACED and faults.may_forget(node.id):
        faults.network.say(f"{node.id} gets an empty disk for {SECOND_DIRECTORY}")
        faults.forgets(node.id)
        node.kill(power_cut=False)
        node.empty(SECOND_DIRECTORY)
        faults.revive(node)


def _one_disk(node: SimulatedNode, chance: Random) -> str:
    """Returns one of the log directories of a node that has several, each on a disk of its own."""
    return chance.choice(node.directories) if len(node.directories) > 1 else ""


def _may_stop(faults: Faults, node: SimulatedNode) -> bool:
    """Returns whether a node may stop soon; it is then one with a failing disk."""
    if faults.is_alone(node.id) or node.id in faults.failing:
        return False
    faults.failing.add(node.id)
    return True


def new_disks(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Replaces all disks of a machine with a broker, or that of its first log directory, by empty ones.

    The metadata log is there, too: a voter would vote twice, so that it is removed from the voters before. Controllers
    without a broker get theirs from the operator.
    """
    node = faults.cluster.nodes[fault.node]
    is_possible = node.role == BROKER or (node.role == COMBINED and node.id in faults.cluster.voteless)
    if not is_possible or node.id in faults.failing or not faults.may_forget(node.id):
        return None
    lost = chance.choice([node.directories, node.directories[:1]])
    faults.network.say(f"{node.id} gets empty disks for {', '.join(lost)}")
    faults.forgets(node.id)
    node.kill(power_cut=False)
    faults.cluster.replace_disks(node, lost)
    return lambda: faults.revive(node)


def old_copy(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Starts a node with an older copy of its disk.

    That is allowed for a broker whose disk may lose records, and for a voter if all others have all committed records
    and know the leader: otherwise committed records, and votes, may be only on its disk and on one other that is down.
    """
    node = faults.cluster.nodes[fault.node]
    if node.life is None:
        return None
    copy, disk = node.files.survivor(), node.disk
    copy.keep()

    def undo() -> None:
        if node.server is None or node.disk != disk or faults.is_alone(node.id):
            return
        if node.role != BROKER and not _all_voters_agree(faults):
            return
        if node.role != CONTROLLER:
            if not faults.may_forget(node.id):
                return
            faults.forgets(node.id)
        faults.network.say(f"{node.id} is started on a copy of its disk from {fault.at:.3f} s")
        node.kill(power_cut=False)
        node.put_in(copy)
        faults.revive(node)

    return undo


def _all_voters_agree(faults: Faults) -> bool:
    """Returns whether all voters are up, follow one leader in one epoch, and have all of its log. There are three at
    least: both of two have what is committed.
    """
    voters = [voter_of(node) for node in faults.cluster.nodes.values() if node.role != BROKER]
    if None in voters or len(voters[0].voters()) < 3:
        return False
    known = {(voter.leadership, voter.metadata_log.log.log_end_offset) for voter in voters}
    return len(known) == 1 and voters[0].leadership.leader_id != NO_NODE


def clock_jump(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Moves the clock of a machine forward or back; it is corrected in the end."""
    clock = faults.cluster.nodes[fault.node].clock
    jump = chance.choice([-3_600_000, -5_000, -200, 200, 5_000, 3_600_000])
    clock.jump(jump)
    return lambda: clock.jump(-jump)


def clock_drift(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Makes the clock and the timers of a machine fast or slow for a while."""
    clock = faults.cluster.nodes[fault.node].clock
    if clock.rate != 1.0:
        return None
    clock.run_at(chance.choice(RATES))
    return lambda: clock.run_at(1.0)
