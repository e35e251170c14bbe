"""Rules as text, a line each, for tests in other languages: ``Produce nth=2 error=NOT_LEADER_OR_FOLLOWER``.

Knows nothing of what the rules do. The first word is the API, ``*`` any; ``#`` begins a comment. A text that begins
with ``-`` is YAML: a list of rules with the same names.
"""

import shlex
from typing import Any

from barnabas.faults.naming import ImpossibleRule

WHOLE = frozenset(
    {
        "answer_version",
        "connection",
        "partition",
        "node",
        "nth",
        "first",
        "every",
        "drip",
        "correlation_id",
        "throttle_ms",
        "leader",
    }
)
FRACTIONS = frozenset({"probability", "since", "seconds", "delay", "delay_after"})
SWITCHES = frozenset({"handled", "stale", "refuse"})


def parse(text: str) -> list[dict[str, Any]]:
    """Returns the arguments of a rule for each line, or for each item of a list in YAML.

    :raises ImpossibleRule: a line is none, with its number
    """
    if text.lstrip().startswith("- "):
        return _parse_yaml(text)
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = shlex.split(line, comments=True)
        if words:
            try:
                found.append(_rule(words))
            except ValueError as error:
                raise ImpossibleRule(f"line {number}: {error}") from None
    return found


def _parse_yaml(text: str) -> list[dict[str, Any]]:
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
    return list(found)


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
        else:
            given[name] = _value(name, value)
    return given


def _value(name: str, value: str) -> object:
    if name in SWITCHES:
        return value == "true"
    if name in WHOLE:
        return int(value)
    if name in FRACTIONS:
        return float(value)
    if name == "coordinator":  # 5,host,9092
        node, host, port = value.split(",")
        return int(node), host, int(port)
    return value
