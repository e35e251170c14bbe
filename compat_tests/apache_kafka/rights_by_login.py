"""Requests of authenticated users: some APIs with and without a right, and all APIs of delegation tokens.

Data only: must not open a socket. ``user`` and ``other`` log in by SASL/PLAIN, as ``$user`` and ``$other``. Both come
from the administrator's address, so they differ by name only.
"""

from typing import Any

from .play import Step
from .rights_steps import DESCRIBE, REQUESTS, THE_USER, TOKEN, USER, acl, steps_of
from .steps import ask, scenario

CREATE_TOKENS, DESCRIBE_TOKENS = 13, 14

BY_LOGIN = (
    "Produce",
    "Fetch",
    "Metadata",
    "OffsetCommit",
    "FindCoordinator",
    "ListGroups",
    "CreateTopics",
    "InitProducerId",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
)
"""APIs that users call after a login; each by its first request."""

TO_CREATE: dict[str, Any] = {"Renewers": [], "MaxLifetimeMs": -1}
FOR_THE_USER = {**TO_CREATE, "OwnerPrincipalType": "User", "OwnerPrincipalName": "$user"}


def grant_to_other(kind: int, operation: int, name: str) -> list[Step]:
    given = acl(kind, operation, name, host="*", principal="$other principal")
    there = {
        "ResourceTypeFilter": kind,
        "PatternTypeFilter": 1,
        "ResourceNameFilter": name,
        "PrincipalFilter": "$other principal",
        "HostFilter": "*",
        "Operation": operation,
        "PermissionType": 1,
    }
    return [
        ask("CreateAcls", v=3, quiet=True, Creations=[given]),
        ask("DescribeAcls", v=3, quiet=True, until=("Resources.0.Acls.0.Host", "*"), **there),
    ]


def token(*renewers: str) -> list[Step]:
    """Makes a token of the user, and waits until the brokers have it."""
    wanted = {**TO_CREATE, "Renewers": [{"PrincipalType": "User", "PrincipalName": each} for each in renewers]}
    return [
        ask("CreateDelegationToken", v=3, on="user", quiet=True, save={"$hmac": "Hmac", "$token": "TokenId"}, **wanted),
        ask("DescribeDelegationToken", v=3, on="user", quiet=True, until=("Tokens.0.TokenId", "$token"), Owners=None),
    ]


def by_each(api: str, **body: Any) -> list[Step]:
    """Users with the right, users without it, and one without a login."""
    return [ask(api, on=who, **body) for who in ("other", "main", "user")]


ON_THE_TOKEN = {
    "RenewDelegationToken": {"Hmac": "$hmac", "RenewPeriodMs": 60_000},
    "ExpireDelegationToken": {"Hmac": "$hmac", "ExpiryTimePeriodMs": 60_000},
}
OF_ALL, OF_THE_USER = {"Owners": None}, {"Owners": [{"PrincipalType": "User", "PrincipalName": "$user"}]}

ABOUT_TOKENS = [
    scenario("rights for oneself", "CreateDelegationToken", by_each("CreateDelegationToken", **TO_CREATE)),
    scenario(
        "rights for another",
        "CreateDelegationToken",
        ask("CreateDelegationToken", on="other", **FOR_THE_USER),
        grant_to_other(USER, CREATE_TOKENS, THE_USER),
        ask("CreateDelegationToken", on="other", **FOR_THE_USER),
        ask("CreateDelegationToken", on="user", **FOR_THE_USER),
        versions="3",
    ),
    *(scenario("rights", api, token(), by_each(api, **body)) for api, body in ON_THE_TOKEN.items()),
    *(
        scenario("rights of a renewer", api, token("$other"), by_each(api, **body))
        for api, body in ON_THE_TOKEN.items()
    ),
    *(
        scenario(
            f"rights on the {name}",
            "DescribeDelegationToken",
            token(),
            (by_each("DescribeDelegationToken", **body) for body in (OF_ALL, OF_THE_USER)),
            grant_to_other(*right),
            (by_each("DescribeDelegationToken", **body) for body in (OF_ALL, OF_THE_USER)),
        )
        for name, right in {
            "token": (TOKEN, DESCRIBE, "$token"),
            "user": (USER, DESCRIBE_TOKENS, THE_USER),
        }.items()
    ),
]

SCENARIOS = [
    *ABOUT_TOKENS,
    *(scenario("rights by login", api, *steps_of(api, REQUESTS[api][0], by_login=True)) for api in BY_LOGIN),
]
