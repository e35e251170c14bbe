"""SCRAM credentials of users: alterations, descriptions, and errors."""

from typing import Any

from ..play import Step
from ..steps import ask, scenario

SHA_256, SHA_512 = 1, 2


def upsert(user: str, mechanism: int = SHA_256, iterations: int = 4096, **more: bytes) -> dict[str, Any]:
    made = {"Salt": b"some salt", "SaltedPassword": b"\1" * (64 if mechanism == SHA_512 else 32)} | more
    return {"Name": user, "Mechanism": mechanism, "Iterations": iterations, **made}


def delete(user: str, mechanism: int = SHA_256) -> dict[str, Any]:
    return {"Name": user, "Mechanism": mechanism}


def alter(*entries: dict[str, Any]) -> Step:
    """Upserts credentials with iterations, deletes the others."""
    upsertions = [each for each in entries if "Iterations" in each]
    deletions = [each for each in entries if "Iterations" not in each]
    return ask("AlterUserScramCredentials", Deletions=deletions, Upsertions=upsertions)


def shown(*users: str) -> Step:
    """Repeats the request until all are described or none: a broker of Apache Kafka applies a change after the
    response.
    """
    return ask("DescribeUserScramCredentials", Users=[{"Name": user} for user in users])


def until(user: str, *expected: tuple[int, int], code: int = 0) -> Step:
    infos = [{"Mechanism": mechanism, "Iterations": iterations} for mechanism, iterations in expected]
    where, what = ("CredentialInfos", infos) if infos else ("ErrorCode", code or 91)
    return ask(
        "DescribeUserScramCredentials", Users=[{"Name": user}], until=(f"Results.0.{where}", what), patient=False
    )


ON_BOTH = ("AlterUserScramCredentials", "DescribeUserScramCredentials")
ALICE, BOB = "~alice", "~bob"

SCENARIOS = [
    *(
        scenario(
            "set, changed and removed",
            api,
            alter(upsert(ALICE)),
            until(ALICE, (SHA_256, 4096)),
            alter(upsert(ALICE, iterations=8192)),
            until(ALICE, (SHA_256, 8192)),
            alter(upsert(ALICE, SHA_512)),
            until(ALICE, (SHA_256, 8192), (SHA_512, 4096)),
            alter(delete(ALICE)),
            until(ALICE, (SHA_512, 4096)),
            alter(delete(ALICE)),
            alter(delete(ALICE, SHA_512)),
            until(ALICE),
        )
        for api in ON_BOTH
    ),
    scenario(
        "values",
        "AlterUserScramCredentials",
        *(alter(upsert(ALICE, iterations=count)) for count in (-1, 0, 4095, 4096, 16384, 16385, 2**31 - 1)),
        *(alter(upsert(ALICE, SHA_512, iterations=count)) for count in (4095, 4096, 16384, 16385)),
        *(alter(upsert(ALICE, mechanism)) for mechanism in (0, 3, -1, 127)),
        *(alter(delete(ALICE, mechanism)) for mechanism in (0, 3, -1, 127)),
        alter(upsert(ALICE, Salt=b"")),
        alter(upsert(ALICE, SaltedPassword=b"x")),
        alter(upsert(ALICE, SaltedPassword=b"x" * 5000)),
        alter(upsert(ALICE, SaltedPassword=b"")),
        alter(upsert(ALICE, 0, 1, SaltedPassword=b"")),
        alter(upsert("", 0, 1)),
        alter(upsert("")),
        alter(delete("")),
        alter(delete("", 0)),
        alter(upsert("~älice")),
        alter(upsert("~" + "x" * 300)),
        alter(),
    ),
    scenario(
        "several in one request",
        "AlterUserScramCredentials",
        alter(upsert(ALICE), upsert(BOB, SHA_512)),
        until(BOB, (SHA_512, 4096)),
        alter(upsert(ALICE), upsert(ALICE)),
        alter(upsert(ALICE), upsert(ALICE, SHA_512)),
        alter(upsert(ALICE), upsert(ALICE, SHA_512), upsert(ALICE, SHA_512)),
        alter(delete(ALICE), delete(ALICE)),
        alter(delete(ALICE), delete(ALICE, SHA_512)),
        alter(upsert(ALICE, 0), upsert(ALICE)),
        alter(upsert(ALICE, iterations=1), upsert(ALICE)),
        alter(upsert(ALICE), upsert(ALICE, iterations=1)),
        alter(delete(ALICE), upsert(ALICE)),
        alter(delete(ALICE, SHA_512), upsert(ALICE)),
        alter(delete(ALICE), upsert(ALICE, SHA_512)),
        alter(delete(ALICE, 0), upsert(ALICE)),
        alter(upsert(ALICE, iterations=1), upsert(BOB)),
        alter(delete("~nobody"), delete(BOB), upsert("~carol")),
        alter(upsert("~dave", SaltedPassword=b""), upsert("~carol")),
        until("~carol", (SHA_256, 4096)),
        shown(ALICE, BOB, "~carol", "~dave"),
    ),
    scenario(
        "shown",
        "DescribeUserScramCredentials",
        alter(upsert(ALICE, SHA_512), upsert(BOB, iterations=8192)),
        until(BOB, (SHA_256, 8192)),
        shown(ALICE, BOB),
        shown(BOB, ALICE),
        shown(ALICE, "~nobody"),
        shown("~nobody"),
        shown(ALICE, ALICE),
        shown(ALICE, BOB, ALICE, ALICE),
        shown("~nobody", "~nobody"),
        shown(""),
        shown("", ALICE, ""),
        alter(delete(ALICE, SHA_512), delete(BOB)),
        until(BOB),
    ),
    scenario(
        "all of them",
        "DescribeUserScramCredentials",
        alter(*map(upsert, (ALICE, BOB, "~carol"))),
        until("~carol", (SHA_256, 4096)),
        ask("DescribeUserScramCredentials", Users=None),
        ask("DescribeUserScramCredentials", Users=[]),
        alone=True,
    ),
]
