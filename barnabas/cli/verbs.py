"""Commands that have verbs of their own, as some of Kafka's tools do: ``barnabas features upgrade``.

Knows nothing of any of them. Where the broker is may be said before the verb or after it.
"""

from collections.abc import Mapping
from typing import ClassVar

import click


class Verbs(click.Group):
    """Commands in the order in which they were written, some of which have other names besides."""

    aliases: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return super().get_command(context, self.aliases.get(name, name))


def hand_on(context: click.Context, given: Mapping[str, object]) -> None:
    """What was said before the verb goes to it, unless it is said again after it."""
    assert isinstance(context.command, Verbs)
    said = {
        name: value
        for name, value in given.items()
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
    }
    context.default_map = dict.fromkeys((*context.command.commands, *context.command.aliases), said)
