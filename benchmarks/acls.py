"""The cost of a decision of the authorizer with 10,000 ACLs: a cached one, and a new one.

Knows nothing of requests.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from barnabas.security.acls import Acl, Operation, PatternType, Permission, Resource, ResourceType
from barnabas.security.authorizer import Authorizer, Requester
from benchmarks.measure import Row

ACLS = 10_000
CHECKS = 5_000
BUDGET_US = 2.0
TOPIC = ResourceType.TOPIC


def filled() -> Authorizer:
    """Makes ACLs, half of which name a topic, the others prefixes of five lengths; each is one of a hundred users'."""
    authorizer = Authorizer()
    authorizer.change(
        added=[
            Acl(
                TOPIC,
                f"topic-{number}" if number % 2 else f"team-{number}"[: 6 + number % 5] + str(number),
                PatternType.LITERAL if number % 2 else PatternType.PREFIXED,
                f"User:user-{number % 100}",
                "*",
                Operation.READ,
                Permission.ALLOW,
            )
            for number in range(ACLS)
        ]
    )
    return authorizer


def microseconds(check: Callable[[Resource], object], resources: list[Resource]) -> float:
    """Returns the time of one check."""
    begin = time.perf_counter()
    for resource in resources:
        check(resource)
    return (time.perf_counter() - begin) / len(resources) * 1e6


def checks(folder: Path, rounds: int) -> Iterator[Row]:
    """Checks of one user on many topics."""
    authorizer, alice = filled(), Requester("User:user-1", "127.0.0.1")
    resources = [Resource(TOPIC, f"topic-{number}") for number in range(CHECKS)]
    made, kept = [], []
    for _ in range(rounds):
        authorizer.change()  # forgets the decisions
        made.append(microseconds(lambda each: authorizer.allows(alice, Operation.READ, each), resources))
        kept.append(microseconds(lambda each: authorizer.allows(alice, Operation.READ, each), resources))
    for what, times, budget in (("kept", kept, BUDGET_US), ("made", made, None)):
        best = min(times)
        yield Row(
            f"an ACL check, {what}, {ACLS:,} ACLs",
            f"{best:.2f} us",
            "",
            None,
            "" if budget is None else f"<= {budget:.0f} us",
            None if budget is None else best <= budget,
        )
