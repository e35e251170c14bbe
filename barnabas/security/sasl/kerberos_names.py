"""``sasl.kerberos.principal.to.local.rules``: maps a Kerberos principal to a user name.

Knows nothing of Kerberos itself. The grammar and the rules are those of Kafka's ``KerberosShortNamer``,
``KerberosRule`` and ``KerberosName``. Patterns are matched by RE2, which takes linear time, since clients choose the
principal.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.config.validators import InvalidValue
from barnabas.security.tls.principal_mapping import NoMatchingRule, filled

RULES: Final = "sasl.kerberos.principal.to.local.rules"
_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(?P<default>DEFAULT)|RULE:\[(?P<count>\d+):(?P<format>[^\]]*)\](?:\((?P<match>[^)]*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<replacement>[^/]*)/(?P<all>g)?)?/?(?P<case>[LU])?"
)
_PARAMETER = re.compile(r"\$(\d*)")

Rule = Callable[[Sequence[str]], str | None]


class KerberosNames:
    """The rules of one listener.

    >>> names = KerberosNames(["RULE:[2:$1](kafka.*)s/kafka/broker/g/U", "DEFAULT"], "EXAMPLE.ORG")
    >>> names.name_of("alice@EXAMPLE.ORG"), names.name_of("kafka/host.example.org@ELSEWHERE")
    ('alice', 'BROKER')

    :param default_realm: the realm to which the rule DEFAULT applies
    """

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """
        :raises InvalidValue: a rule does not follow the grammar
        """
        self._text = ", ".join(rules)
        self._rules = [_rule(text, default_realm) for text in rules]

    def name_of(self, principal: str) -> str:
        """Returns the user name for the principal by the first rule that applies.

        :raises NoMatchingRule: no rule applies, or the principal or the result is not a valid name
        """
        found = _NAME.fullmatch(principal)
        if found is None:
            if "@" in principal:
                raise NoMatchingRule(f"Malformed Kerberos name: {principal}")
            return principal
        service, host, realm = found.groups()
        parts = [realm, service] if host is None else [realm, service, host]
        for rule in self._rules:
            name = rule(parts)
            if name is not None:
                return name
        raise NoMatchingRule(f"No rules apply to {principal}, rules {self._text}")


def _rule(text: str, default_realm: str) -> Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise InvalidValue(RULES, f"Invalid rule: {text}")
    if found["default"]:
        return lambda parts: parts[1] if parts[0] == default_realm else None
    match, pattern = (_compiled(text, found[name]) for name in ("match", "pattern"))
    count, case, times = int(found["count"]), found["case"], 0 if found["all"] else 1

    def apply(parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != count:
            return None
        name = _PARAMETER.sub(lambda each: _parameter(each[1], parts, text), found["format"])
        if match is not None and match.fullmatch(name) is None:
            return None
        if pattern is not None:
            name = str(pattern.sub(lambda each: filled(found["replacement"], each), name, count=times))
        if "/" in name or "@" in name:
            raise NoMatchingRule(f"Non-simple name {name} after auth_to_local rule {text}")
        return name.lower() if case == "L" else name.upper() if case == "U" else name

    return apply


def _parameter(digits: str, parts: Sequence[str], text: str) -> str:
    if not digits or int(digits) >= len(parts):
        raise NoMatchingRule(f"${digits} in the rule {text} names no part of a principal")
    return parts[int(digits)]


def _compiled(text: str, pattern: str | None) -> Any:
    if pattern is None:
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise InvalidValue(RULES, f"Invalid rule: {text}") from None
