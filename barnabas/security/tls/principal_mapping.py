"""``ssl.principal.mapping.rules``: maps the distinguished name of a certificate to a user name (KIP-371).

Knows nothing of certificates. The grammar is that of Kafka's ``SslPrincipalMapper``. Patterns are matched by RE2, which
takes linear time, since clients choose the name.
"""

import re
from collections.abc import Callable
from typing import Any

from barnabas.config.validators import InvalidValue

_NAME = "ssl.principal.mapping.rules"
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_LIST = re.compile(rf"\s*({_RULE}|)\s*(?:,\s*|$)")
_REFERENCES = re.compile(r"\\(.)|\$(\d+)")

Rule = Callable[[str], str | None]


class NoMatchingRule(Exception):
    """No rule matches the distinguished name: the client is refused."""


class PrincipalMapping:
    """The rules of one listener.

    >>> mapping = PrincipalMapping("RULE:^CN=([^,]+),OU=users.*$/$1/L,DEFAULT")
    >>> mapping.name_of("CN=Alice,OU=users,O=x"), mapping.name_of("CN=Bob,O=x")
    ('alice', 'CN=Bob,O=x')
    """

    __slots__ = ("_rules", "_text")

    def __init__(self, text: str) -> None:
        """
        :raises InvalidValue: the text is not a list of rules
        """
        self._text = text
        self._rules = [_rule(text, *groups) for groups in _split(text.strip())]

    def name_of(self, distinguished_name: str) -> str:
        """Returns the user name for the distinguished name by the first rule that matches.

        :raises NoMatchingRule: no rule matches
        """
        for rule in self._rules:
            name = rule(distinguished_name)
            if name is not None:
                return name
        raise NoMatchingRule(f"No rules apply to {distinguished_name}, rules {self._text}")


def _split(text: str) -> list[tuple[str | None, str, str, str]]:
    rules, at = [], 0
    while at < len(text):
        match = _LIST.match(text, at)
        if match is None or match.end() == at:
            raise InvalidValue(_NAME, f"Invalid rule: {text[at:]}")
        at = match.end()
        if match[1]:  # an empty rule is ignored
            rules.append((match[2], match[3], match[4], match[5]))
    return rules


def _rule(text: str, default: str | None, pattern: str, replacement: str, case: str) -> Rule:
    if default:
        return lambda name: name
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error:
        raise InvalidValue(_NAME, f"Invalid rule: {text}") from None

    def apply(name: str) -> str | None:
        match = compiled.fullmatch(name)
        if match is None:
            return None
        # Java replaces each occurrence of the pattern, and there may be others after the match of the whole name.
        found = compiled.sub(lambda each: filled(replacement, each), name)
        return str(found.lower() if case == "L" else found.upper() if case == "U" else found)

    return apply


def filled(replacement: str, match: Any) -> str:
    """Returns the replacement with the matches of the pattern's groups.

    As in Java, a number has as many digits as name an existing group: ``$12`` is ``$1`` and "2" if there is no group
    12.
    """
    groups = len(match.groups())

    def fill(reference: re.Match[str]) -> str:
        if reference[2] is None:
            return reference[1]
        digits = reference[2]
        for end in range(len(digits), 0, -1):
            if int(digits[:end]) <= groups:
                return (match.group(int(digits[:end])) or "") + digits[end:]
        return f"${digits}"

    return _REFERENCES.sub(fill, replacement)
