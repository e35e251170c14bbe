"""Reads what a node registers with, be it a broker or a controller: where it listens, and what it supports.

Knows nothing of what the controller makes of it.
"""

from collections.abc import Iterable
from typing import Any

from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.errors import InvalidRegistration


def endpoints_of(listeners: Iterable[Any]) -> list[Endpoint]:
    """Returns the listeners as endpoints.

    :raises InvalidRegistration: one has no security protocol that there is
    """
    found = []
    for each in listeners:
        if not 0 <= each.security_protocol < len(SECURITY_PROTOCOLS):
            raise InvalidRegistration(f"Unknown security protocol {each.security_protocol} in listener {each.name}")
        protocol = SECURITY_PROTOCOLS[each.security_protocol]
        found.append(Endpoint(each.name, each.host, each.port, protocol))
    return found


def features_of(features: Iterable[Any]) -> dict[str, tuple[int, int]]:
    """Returns the first and the last supported level of each feature."""
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in features}
