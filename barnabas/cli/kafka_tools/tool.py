"""The common part of the tools: translates the arguments of a call into our command, runs it, and returns its JSON.

Knows nothing of any single tool. A tool prints usage errors to standard error, and its exit code is then 1.
"""

import contextlib
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.cli import commands
from barnabas.cli.java_errors import java_class
from barnabas.cli.kafka_tools.options import Given, Option, UsageProblem, parse, servers

KAFKA_VERSION = "4.3.1"
"""The release of Apache Kafka whose tools these are."""
NO_CONTROLLERS = "--bootstrap-controller is not supported: Barnabas's tools ask a broker, by --bootstrap-server."


class Tool(NamedTuple):
    """A tool: the first line of its help, its options, and the function that runs it."""

    about: str
    options: Mapping[str, Option]
    run: Callable[[Given], int | None]
    prefix: str = ""  #: of messages about options that cannot be used


class Failed(Exception):
    """Our command failed. ``name`` is Kafka's name of the error, if it has one: ``UnknownTopicOrPartition``."""

    def __init__(self, text: str) -> None:
        name, colon, rest = text.partition(": ")
        has_name = bool(colon) and name.isidentifier() and name[:1].isupper()
        self.name, self.message = (name, rest) if has_name else ("", text)
        super().__init__(text)

    @property
    def java(self) -> str:
        """The error as Java prints an exception."""
        return f"{java_class(self.name)}: {self.message}" if self.name else self.message


def call(tool: Tool, arguments: Sequence[str]) -> int:
    """Runs a tool with the arguments of a call, and returns its exit code."""
    try:
        given = parse(tool.options, arguments)
        if not arguments or "help" in given:
            raise UsageProblem(tool.about)
        if "version" in given:
            click.echo(KAFKA_VERSION)
            return 0
        if "bootstrap-controller" in given:
            raise UsageProblem(NO_CONTROLLERS)
        return tool.run(given) or 0
    except UsageProblem as problem:
        sys.stderr.write(f"{tool.prefix}{problem}\n{usage(tool)}")
        return 1
    except Failed as error:
        sys.stderr.write(f"{error.java}\n")
        return 1
    except click.Abort:
        return 130


def usage(tool: Tool) -> str:
    """Returns the names of a tool's options, in two columns as Kafka's help has them."""
    lines = ["Option", "------"]
    for name, option in sorted(tool.options.items()):
        lines.append(f"--{name}{('', ' <value>', ' [value]')[option.takes.value]}")
    return "\n".join(lines) + "\n"


def command(given: Given, name: str, *words: str) -> int:
    """Runs our command with the tool's options; its output is the tool's.

    :raises Failed: it fails
    :raises UsageProblem: it refuses its options, or there is no address
    """
    return run([name, *connection(given), *given.words(), *words])


def answer_of(given: Given, name: str, *words: str) -> Any:
    """Runs our command with the tool's options, and returns its JSON.

    :raises Failed: it fails; ``printed`` has its output
    """
    return json_of([name, *connection(given), *given.words(), *words, "--json"])


def json_of(words: Sequence[str]) -> Any:
    """Runs one of our commands that prints JSON, and returns the JSON.

    :raises Failed: it fails
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run(words)
    return json.loads(out.getvalue() or "null")


def connection(given: Given) -> list[str]:
    """Returns our option of the cluster's address. :raises UsageProblem: it is missing"""
    if "bootstrap-server" not in given:
        raise UsageProblem("--bootstrap-server must be specified")
    return [f"--bootstrap-server={servers(given.one('bootstrap-server'))}"]


def run(words: Sequence[str]) -> int:
    """Runs one of our commands, and returns its exit code.

    :raises Failed: it fails
    :raises UsageProblem: it refuses its options
    """
    try:
        return int(commands.barnabas.main(list(words), prog_name="barnabas", standalone_mode=False) or 0)
    except click.UsageError as error:
        raise UsageProblem(error.format_message()) from None
    except click.ClickException as error:
        raise Failed(" ".join(error.format_message().split())) from None
