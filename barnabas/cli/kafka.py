"""``barnabas kafka``: runs a tool of Apache Kafka, or makes scripts of all of them.

Knows nothing of what a tool does; ``kafka_tools/table.py`` knows which there are.
"""

from pathlib import Path

import click

from barnabas.cli.kafka_tools import table


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
        suffix = arguments[1] if len(arguments) > 1 else ".sh"
        for path in table.install(Path(arguments[0] if arguments else "."), suffix):
            click.echo(path)
        return
    try:
        code = table.run(tool, arguments)
    except LookupError as error:
        raise click.ClickException(str(error.args[0])) from None
    raise click.exceptions.Exit(code)
