"""Parses ``sasl.jaas.config`` of a client: one login module with its options.

Knows nothing of what the options mean. Apache Kafka's ``JaasConfig``.
"""

import re
from typing import NamedTuple

_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)
_FLAGS = ("required", "requisite", "sufficient", "optional")


class LoginModule(NamedTuple):
    """A login module: the name of its class, and its options."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.name})"


def parse_jaas(text: str) -> LoginModule:
    """Returns the login module.

    :raises ValueError: the text is not one login module; the error's text shows nothing of it
    """
    tokens = _tokens(text.strip())
    if len(tokens) < 3 or tokens[1].lower() not in _FLAGS:
        raise ValueError("has no login module with a control flag")
    if tokens.index(";") != len(tokens) - 1 if ";" in tokens else True:
        raise ValueError("is not one login module that ends with a semicolon")
    options = tokens[2:-1]
    if len(options) % 3 or any(each != "=" for each in options[1::3]):
        raise ValueError("has options that are not name=value")
    return LoginModule(tokens[0], dict(zip(options[::3], options[2::3], strict=True)))


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ValueError("has a quotation mark that is not closed")
        double, single, sign, word = match.groups()
        quoted = double if double is not None else single
        found.append(re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else sign or word)
        position = match.end()
    return found
