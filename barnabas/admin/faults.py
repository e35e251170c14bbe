"""Faults and time by HTTP.

Knows nothing of how rules are applied (:mod:`barnabas.faults`).
"""

import asyncio
import typing
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from barnabas.admin.endpoints import (
    NUMBER,
    SWITCH,
    TEXT,
    WHOLE,
    AdminRequest,
    Answer,
    Endpoint,
    Refused,
    array,
    fields,
)
from barnabas.faults import scenarios
from barnabas.faults.parts import OTHERS, Action, Match, Other, When
from barnabas.faults.rules import Rule
from barnabas.testing.turning import BrokerClock, moment_of

LOOK_S: Final = 0.005
LONGEST_WAIT_S: Final = 300.0

NOT_BY_HTTP: Final = ("edit",)  #: is a function

TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", tuple: "array", Other: "integer"}


def _schema_of(hint: Any) -> Mapping[str, Any]:
    """Returns the schema of a part of a rule, which may be of several types."""
    kinds = [typing.get_origin(each) or each for each in typing.get_args(hint) or (hint,)]
    names = [TYPES[kind] for kind in kinds if kind in TYPES]
    return {"type": names[0] if len(names) == 1 else names}


RULE: Final = fields(
    **{
        name: _schema_of(hint)
        for part in (Match, When, Action)
        for name, hint in typing.get_type_hints(part).items()
        if name not in NOT_BY_HTTP
    }
)
SET_RULE: Final = fields(("id", "rule", "hits", "calls"), id=WHOLE, rule=TEXT, hits=WHOLE, calls=WHOLE)

SCENARIOS: Final = {
    name: getattr(scenarios, name)
    for name in (
        "leader_moves", "coordinator_moves", "producer_fenced", "disk_full", "too_few_replicas", "answer_lost",
        "network_cut", "slow_consumer_evicted", "quota_exceeded", "authentication_expires",
    )
}  # fmt: skip


def shown(rule: Rule) -> dict[str, Any]:
    return {"id": rule.number, "rule": str(rule), "hits": rule.hits, "calls": rule.calls}


def _rule(request: AdminRequest, number: Any) -> Rule:
    """Returns a rule that is in force. :raises Refused: there is none of that number"""
    for rule in request.controls.faults.rules:
        if str(rule.number) == str(number):
            return rule
    raise Refused(404, f"there is no rule {number}")


def _given(request: AdminRequest, body: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in body.items() if value is not None}
    for name in NOT_BY_HTTP:
        if name in given:
            raise Refused(400, f"{name} is a function: only a test in Python can give it")
    for name in OTHERS:
        if name in given:
            given[name] = _rule(request, given[name])
    if isinstance(given.get("coordinator"), list):
        given["coordinator"] = tuple(given["coordinator"])
    return given


async def add(request: AdminRequest) -> Answer:
    """Sets a rule (JSON), or those of a script (text, or YAML).

    Clients such as curl, and ``fetch`` of JavaScript, send a wrong content type by default.
    """
    kind = request.http.headers.get("content-type", "").partition(";")[0]
    faults, text = request.controls.faults, (await request.http.body()).decode()
    if kind != "application/json" and not text.lstrip().startswith(("{", "[")):
        return [shown(rule) for rule in faults.script(text)]
    return shown(faults.add(**_given(request, await request.fields())))


async def every(request: AdminRequest) -> Answer:
    return [shown(rule) for rule in request.controls.faults.rules]


async def one(request: AdminRequest) -> Answer:
    """Shows a rule, and waits for its hits if the query says so."""
    rule = _rule(request, request.path("id"))
    wanted, timeout = request.whole("hits"), min(float(request.query("timeout") or 10), LONGEST_WAIT_S)
    if wanted is not None:
        end = asyncio.get_running_loop().time() + timeout
        while rule.hits < wanted:
            if asyncio.get_running_loop().time() > end:
                raise Refused(408, f"{rule.hits} instead of {wanted} hits in {timeout:g} s: {rule}")
            await asyncio.sleep(LOOK_S)
    return shown(rule)


async def lift(request: AdminRequest) -> Answer:
    rule = _rule(request, request.path("id"))
    rule.lift()
    return shown(rule)


async def lift_all(request: AdminRequest) -> Answer:
    request.controls.faults.clear()
    return None


async def report(request: AdminRequest) -> Answer:
    return request.controls.faults.report().splitlines()


