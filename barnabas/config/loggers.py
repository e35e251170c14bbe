"""Levels of this process's loggers, by the names that Kafka's have: a resource of its own in DescribeConfigs (KIP-412).

Knows nothing of requests. Loggers are the process's: of several brokers in it all see and change the same ones.
"""

import logging

from barnabas.errors import InvalidConfig, InvalidRequest

ROOT = "root"
#: Kafka's levels; Python's logging has no TRACE, and calls FATAL critical.
LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """The level in effect of each logger that there is, by its name, the root's first."""
    there = {name: it for name, it in logging.root.manager.loggerDict.items() if isinstance(it, logging.Logger)}
    return {ROOT: _name_of(logging.root.level)} | {
        name: _name_of(there[name].getEffectiveLevel()) for name in sorted(there) if name != ROOT
    }


def check_set(name: str, level: str | None) -> None:
    """Whether the logger could be given that level.

    Raises:
        InvalidConfig: there is no such logger, or no such level.
    """
    _check_name(name)
    if level not in LEVELS:
        raise InvalidConfig(f"{level} is no level for the logger {name}: there are {', '.join(sorted(LEVELS))}")


def check_unset(name: str) -> None:
    """Whether the logger could go by what is above it.

    Raises:
        InvalidRequest: it is the root.
        InvalidConfig: there is no such logger.
    """
    if name == ROOT:
        raise InvalidRequest("There is nothing above the root logger: its level can be changed, but not unset")
    _check_name(name)


def set_level(name: str, level: str) -> None:
    """Give the logger a level of its own."""
    _logger(name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """Let the logger go by what is above it."""
    _logger(name).setLevel(logging.NOTSET)


def _check_name(name: str) -> None:
    if name not in levels():
        raise InvalidConfig(f"There is no logger {name}")


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _name_of(level: int) -> str:
    """The name of the highest level that lets through what this one does."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
