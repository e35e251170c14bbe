"""The log levels of this process, with the names of Kafka's levels, as a resource with configs (KIP-412).

Knows nothing of requests. Loggers belong to the process: several brokers in one process share them.
"""

import logging

from barnabas.errors import InvalidConfig, InvalidRequest

ROOT = "root"
#: Kafka's levels; Python has no TRACE, and FATAL is its CRITICAL.
LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """Returns the effective level of each logger, by its name; that of the root comes first."""
    there = {name: it for name, it in logging.root.manager.loggerDict.items() if isinstance(it, logging.Logger)}
    return {ROOT: _name_of(logging.root.level)} | {
        name: _name_of(there[name].getEffectiveLevel()) for name in sorted(there) if name != ROOT
    }


def check_set(name: str, level: str | None) -> None:
    """Checks a change of the logger's level.

    :raises InvalidConfig: the logger or the level is unknown
    """
    _check_name(name)
    if level not in LEVELS:
        raise InvalidConfig(
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}"
        )


def check_unset(name: str) -> None:
    """Checks a removal of the logger's level.

    :raises InvalidRequest: it is the root logger
    :raises InvalidConfig: the logger is unknown
    """
    if name == ROOT:
        raise InvalidRequest("Removing the log level of the root logger is not allowed")
    _check_name(name)


def set_level(name: str, level: str) -> None:
    """Sets the level of the logger."""
    _logger(name).setLevel(LEVELS[level])


def unset_level(name: str) -> None:
    """Removes the level of the logger, so that it inherits that of its parent."""
    _logger(name).setLevel(logging.NOTSET)


def _check_name(name: str) -> None:
    if name not in levels():
        raise InvalidConfig(f"Logger {name} does not exist!")


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _name_of(level: int) -> str:
    """Returns the name of the lowest of Kafka's levels that is not below ``level``."""
    return next((name for name, number in LEVELS.items() if level <= number), "FATAL")
