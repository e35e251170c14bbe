"""The error of a command whose extra is not installed.

Knows nothing of the commands.
"""

import click


def is_missing(error: ImportError, extra: str = "cli") -> click.ClickException:
    """Returns the error of a command that needs an extra."""
    hint = f"pip install 'barnabas[{extra}]'"
    return click.ClickException(f"{error.name} is not installed; it is part of the extra {extra}: {hint}")
