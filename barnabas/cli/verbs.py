"""Commands with subcommands, as some of Kafka's tools have: ``barnabas features upgrade``.

Knows nothing of any single command. ``--bootstrap-server`` and ``--command-config`` may precede or follow the
subcommand.
"""

from collections.abc import Mapping
from typing import ClassVar

import click


class Verbs(click.Group):
    """A group that lists its subcommands in the order of declaration, and knows aliases for some."""

    aliases: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return super().get_command(context, self.aliases.get(name, name))


def pass_options_on(context: click.Context, given: Mapping[str, object]) -> None:
    """Makes the options that precede the subcommand the defaults of the same options of the subcommand."""
    assert isinstance(context.command, Verbs)
    explicit = {
        name: value
        for name, value in given.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    context.default_map = dict.fromkeys((*context.command.commands, *context.command.aliases), explicit)
