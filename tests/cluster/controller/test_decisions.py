"""The table of commands is complete."""

import inspect

import pytest

from barnabas.cluster.controller import commands
from barnabas.cluster.controller.decisions import DECIDE, function_of


@pytest.mark.parametrize("command", DECIDE, ids=lambda command: command.__name__)
def test_each_command_has_its_function(command):
    parameters = inspect.signature(function_of(command)).parameters
    assert list(parameters) == ["command", "image", "around"]
    assert parameters["command"].annotation is command
    assert getattr(commands, command.__name__) is command
