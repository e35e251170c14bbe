"""The table of commands is complete."""

import importlib
import inspect
import pkgutil

import pytest

from barnabas.cluster.controller import commands
from barnabas.cluster.controller.decisions import DECIDE, function_of

CLASSES = {
    name: value
    for module in pkgutil.iter_modules(commands.__path__)
    for name, value in vars(importlib.import_module(f"{commands.__name__}.{module.name}")).items()
    if name in DECIDE
}


@pytest.mark.parametrize("name", DECIDE)
def test_each_command_has_its_function(name):
    command = CLASSES[name]
    parameters = inspect.signature(function_of(command)).parameters
    assert list(parameters) == ["command", "image", "around"]
    assert parameters["command"].annotation is command
