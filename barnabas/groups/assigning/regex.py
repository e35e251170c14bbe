"""The topics that a regular expression of a subscription matches.

Knows nothing of members. The syntax is that of RE2 (KIP-848).
"""

from collections.abc import Iterable

from barnabas.errors import InvalidRegularExpression
from barnabas.patterns import matcher


def matching(pattern: str, topics: Iterable[str]) -> set[str]:
    """Returns the topics whose whole name matches.

    :raises InvalidRegularExpression: RE2 rejects the expression

    >>> sorted(matching("orders-(eu|us)", ["orders-eu", "orders-eu-2", "orders-us"]))
    ['orders-eu', 'orders-us']
    """
    try:
        matches = matcher(pattern)
    except InvalidRegularExpression as error:
        text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {error}."
        raise InvalidRegularExpression(text) from error
    return set(filter(matches, topics))
