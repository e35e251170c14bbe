"""The command line: one module per command, with the options of Kafka's own tools.

Knows nothing of what a command does. ``serve`` parses its options without click, whose import would take a fifth of the
broker's start-up time. All other commands, and the help and errors of ``serve``, use click.
"""

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    :param arguments: the command and its options; None takes those of the process
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        exit_code = _serve(given[1:])
        if exit_code is not None:
            return exit_code
    from barnabas.cli import commands

    return commands.run(given)


def _serve(arguments: list[str]) -> int | None:
    """Runs a broker without click, and returns the exit code; None if click is needed to print help or an error."""
    gc.disable()  # the objects loaded so far are kept: collecting them costs 5 % of the start-up time
    try:
        from barnabas.cli import serve

        options = serve.read(arguments)
        return None if options is None else serve.serve(options)
    finally:
        gc.enable()  # a broker that is ready has done so already
