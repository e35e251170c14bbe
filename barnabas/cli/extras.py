"""The error of a command whose extra is not installed.

Knows nothing of the commands.
"""

import click


def is_missing(error: ImportError) -> click.ClickException:
    """Returns the error of a command that needs the extra ``cli``."""
    hint = "pip install 'barnabas[cli]'"
    return click.ClickException(f"{error.name} is not installed; it is part of the extra cli: {hint}")
