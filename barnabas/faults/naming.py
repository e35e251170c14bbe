"""Names of APIs and errors as Apache Kafka writes them: ``Produce``, ``NOT_LEADER_OR_FOLLOWER``.

Knows nothing of rules. The names are those of ``ApiKeys`` and ``Errors``.
"""

import difflib
import re
from collections.abc import Iterable

from barnabas.api_handlers.registry import APIS, Api
from barnabas.errors import KafkaError


class ImpossibleRule(ValueError):
    """A rule that can never match, or that says nothing. The text says what would be right."""


def api_name(key: int) -> str:
    """Returns the name of an API that is answered here: ``Produce`` for 0."""
    return "".join(part.capitalize() for part in APIS[key].module.split("_"))


def error_name(error: type[KafkaError]) -> str:
    """Returns Apache Kafka's name: ``NOT_LEADER_OR_FOLLOWER``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", error.__name__).upper()


def find_api(wanted: str | int) -> Api:
    """Returns the API with that name, in any case and with or without underscores, or that key.

    :raises ImpossibleRule: there is none
    """
    names = {api_name(key): key for key in APIS}
    if isinstance(wanted, int) or wanted.isdigit():
        key = int(wanted)
        if key not in APIS:
            raise ImpossibleRule(f"no API has the key {key}")
        return APIS[key]
    by_plain = {_plain(name): key for name, key in names.items()}
    if _plain(wanted) not in by_plain:
        raise ImpossibleRule(f"no API is called {wanted!r}{nearest(wanted, names)}")
    return APIS[by_plain[_plain(wanted)]]


def find_error(wanted: str | int | type[KafkaError]) -> type[KafkaError]:
    """Returns the error with that name or code. :raises ImpossibleRule: there is none"""
    if isinstance(wanted, type):
        return wanted
    if isinstance(wanted, int) or wanted.lstrip("-").isdigit():
        if int(wanted) not in KafkaError.by_code:
            raise ImpossibleRule(f"no error has the code {wanted}")
        return KafkaError.by_code[int(wanted)]
    names = {error_name(error): error for error in KafkaError.by_code.values()}
    by_plain = {_plain(name): error for name, error in names.items()}
    if _plain(wanted) not in by_plain:
        raise ImpossibleRule(f"no error is called {wanted!r}{nearest(wanted, names)}")
    return by_plain[_plain(wanted)]


def nearest(wanted: str, names: Iterable[str]) -> str:
    """Returns what to add to a text about a name that does not exist."""
    by_plain = {_plain(name): name for name in names}
    found = difflib.get_close_matches(_plain(wanted), by_plain, 3, 0.5)
    return f"; did you mean {', '.join(by_plain[each] for each in found)}?" if found else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
