"""The options of a tool: a table of their names, and a parser with the rules of Kafka's tools.

Knows nothing of what an option means. Kafka's tools parse with joptsimple: ``--topic orders`` or ``--topic=orders``,
and unambiguous abbreviations such as ``--boot``.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple


class Takes(Enum):
    """What follows an option."""

    NOTHING = 0
    VALUE = 1
    MAYBE = 2  #: a value, unless another option follows


class Option(NamedTuple):
    """An option of a tool, and its translation.

    ``ours`` is the option of our command: by default the same one, and none if it is empty. With ``prefix``, our option
    takes the value after it: ``--batch-size 9`` is ``--producer-property batch.size=9``.
    """

    takes: Takes = Takes.VALUE
    ours: str | None = None
    prefix: str = ""


FLAG = Option(Takes.NOTHING)
VALUE = Option(Takes.VALUE)
OWN_FLAG = Option(Takes.NOTHING, "")
"""A flag that the tool itself handles."""
OWN = Option(Takes.VALUE, "")
"""An option with a value that the tool itself handles."""
CONNECTION: Mapping[str, Option] = {
    "bootstrap-server": OWN,
    "bootstrap-controller": OWN,
    "command-config": VALUE,
    "help": OWN_FLAG,
    "version": OWN_FLAG,
}
"""The options of every tool that connects to a broker."""


class UsageProblem(Exception):
    """The options cannot be used; the text is that of Kafka's tool."""


class Given:
    """The options of a call: the values of each, in order; a flag has an empty one."""

    def __init__(self, options: Mapping[str, Option]) -> None:
        self.options = options
        self.values: dict[str, list[str]] = {}
        self.order: list[tuple[str, str]] = []

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def one(self, name: str, default: str = "") -> str:
        """Returns the last value of an option."""
        return self.values.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        """Returns all values of an option."""
        return self.values.get(name, [])

    def words(self) -> list[str]:
        """Returns our command's options for those given, in their order."""
        found = []
        for name, value in self.order:
            option = self.options[name]
            if option.ours == "":
                continue
            ours = option.ours or f"--{name}"
            if option.takes is Takes.NOTHING or (option.takes is Takes.MAYBE and not value):
                found.append(ours)
            else:
                found.append(f"{ours}={option.prefix}{value}")
        return found


def parse(options: Mapping[str, Option], arguments: Sequence[str]) -> Given:
    """Parses the arguments of a call.

    :raises UsageProblem: an option is unknown, ambiguous or has no value
    """
    given = Given(options)
    waiting = list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        text, equals, value = word.partition("=")
        name = _name(options, text)
        takes = options[name].takes
        if takes is Takes.NOTHING:
            value = ""
        elif not equals and waiting and not (takes is Takes.MAYBE and waiting[-1].startswith("-")):
            value = waiting.pop()
        elif not equals and takes is Takes.VALUE:
            raise UsageProblem(f"Option {name} requires an argument")
        given.values.setdefault(name, []).append(value)
        given.order.append((name, value))
    return given


def require_one(given: Given, actions: Sequence[str], text: str) -> str:
    """Returns the only one of these options that is given.

    :raises UsageProblem: none or more than one is given
    """
    found = [name for name in actions if name in given]
    if len(found) != 1:
        raise UsageProblem(text)
    return found[0]


def require(given: Given, *names: str) -> None:
    """:raises UsageProblem: one of these options is missing (``CommandLineUtils.checkRequiredArgs``)"""
    for name in names:
        if name not in given:
            raise UsageProblem(f'Missing required argument "[{name}]"')


def refuse(given: Given, option: str, *others: str) -> None:
    """:raises UsageProblem: another is given with the option (``CommandLineUtils.checkInvalidArgs``)"""
    if option in given:
        for name in others:
            if name in given:
                raise UsageProblem(f'Option "[{option}]" can\'t be used with option "[{name}]"')


def servers(text: str) -> str:
    """Returns addresses without the names of listeners, which Kafka's clients skip: ``PLAINTEXT://a:1`` is ``a:1``."""
    return ",".join(re.sub(r"^\w+://", "", server.strip()) for server in text.split(","))


def _name(options: Mapping[str, Option], text: str) -> str:
    bare = text.removeprefix("--")
    if text.startswith("--") and bare in options:
        return bare
    meant = [name for name in options if text.startswith("--") and name.startswith(bare)]
    if len(meant) != 1 or not bare:
        raise UsageProblem(f"{text.lstrip('-')} is not a recognized option")
    return meant[0]