async def seed(request: AdminRequest) -> Answer:
    number = (await request.fields("seed")).get("seed")
    if not isinstance(number, int):
        raise Refused(400, 'say {"seed": 7}')
    request.controls.faults.seed(number)
    return None


async def scenario(request: AdminRequest) -> Answer:
    name = request.path("name").replace("-", "_")
    if name not in SCENARIOS:
        raise Refused(404, f"there is no scenario {name}; there are {', '.join(SCENARIOS)}")
    try:
        begun = SCENARIOS[name](request.controls.faults, **await request.fields())
    except TypeError as error:
        raise Refused(400, str(error)) from None
    return [shown(rule) for rule in begun.rules]


# ---------------------------------------------------------------- time


def _clock(request: AdminRequest) -> BrokerClock:
    try:
        return BrokerClock(request.controls.clock, lambda seconds: None)
    except RuntimeError as error:
        raise Refused(409, str(error)) from None


def _time(clock: BrokerClock) -> dict[str, Any]:
    time_ms = clock.time_ms
    date = datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return {"time_ms": time_ms, "date": date, "is_frozen": clock.is_frozen}


async def time(request: AdminRequest) -> Answer:
    return _time(_clock(request))


async def advance(request: AdminRequest) -> Answer:
    clock, given = _clock(request), await request.fields()
    seconds = 0.0
    for name, value in given.items():
        if name not in UNITS_S or not isinstance(value, int | float) or value < 0:
            raise Refused(400, f"say one of {', '.join(UNITS_S)}, each a number that is not negative")
        seconds += UNITS_S[name] * value
    await request.controls.advance(seconds)
    return _time(clock)


async def at(request: AdminRequest) -> Answer:
    clock, date = _clock(request), (await request.fields("date")).get("date")
    time_ms = moment_of(str(date))
    if time_ms > clock.time_ms:
        await request.controls.advance((time_ms - clock.time_ms) / 1000)
    request.controls.clock.set_date(time_ms)
    return _time(clock)


async def freeze(request: AdminRequest) -> Answer:
    clock = _clock(request)
    clock.freeze()
    return _time(clock)


async def go_on(request: AdminRequest) -> Answer:
    clock = _clock(request)
    clock.go_on()
    return _time(clock)


UNITS_S: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}
TIME: Final = fields(("time_ms", "date"), time_ms=WHOLE, date=TEXT, is_frozen=SWITCH)
WAIT: Final = {"hits": (WHOLE, "answer once the rule has so many hits"), "timeout": (NUMBER, "seconds; else 10")}

ENDPOINTS: Final = (
    Endpoint("GET", "/faults", every, "The rules that are in force", answers=array(SET_RULE)),
    Endpoint("POST", "/faults", add, "Set a rule, or the rules of a script as text", body=RULE,
             body_types=("application/json", "text/plain", "application/yaml"), answers=SET_RULE, status=201),
    Endpoint("DELETE", "/faults", lift_all, "Remove all rules, and clear the report", status=204),
    Endpoint("GET", "/faults/report", report, "Which rule fired when, a line each", answers=array(TEXT)),
    Endpoint("POST", "/faults/seed", seed, "Seed the random numbers of rules anew", body=fields(("seed",), seed=WHOLE),
             status=204),
    Endpoint("POST", "/faults/scenarios/{name}", scenario, "Set the rules of a scenario", body=fields(),
             answers=array(SET_RULE), status=201),
    Endpoint("GET", "/faults/{id}", one, "A rule, or wait for its hits", query=WAIT, answers=SET_RULE),
    Endpoint("DELETE", "/faults/{id}", lift, "Lift a rule", answers=SET_RULE),
    Endpoint("GET", "/clock", time, "The broker's time", answers=TIME),
    Endpoint("POST", "/clock/advance", advance, "Advance the clock; timers that are due have run when this returns",
             body=fields(**dict.fromkeys(UNITS_S, NUMBER)), answers=TIME),
    Endpoint("POST", "/clock/at", at, "Advance the clock to a date; for a date in the past, only the date is set",
             body=fields(("date",), date=TEXT), answers=TIME),
    Endpoint("POST", "/clock/freeze", freeze, "Stop the date", answers=TIME),
    Endpoint("POST", "/clock/go-on", go_on, "Unfreeze the date", answers=TIME),
)  # fmt: skip
