"""Rules as text, a line each, for tests in other languages: ``Produce nth=2 error=NOT_LEADER_OR_FOLLOWER``.

Knows nothing of what the rules do. The first word is the API, ``*`` any; ``#`` begins a comment. A text that begins
with ``-`` is YAML: a list of rules with the same names. ``after=1`` names the first rule of the text.
"""

import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.faults.naming import ImpossibleRule
from barnabas.faults.parts import FRACTIONS, OTHERS, SWITCHES, WHOLE


class Line(NamedTuple):
    """A rule of a text."""

    place: str  #: in the text: ``line 3``
    given: dict[str, Any]  #: the arguments of the rule


def rules_of(text: str, possible: Callable[..., Any]) -> list[Any]:
    """Returns the rules of a text, as ``possible`` makes each from its arguments.

    :raises ImpossibleRule: one can never match or does nothing, or a line is no rule
    """
    made: list[Any] = []
    for place, given in parse(text):
        try:
            others = {name: _other(name, given[name], made) for name in OTHERS if name in given}
            made.append(possible(**given | others))
        except ImpossibleRule as error:
            raise ImpossibleRule(f"{place}: {error}") from None
    return made


def _other(name: str, number: object, made: list[Any]) -> Any:
    if not isinstance(number, int) or not 1 <= number <= len(made):
        raise ImpossibleRule(f"{name} is the number of a rule before this one, from 1 on, not {number!r}")
    return made[number - 1]


def parse(text: str) -> list[Line]:
    """Returns the lines of a text that are rules, or the items of a list in YAML.

    :raises ImpossibleRule: a line is no rule
    """
    if text.lstrip().startswith("- "):
        return _parse_yaml(text)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True)
            if words:
                found.append(Line(f"line {number}", _rule(words)))
        except ValueError as error:
            raise ImpossibleRule(f"line {number}: {error}") from None
    return found


def _parse_yaml(text: str) -> list[Line]:
    try:
        import yaml
    except ImportError:
        raise ImpossibleRule("a script in YAML needs a package: pip install 'barnabas[admin]'") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ImpossibleRule(f"this is no YAML: {error}") from None
    for number, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise ImpossibleRule(f"rule {number}: {each!r} is not of the form name: value")
        if each.get("api") == "*":
            del each["api"]
        if isinstance(each.get("coordinator"), list):
            each["coordinator"] = tuple(each["coordinator"])
    return [
        Line(f"rule {number}", {str(name): value for name, value in each.items()})
        for number, each in enumerate(found, 1)
    ]


def _rule(words: list[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "=" not in words[0]:
        api = words.pop(0)
        if api != "*":
            given["api"] = api
    for word in words:
        name, equals, value = word.partition("=")
        if name in SWITCHES and not equals:
            given[name] = True
        elif not equals:
            raise ImpossibleRule(f"{word!r} is not of the form name=value")
        elif name in given:
            raise ImpossibleRule(f"{name} is said twice")
        else:
            given[name] = _value(name, value)
    return given


def _value(name: str, value: str) -> object:
    try:
        if name in SWITCHES:
            return {"true": True, "false": False}[value]
        if name in WHOLE or name in OTHERS or (name == "connection" and value.isdecimal()):
            return int(value)
        if name in FRACTIONS:
            return float(value)
        if name == "coordinator":
            node, host, port = value.split(",")
            return int(node), host, int(port)
    except (KeyError, ValueError):
        raise ImpossibleRule(f"{name}={value}: {_form(name)} is needed") from None
    return value


def _form(name: str) -> str:
    """Returns the form of a value."""
    if name in SWITCHES:
        return "true or false"
    if name in FRACTIONS:
        return "a number"
    return "NODE,HOST,PORT" if name == "coordinator" else "a whole number"
