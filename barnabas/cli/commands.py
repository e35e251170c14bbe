"""The table of commands; each command's module is imported when it is called.

Knows nothing of what a command does. An error is printed as one line on standard error, with an exit code other than 0.
"""

import importlib
from collections.abc import Sequence

import click

from barnabas import __version__

#: Each command with its line in ``barnabas --help``. Module and click command have the same name, with underscores.
COMMANDS = {
    "serve": "Start a broker.",
    "cluster": "Start a cluster on this machine, and stop and start its nodes.",
    "topics": "Create, list, describe, alter and delete topics.",
    "configs": "Describe and alter configs of topics, brokers, groups, users, clients and more.",
    "acls": "Add, remove and list ACLs.",
    "delegation-tokens": "Create, renew, expire and describe delegation tokens.",
    "get-offsets": "Show the offsets of partitions.",
    "delete-records": "Delete the records of partitions before an offset.",
    "produce": "Write records to a topic, one per line of input.",
    "consume": "Read records and print them, one per line.",
    "copy": "Copy the last records of topics into a broker for tests, or into a file.",
    "groups": "List, describe and delete groups, and reset their offsets.",
    "transactions": "List and describe transactions, and abort hanging ones.",
    "features": "Show, raise and lower the levels of a cluster's features.",
    "storage": "Format the directories of a node, and show how they are formatted.",
    "broker-api-versions": "Show which versions of each API brokers have.",
    "brokers": "Show the brokers of a cluster.",
    "quorum": "Show the metadata quorum, and the lag of its voters and observers.",
    "reassign": "Move partitions to other brokers.",
    "leader-election": "Elect leaders of partitions.",
    "log-dirs": "Describe log directories, and move partitions between them.",
    "schemas": "List, show, register, check, compare and delete schemas of a schema registry.",
    "pipeline": "Export, import, backfill, mirror and transform topics with Spark.",
    "spark": "Download Spark's own Kafka connector.",
    "proxy": "Run a proxy in front of a cluster.",
    "replay": "Send recorded requests again, and compare the answers.",
    "top": "Show the rates of topics and clients, the lag of groups, and slow requests, live.",
    "check-log": "Check or repair the data directory of a stopped broker.",
    "dump-log": "Print the contents of files in a log directory.",
    "console": "Show a cluster in the browser.",
    "explain": "Explain a message, a frame, an error code or a config.",
    "kafka": "Run a tool of Apache Kafka by its name: kafka topics is kafka-topics.sh.",
    "image-properties": "Write the server.properties that an image of Kafka makes from its environment.",
}

ELSEWHERE = {"console": "barnabas.console.command"}
"""Modules of commands in packages above this one, which use the commands here."""


class Commands(click.Group):
    """Lists its commands from the table, and imports a command's module when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        if name == "serve":
            return serve_command()
        module = name.replace("-", "_")
        command = getattr(importlib.import_module(ELSEWHERE.get(name, f"barnabas.cli.{module}")), module)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def serve_command() -> click.Command:
    """Returns ``serve`` as a click command, which prints its help and its errors."""
    from barnabas.cli import serve

    def callback(file: str | None, **given: object) -> int:
        options = {name: value for name, value in given.items() if value not in (None, ())}
        if file is not None:
            options.setdefault("properties", file)
        return serve.serve(serve.Options(**options))  # type: ignore[arg-type]

    parameters: list[click.Parameter] = [click.Argument(["file"], required=False, metavar="[server.properties]")]
    for option in serve.OPTIONS:
        kind = {"is_flag": True} if option.is_flag else {"multiple": option.multiple}
        parameters.append(click.Option([*option.flags, option.name], help=option.help, **kind))
    return click.Command(
        "serve",
        params=parameters,
        callback=callback,
        help="Start a broker.\n\nProperties are Kafka's own. --override takes precedence over variables of the "
        "environment that begin with KAFKA_, and these over the file.",
    )


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="barnabas")
def barnabas() -> None:
    """A Kafka broker, and command-line tools for this and any other Kafka broker."""


def run(arguments: Sequence[str]) -> int:
    """Runs a command with click and returns its exit code."""
    try:
        code = barnabas.main(list(arguments), prog_name="barnabas", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        message = " ".join(error.format_message().split())
        hint = f" (see {_command_of(error)} --help)" if isinstance(error, click.UsageError) else ""
        click.echo(f"Error: {message}{hint}", err=True)
        return error.exit_code
    except click.Abort:
        return 130
    return int(code or 0)


def _command_of(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx is not None else "barnabas"
