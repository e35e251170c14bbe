"""``barnabas kafka``: runs a tool of Apache Kafka, or makes scripts of all of them.

Knows nothing of what a tool does; ``kafka_tools/table.py`` lists the tools.
"""

from pathlib import Path

import click

from barnabas.cli.extras import is_missing
from barnabas.cli.kafka_tools import table


@click.command()
@click.argument("directory", metavar="[DIR]", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.argument("suffix", default=".sh")
def install(directory: Path, suffix: str) -> None:
    """Write a script for each tool to DIR, and print their paths.

    SUFFIX ends their names: .sh as in Apache Kafka's archive, or '' as in Confluent's.
    """
    for path in table.install(directory, suffix):
        click.echo(path)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kafka(tool: str, arguments: tuple[str, ...]) -> None:
    """Run a tool of Apache Kafka by its name, with its options and its output.

    \b
    barnabas kafka topics --bootstrap-server localhost:9092 --list
    barnabas kafka install DIR [SUFFIX]    writes DIR/kafka-topics.sh and so on
    """
    if tool == "install":
        install.main(list(arguments), prog_name="barnabas kafka install", standalone_mode=False)
        return
    try:
        code = table.run(tool, arguments)
    except LookupError as error:
        raise click.ClickException(str(error.args[0])) from None
    except ModuleNotFoundError as error:
        raise is_missing(error) from None
    raise click.exceptions.Exit(code)
