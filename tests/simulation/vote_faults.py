"""How elections of the quorum go wrong: voters that do not hear each other, and that lose their power when they vote.

Knows nothing of plans.
"""

from functools import partial
from random import Random

from barnabas.cluster.quorum.raft_voter import RaftVoter
from tests.simulation.cluster import CONTROLLER
from tests.simulation.faults import DISK_DELAY_S, Fault, Faults, Undo, voter_of
from tests.simulation.node import SimulatedNode
from tests.simulation.votes import Granted

LOST_VOTES = 3
"""How often a voter loses its power after a vote, at most."""


def election(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Ends the leader of the quorum while two of the voters do not hear of each other.

    If these are the others, both want to lead, and ask the one that has come back; if the leader was one of them,
    the other one has the shorter log.
    """
    leader, others = _leader_and_others(faults)
    if leader is None:
        return None
    first, second = chance.choice([chance.sample(others, 2), [leader, chance.choice(others)]])
    undo = _part(faults, first, second, both_ways=chance.random() >= 0.3)
    if undo is None:
        return None
    faults.later(chance.uniform(0, fault.seconds), partial(_end, faults, leader, chance.choice([1, 1, 4]), chance))
    return undo


def split_vote(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Lets two voters that do not hear each other ask the third, which loses its power as it has granted its vote.

    It was the leader, and comes back when both want to lead. What it has granted is on its disk: whoever asks next, in
    the same epoch, gets nothing.
    """
    leader, others = _leader_and_others(faults)
    if leader is None:
        return None
    undo = _part(faults, *others[:2], both_ways=True)
    if undo is None:
        return None
    left = LOST_VOTES
    moment = chance.choice([0.0, 0.005, 0.02])

    def granted(vote: Granted) -> None:
        nonlocal left
        if vote.voter == leader.name and left:
            left -= 1
            faults.later(chance.uniform(0, moment), partial(_end, faults, leader, 1, chance))

    faults.votes.listeners.append(granted)
    _end(faults, leader, 1, chance)

    def stop() -> None:
        faults.votes.listeners.remove(granted)
        undo()

    return stop


def _leader_and_others(faults: Faults) -> tuple[SimulatedNode | None, list[SimulatedNode]]:
    """Returns the leader of a quorum of three and the other voters; no leader if that is not known."""
    voters = [node for node in faults.cluster.nodes.values() if isinstance(voter_of(node), RaftVoter)]
    leaders = [node for node in voters if voter_of(node).is_leader]
    if len(leaders) != 1 or len(voters) < 3:
        return None, []
    return leaders[0], [node for node in voters if node is not leaders[0]]


def _part(faults: Faults, first: SimulatedNode, second: SimulatedNode, *, both_ways: bool) -> Undo | None:
    """Lets nothing come from the first voter to the second, or back."""
    release = faults.cut_off(first.id, second.id)
    if release is None:
        return None
    pairs = {(first.name, second.name)} | ({(second.name, first.name)} if both_ways else set())
    faults.network.say(f"held up: {', '.join(f'{sender} -> {target}' for sender, target in sorted(pairs))}")
    faults.network.blocked |= pairs

    def undo() -> None:
        faults.network.blocked -= pairs
        release()

    return undo


def _end(faults: Faults, node: SimulatedNode, times: int, chance: Random) -> None:
    """Kills a node so often; what it has promised as it was up for a moment it must remember."""
    revive = faults.killed(node.id, power_cut=node.role == CONTROLLER)
    pause = chance.choice([0.01, 0.3, 1.5])
    if revive is not None:
        faults.later(pause, revive)
    if times > 1:
        faults.later(pause + chance.uniform(0.02, 0.5), partial(_end, faults, node, times - 1, chance))


def blackout(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Takes the power from all controllers without a broker at once: what they have promised is on their disks."""
    nodes = [node for node in faults.cluster.nodes.values() if node.role == CONTROLLER and node.server is not None]
    for node in nodes:
        node.disk_delay_s = chance.choice([DISK_DELAY_S, 0.1, 0.5])

    def undo() -> None:
        for node in nodes:
            node.disk_delay_s = DISK_DELAY_S
            revive = faults.killed(node.id, power_cut=True)
            if revive is not None:
                faults.later(chance.choice([0.01, 0.5, 2.0]), revive)

    return undo if nodes else None
