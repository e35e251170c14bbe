"""The command line: one module per command, options named as those of Kafka's own tools.

Knows nothing of what a command does. ``serve`` goes past click, whose import would take a fifth of the time in which
the broker is to answer; everything else, its mistakes and its help included, is click's.
"""

import gc
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that these arguments are (the process's, without any given); its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"]:
        gc.disable()  # what is loaded now stays: looking for garbage in it is a twentieth of the start
        from barnabas.cli import serve

        options = serve.read(given[1:])
        if options is not None:
            return serve.serve(options)
    from barnabas.cli import commands

    return commands.run(given)
