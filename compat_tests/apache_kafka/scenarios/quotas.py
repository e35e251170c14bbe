"""Quotas of clients: valid and refused values for each entity, and the filters that match them."""

import math

from ..play import Step
from ..steps import ask, scenario

EXACT, DEFAULT, ANY = 0, 1, 2
ALICE, APP, BY_DEFAULT = {"user": "~alice"}, {"client-id": "~app"}, {"user": None}
RATES = ("producer_byte_rate", "consumer_byte_rate")
NUMBERS = ("request_percentage", "controller_mutation_rate")
CREATION = "connection_creation_rate"

Entity = dict[str, str | None] | list[tuple[str, str | None]]
Quotas = dict[str, float | None] | list[tuple[str, float | None]]


def entry(entity: Entity, quotas: Quotas) -> dict[str, object]:
    """Sets quotas of an entity; None removes one."""
    parts = entity.items() if isinstance(entity, dict) else entity
    values = quotas.items() if isinstance(quotas, dict) else quotas
    return {
        "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in parts],
        "Ops": [{"Key": key, "Value": value or 0.0, "Remove": value is None} for key, value in values],
    }


def alter(*entries: tuple[Entity, Quotas], validate: bool = False) -> Step:
    return ask("AlterClientQuotas", Entries=[entry(*each) for each in entries], ValidateOnly=validate)


def describe(
    *components: tuple[str, int, str | None],
    strict: bool = False,
    until: tuple[str, object] | None = None,
    quiet: bool = False,
) -> Step:
    """Describes quotas; ``until`` waits for a preceding change, which Apache Kafka's broker applies a little later."""
    found = [{"EntityType": kind, "MatchType": how, "Match": match} for kind, how, match in components]
    return ask("DescribeClientQuotas", until=until, quiet=quiet, Components=found, Strict=strict)


def of_alice(at: str = "", value: object = None) -> Step:
    """Waits until Alice's quotas have the value at the path; by default until there are none."""
    until = (f"Entries.0.Values.{at}", value) if at else ("Entries", [])
    return describe(("user", EXACT, "~alice"), strict=True, until=until)


ON_BOTH = ("AlterClientQuotas", "DescribeClientQuotas")

