"""Refuses rules that can never match or that do nothing, and says what would be right.

Knows nothing of requests.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from barnabas.api_handlers.registry import APIS, Api
from barnabas.errors import KafkaError
from barnabas.faults.naming import ImpossibleRule, api_name, find_api, find_error
from barnabas.faults.parts import (
    ACTIONS,
    BAD_TLS,
    CUTS,
    FRACTIONS,
    LEADER_APIS,
    MATCHES,
    NEW,
    OTHERS,
    SILENCES,
    SWITCHES,
    TEXTS,
    WHOLE,
    Action,
    Match,
    When,
)  # fmt: skip
from barnabas.faults.placing import has_place
from barnabas.faults.subjects import can_name
from barnabas.wire.schema import Versions

LEAST: Final = {
    "partition": 0, "nth": 1, "first": 1, "every": 1, "since": 0, "delay": 0, "delay_after": 0, "throttle_ms": 0,
    "answer_version": 0,
}  # fmt: skip
"""The least values of numbers."""
CONNECTIONS: Final = re.compile(r"new|\+[1-9][0-9]*")


class Named(NamedTuple):
    """What a rule names: an API, its versions and an error; None where it names none."""

    api: Api | None
    versions: Versions | None
    error: type[KafkaError] | None


def checked(match: Match, when: When, action: Action) -> Named:
    """Returns what the parts of a rule name. :raises ImpossibleRule: they can never match, or do nothing"""
    for part in (match, when, action):
        for name in part.__dataclass_fields__:
            if (value := getattr(part, name)) is not None:
                _check_value(name, value)
    named = Named(
        None if match.api is None else find_api(match.api),
        None if match.versions is None else _versions(match.versions),
        None if action.error is None else find_error(action.error),
    )
    if action == Action():
        raise ImpossibleRule(f"the rule does nothing: say one of {', '.join(ACTIONS)}")
    for refusal in (*_about_connections(match, action), *_about_times(when), *_about_actions(named, action)):
        raise ImpossibleRule(refusal)
    if named.api is not None:
        _check_api(named.api, named, match, action)
    return named


def _check_value(name: str, value: Any) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if name in ("api", "versions") and not (is_whole or isinstance(value, str)):
        raise ImpossibleRule(f"{name} is a text or a whole number, not {value!r}")
    if name == "error" and not (is_whole or isinstance(value, str | type)):
        raise ImpossibleRule(f"error is a name or a code, not {value!r}")
    if name in WHOLE and not is_whole:
        raise ImpossibleRule(f"{name} is a whole number, not {value!r}")
    if name in FRACTIONS and not (is_whole or isinstance(value, float)):
        raise ImpossibleRule(f"{name} is a number, not {value!r}")
    if name in TEXTS and not isinstance(value, str):
        raise ImpossibleRule(f"{name} is a text, not {value!r}")
    if name in SWITCHES and not isinstance(value, bool):
        raise ImpossibleRule(f"{name} is true or false, not {value!r}")
    if name in OTHERS and not hasattr(value, "is_in_force"):
        raise ImpossibleRule(f"{name} is another rule, not {value!r}")
    if name == "edit" and not callable(value):
        raise ImpossibleRule(f"edit is a function that gets the response, not {value!r}")
    if name == "coordinator" and not (isinstance(value, tuple) and [*map(type, value)] == [int, str, int]):
        raise ImpossibleRule(f"coordinator is a node id, a host and a port, not {value!r}")
    if name == "connection" and not (value >= 1 if is_whole else CONNECTIONS.fullmatch(str(value))):
        raise ImpossibleRule(f"connection is a number from 1 on, {NEW!r} or '+2', not {value!r}")
    if name in LEAST and value < LEAST[name]:
        raise ImpossibleRule(f"{name} counts from 1 on" if LEAST[name] else f"{name} is not negative")


def _versions(given: str | int) -> Versions:
    try:
        versions = Versions.parse(str(given))
    except ValueError:
        raise ImpossibleRule(f"versions={given!r} is not of the form 9, 3-8 or 12+") from None
    if versions.first > versions.last:
        raise ImpossibleRule(f"versions={given!r} begins after its end")
    return versions


def _about_connections(match: Match, action: Action) -> Iterator[str]:
    matched = {name for name in MATCHES if getattr(match, name) is not None}
    if action.refuse and matched - {"connection", "node"}:
        yield "refuse is about new connections, before their first request: match none, or connection"
    if action.tls is not None and matched:
        yield "tls is about new connections, before anything is known of the client: match none"


def _about_times(when: When) -> Iterator[str]:
    if when.nth is not None and (when.first is not None or when.every is not None):
        yield "nth is one request: leave out first and every"
    if when.seconds is not None and when.seconds <= 0:
        yield "seconds is the end, counted from the moment the rule is set: more than 0"
    if when.since is not None and when.seconds is not None and when.since >= when.seconds:
        yield "since is the begin and seconds the end, both counted from the moment the rule is set"
    if when.probability is not None and not 0 < when.probability <= 1:
        yield "probability is more than 0, and 1 at most"


def _about_actions(named: Named, action: Action) -> Iterator[str]:
    for value, possible, name in (
        (action.cut, CUTS, "cut"), (action.silent, SILENCES, "silent"), (action.tls, tuple(BAD_TLS), "tls"),
    ):  # fmt: skip
        if value is not None and value not in possible:
            yield f"{name}={value!r} is none of {', '.join(possible)}"
    if action.answer_version is not None and named.api is None:
        yield "answer_version is a version of one API: name the api"
    if action.drip is not None and action.drip < 1:
        yield "drip is a number of bytes a second, 1 or more"
    if action.correlation_id == 0:
        yield "correlation_id is by how much it is wrong: not 0"
    if action.handled and named.error is None:
        yield "handled=True runs the handler before it answers an error: name the error"
    needed = LEADER_APIS if action.leader is not None else ("FindCoordinator",) if action.coordinator else ()
    if needed and (named.api is None or api_name(named.api.key) not in needed):
        yield f"only answers to {' and '.join(needed)} say that: api={needed[0]!r}"


def _check_api(api: Api, named: Named, match: Match, action: Action) -> None:
    name = api_name(api.key)
    versions = named.versions or api.versions
    if versions.last < api.versions.first or versions.first > api.versions.last:
        raise ImpossibleRule(f"{name} is answered in versions {api.versions}, not {versions}")
    for subject in ("topic", "partition", "group", "transactional_id"):
        if getattr(match, subject) is not None and not can_name(api.request, subject):
            able = [api_name(key) for key, each in APIS.items() if can_name(each.request, subject)]
            raise ImpossibleRule(f"a request of {name} names no {subject}; these do: {', '.join(able)}")
    if named.error is not None and not has_place(api.request, versions):
        raise ImpossibleRule(f"the answer to {name} has no place for an error in versions {versions}; cut it instead")
    answered = action.answer_version
    if answered is not None and answered not in api.versions:
        raise ImpossibleRule(f"{name} is answered in versions {api.versions}, not {answered}")
    if action.throttle_ms is not None and not any(
        field.name == "throttle_time_ms" for field in api.request.response.wire_fields()
    ):
        raise ImpossibleRule(f"the answer to {name} has no throttle time")
