"""Reads ``sasl.jaas.config``: a login module and its options, as JAAS writes them.

Knows nothing of what the options mean. The grammar and the errors are those of Apache Kafka's ``JaasConfig`` and
``JaasContext``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

FLAGS: Final = ("REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<comment>//[^\n]*|/\*.*?\*/)
      | "(?P<double>(?:[^"\\\n]|\\.)*)"
      | '(?P<single>(?:[^'\\\n]|\\.)*)'
      | (?P<word>[A-Za-z_$\u00a0-\uffff-][\w.$\u00a0-\uffff-]*)
      | (?P<other>\S)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class JaasError(ValueError):
    """The text is not the config of one login module. The message quotes no values."""


class LoginModule(NamedTuple):
    """One entry of a JAAS config."""

    class_name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"LoginModule({self.class_name})"  # the options have passwords


def login_module(text: str) -> LoginModule:
    """Returns the only login module of a config.

    >>> login_module('org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";').options
    {'user_alice': 'secret'}

    :raises JaasError: the text does not follow the grammar, or has several modules
    """
    modules = list(_modules(text))
    if not modules:
        raise JaasError("Login module not specified in JAAS config")
    if len(modules) > 1:
        raise JaasError(f"JAAS config property contains {len(modules)} login modules, should be 1 module")
    return modules[0]


def _modules(text: str) -> Iterator[LoginModule]:
    tokens = _tokens(text)
    for class_name, _ in tokens:
        flag, is_word = next(tokens, (None, False))
        if flag is None:
            raise JaasError("Login module control flag not specified in JAAS config")
        if not is_word:
            raise JaasError("Login module control flag is not available in the JAAS config")
        if flag.upper() not in FLAGS:
            raise JaasError(f"Invalid login module control flag '{flag}' in JAAS config")
        yield LoginModule(class_name, dict(_options(tokens)))


def _options(tokens: Iterator[tuple[str, bool]]) -> Iterator[tuple[str, str]]:
    for key, is_word in tokens:
        if key == ";" and not is_word:
            return
        equals, value = next(tokens, ("", False)), next(tokens, ("", False))
        if equals != ("=", False) or not value[1]:
            raise JaasError(f"Value not specified for key '{key}' in JAAS config")
        yield key, value[0]
    raise JaasError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yields words and quoted texts with True, other characters with False, as Java's StreamTokenizer does."""
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind in ("double", "single"):
            yield _ESCAPE.sub(_escaped, found[kind]), True
        elif kind != "comment":
            yield found[kind or 0], kind == "word"


def _escaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _CONTROLS.get(code, code)
