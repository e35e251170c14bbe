"""Loads the user's function from a Python file, and calls it with the tables.

Knows nothing of what tables are made of.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql import DataFrame, SparkSession

NAME = "transform"


def function_of(transform: str) -> Callable[..., Any]:
    """Returns the function that ``file.py`` or ``file.py:name`` names.

    :raises ValueError: the file or the function does not exist.
    """
    text, colon, name = transform.rpartition(":")
    if not colon or not name.isidentifier():
        text, name = transform, NAME
    path = Path(text)
    if not path.is_file():
        raise ValueError(f"transform names the file {path}, which is not there")
    found = getattr(_module(path), name, None)
    if not callable(found):
        raise ValueError(f"{path} has no function {name}(...) that returns a DataFrame")
    return found  # type: ignore[no-any-return]


def _module(path: Path) -> ModuleType:
    """Imports the file as a module. Its functions and classes are pickled by value, as workers cannot import it.

    :raises ValueError: it is not a Python file.
    :raises Exception: the file itself raises it.
    """
    name = path.stem if path.stem.isidentifier() else NAME
    spec = importlib.util.spec_from_file_location(f"barnabas_transforms_{name}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"transform names {path}, which is not a Python file: it must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # the file may import its neighbours
    spec.loader.exec_module(module)
    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def call(function: Callable[..., Any], tables: Mapping[str, DataFrame], spark: SparkSession) -> DataFrame:
    """Returns the function's result for the tables that its parameters name. The name of a single table is free.

    :raises ValueError: a parameter is not a table, or the result is not a DataFrame.
    """
    known: dict[str, Any] = {**tables, "spark": spark}
    parameters = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    names = [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    strangers = [name for name in names if name not in known]
    if len(tables) == 1 and len(strangers) == 1:
        known[strangers[0]] = next(iter(tables.values()))
    elif strangers:
        raise ValueError(f"{function.__name__} has a parameter {strangers[0]}; the tables are {', '.join(tables)}")
    result = function(**{name: known[name] for name in names})
    if not isinstance(result, DataFrame):
        raise ValueError(f"{function.__name__} returned {type(result).__name__}, and not a DataFrame")
    return result