SCENARIOS = [
    *(
        scenario(
            "set, changed and removed",
            api,
            alter((ALICE, {"producer_byte_rate": 1024.0})),
            of_alice("0.Value", 1024.0),
            alter((ALICE, {"producer_byte_rate": 2048.0, "request_percentage": 12.5})),
            of_alice("1.Value", 12.5),
            alter((ALICE, {"producer_byte_rate": 2048.0})),
            alter((ALICE, {"producer_byte_rate": None})),
            of_alice("0.Key", "request_percentage"),
            alter((ALICE, {"request_percentage": None})),
            of_alice(),
        )
        for api in ON_BOTH
    ),
    scenario(
        "values",
        "AlterClientQuotas",
        *(
            alter((ALICE, {key: value}))
            for key in (*RATES, *NUMBERS)
            for value in (math.nan, 0.0, -1.0, 0.5, 1.0, 1.0000001, 1.001, 1e15, 1e300, math.inf, -math.inf)
        ),
        *(alter((ALICE, {key: value})) for key in RATES for value in (2.0**53, 2.0**63, 9.3e18, 1e-7)),
        *(
            alter(({"ip": "127.7.7.7"}, {CREATION: value}))
            for value in (0.0, -1.0, 0.5, 1.0, 2147483647.0, 2147483648.0, math.inf, math.nan)
        ),
        alter(({"ip": "127.7.7.7"}, {CREATION: None})),
        alter((ALICE, dict.fromkeys((*RATES, *NUMBERS)))),
        of_alice(),
    ),
    scenario(
        "keys",
        "AlterClientQuotas",
        alter((ALICE, {"nope": 1.0})),
        alter((ALICE, {"": 1.0})),
        alter((ALICE, {"nope": None})),
        alter((ALICE, {CREATION: 1.0})),
        alter((APP, {CREATION: 1.0})),
        alter((ALICE, {CREATION: None})),
        alter((ALICE, {"consumer_byte_rate": None})),
        alter(({"ip": "127.8.8.8"}, {"producer_byte_rate": 1.0})),
        alter(({"ip": "127.8.8.8"}, {"request_percentage": 1.0})),
        alter((ALICE, {})),
        alter(),
        alter((ALICE, [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)])),
        alter((ALICE, [("producer_byte_rate", 1.0), ("producer_byte_rate", None)])),
        alter((ALICE, {"producer_byte_rate": 1.0, "nope": 1.0})),
        alter((ALICE, {"nope": 1.0, "producer_byte_rate": 1.0})),
        alter((ALICE, {"producer_byte_rate": 1.0, "request_percentage": 0.0})),
        of_alice(),
    ),
    scenario(
        "entities",
        "AlterClientQuotas",
        alter(({}, {"producer_byte_rate": 1.0})),
        alter(({"nope": "x"}, {"producer_byte_rate": 1.0})),
        alter(({"": "x"}, {"producer_byte_rate": 1.0})),
        alter(({"User": "x"}, {"producer_byte_rate": 1.0})),
        alter(({"user": ""}, {"producer_byte_rate": 1.0})),
        alter(({"client-id": ""}, {"producer_byte_rate": 1.0})),
        alter(({"ip": ""}, {CREATION: 1.0})),
        alter(({"ip": "not an address"}, {CREATION: 1.0})),
        alter(({"ip": "256.1.1.1"}, {CREATION: 1.0})),
        alter(({"user": "~alice", "ip": "127.0.0.9"}, {"producer_byte_rate": 1.0})),
        alter(({"client-id": "~app", "ip": "127.0.0.9"}, {"producer_byte_rate": 1.0})),
        alter(({"user": "~alice", "client-id": "~app", "ip": "127.0.0.9"}, {"producer_byte_rate": 1.0})),
        alter(({"user": "~alice", "nope": "x"}, {"producer_byte_rate": 1.0})),
        alter(([("user", "~alice"), ("user", "~bob")], {"producer_byte_rate": 1.0})),
        alter(([("user", "~alice"), ("user", "~alice")], {"producer_byte_rate": 1.0})),
        alter((ALICE, {"producer_byte_rate": 1.0}), (ALICE, {"consumer_byte_rate": 1.0})),
        alter((ALICE, {"producer_byte_rate": 1.0}), (APP, {"nope": 1.0})),
        of_alice("0.Value", 1.0),
        *(
            (alter(({"ip": name}, {CREATION: 1e6}), validate=True))
            for name in ("127.0.0.1", "::1", "localhost", "127.1")
        ),
        alter(({"ip": None}, {CREATION: 1e6}), validate=True),
    ),
    scenario(
        "only validated",
        "AlterClientQuotas",
        alter((ALICE, {"producer_byte_rate": 1.0}), validate=True),
        alter((ALICE, {"producer_byte_rate": 0.0}), validate=True),
        alter((ALICE, {"nope": None}), validate=True),
        of_alice(),
    ),
    *(
        scenario(
            "found by filters",
            api,
            alter(
                (ALICE, {"producer_byte_rate": 1e9}),
                (APP, {"consumer_byte_rate": 2e9}),
                ({"user": "~alice", "client-id": "~app"}, {"request_percentage": 1e6}),
                ({"user": "~alice", "client-id": None}, {"request_percentage": 1e7}),
                ({"user": None, "client-id": "~app"}, {"request_percentage": 1e8}),
            ),
            describe(
                ("user", DEFAULT, None),
                ("client-id", EXACT, "~app"),
                until=("Entries.0.Values.0.Value", 1e8),
                quiet=True,
            ),
            *(
                describe(*components, strict=strict)
                for strict in (False, True)
                for components in (
                    [("user", EXACT, "~alice")],
                    [("client-id", EXACT, "~app")],
                    [("user", EXACT, "~alice"), ("client-id", EXACT, "~app")],
                    [("user", EXACT, "~alice"), ("client-id", DEFAULT, None)],
                    [("user", EXACT, "~alice"), ("client-id", ANY, None)],
                    [("user", DEFAULT, None), ("client-id", EXACT, "~app")],
                    [("user", ANY, None), ("client-id", EXACT, "~app")],
                    [("user", EXACT, "~bob")],
                    [("user", EXACT, "")],
                    [("ip", EXACT, "10.9.9.9")],
                )
            ),
            alter(
                (ALICE, {"producer_byte_rate": None}),
                (APP, {"consumer_byte_rate": None}),
                ({"user": "~alice", "client-id": "~app"}, {"request_percentage": None}),
                ({"user": "~alice", "client-id": None}, {"request_percentage": None}),
                ({"user": None, "client-id": "~app"}, {"request_percentage": None}),
            ),
            of_alice(),
        )
        for api in ON_BOTH
    ),
    scenario(
        "all of them",
        "DescribeClientQuotas",
        alter((ALICE, {"producer_byte_rate": 1e9}), ({"ip": "127.5.5.5"}, {CREATION: 1e6})),
        alter((BY_DEFAULT, {"request_percentage": 1e8}), ({"client-id": None}, {"request_percentage": 1e7})),
        alter(({"user": None, "client-id": None}, {"request_percentage": 1e9}), ({"ip": None}, {CREATION: 1e7})),
        describe(("ip", DEFAULT, None), until=("Entries.0.Values.0.Value", 1e7), quiet=True),
        *(
            describe(*components, strict=strict)
            for strict in (False, True)
            for components in (
                [],
                [("user", ANY, None)],
                [("client-id", ANY, None)],
                [("ip", ANY, None)],
                [("user", ANY, None), ("client-id", ANY, None)],
                [("user", DEFAULT, None)],
                [("client-id", DEFAULT, None)],
                [("ip", DEFAULT, None)],
            )
        ),
        alter((ALICE, {"producer_byte_rate": None}), ({"ip": "127.5.5.5"}, {CREATION: None})),
        alter((BY_DEFAULT, {"request_percentage": None}), ({"client-id": None}, {"request_percentage": None})),
        alter(({"user": None, "client-id": None}, {"request_percentage": None}), ({"ip": None}, {CREATION: None})),
        alone=True,
    ),
    scenario(
        "filters that are refused",
        "DescribeClientQuotas",
        describe(("nope", EXACT, "x")),
        describe(("", EXACT, "x")),
        describe(("User", EXACT, "x")),
        describe(("user", EXACT, None)),
        describe(("user", DEFAULT, "x")),
        describe(("user", ANY, "x")),
        *(describe(("user", how, None)) for how in (3, -1, 127)),
        describe(("user", EXACT, "x"), ("user", EXACT, "x")),
        describe(("user", EXACT, "x"), ("user", ANY, None)),
        describe(("user", EXACT, "x"), ("ip", EXACT, "127.0.0.1")),
        describe(("ip", ANY, None), ("client-id", ANY, None)),
        describe(("nope", EXACT, "x"), ("nope", EXACT, "x")),
        describe(("nope", 9, None)),
    ),
    scenario("nothing, strictly", "DescribeClientQuotas", describe(strict=True)),
]
