"""The addresses of IP quotas, in the form in which connections have them.

Knows nothing of host names, which have to be looked up. Numbers are read as Java's ``InetAddress`` reads them.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

_SHORT = re.compile(r"\d+(\.\d+){0,3}", re.ASCII)
_BITS = 32


def numeric_address(text: str) -> str | None:
    """Returns the address in its usual form; None if the text is not an address.

    >>> numeric_address("127.1"), numeric_address("0:0::1"), numeric_address("localhost")
    ('127.0.0.1', '::1', None)
    """
    if _SHORT.fullmatch(text):
        return _short(text)
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def _short(text: str) -> str | None:
    """Returns an IPv4 address whose last number may stand for several bytes."""
    *first, last = map(int, text.split("."))
    left = _BITS - 8 * len(first)
    if any(each > 0xFF for each in first) or last >= 1 << left:
        return None
    value = last
    for index, each in enumerate(first):
        value |= each << (_BITS - 8 * (index + 1))
    return str(IPv4Address(value))
