"""The faults of a run: a plan from a seed.

Knows nothing of how faults are injected.
"""

from collections.abc import Mapping, Sequence
from random import Random

from tests.simulation import held_faults, late_faults, machine_faults, vote_faults
from tests.simulation.faults import Fault, Faults, Kind

KINDS: Mapping[str, Kind] = {
    "kill": Faults.kill,
    "power cut": Faults.power_cut,
    "stop": Faults.stop,
    "pause": Faults.pause,
    "election": vote_faults.election,
    "blackout": vote_faults.blackout,
    "isolation": Faults.isolation,
    "cuts": Faults.cuts,
    "delays": Faults.delays,
    "slow disk": machine_faults.slow_disk,
    "clock jump": machine_faults.clock_jump,
    "late requests": late_faults.late_requests,
    "unsteady follower": late_faults.unsteady_follower,
    "full disk": machine_faults.full_disk,
    "failing write": machine_faults.failing_write,
    "old copy": machine_faults.old_copy,
    "clock drift": machine_faults.clock_drift,
    "split vote": vote_faults.split_vote,
    "old ISR": held_faults.old_isr,
    "old end": held_faults.old_end,
    "old incarnation": held_faults.old_incarnation,
    "half-open": Faults.half_open,
    "new disks": machine_faults.new_disks,
}
WEIGHTS = dict(zip(KINDS, (6, 4, 3, 4, 4, 3, 6, 3, 2, 2, 1, 4, 3, 2, 3, 2, 1, 4, 3, 2, 4, 3, 3), strict=True))


def plan(
    random: Random, nodes: Sequence[int], begin: float, end: float, kinds: Sequence[str] = tuple(KINDS)
) -> list[Fault]:
    """Returns faults of some kinds between two times."""
    found = []
    length = end - begin
    for _ in range(random.choice([2, 4, 8, 16])):
        kind = random.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
        seconds = random.choice([random.uniform(0.01, 0.5), random.uniform(0.2, 2), random.uniform(1, 8)])
        at = begin + random.uniform(0, max(0.0, length - seconds))
        found.append(Fault(at, kind, random.choice(nodes), seconds, random.getrandbits(64)))
    return sorted(found, key=lambda fault: fault.at)
