"""Which topics a regular expression of a consumer group's member means.

Knows nothing of members. The syntax is RE2's, as Kafka's clients and brokers agree (KIP-848).
"""

from collections.abc import Iterable

from barnabas.patterns import matcher


def matching(pattern: str, topics: Iterable[str]) -> set[str]:
    """Those of the topics whose whole name is as the pattern says. :raises InvalidRegularExpression: RE2 refuses it

    >>> sorted(matching("orders-(eu|us)", ["orders-eu", "orders-eu-2", "orders-us"]))
    ['orders-eu', 'orders-us']
    """
    return set(filter(matcher(pattern), topics))
