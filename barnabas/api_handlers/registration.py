"""Reads the listeners and features in the registration of a broker or a controller.

Knows nothing of how the controller uses them.
"""

from collections.abc import Iterable
from typing import Any

from barnabas.config.endpoints import SECURITY_PROTOCOLS, Endpoint
from barnabas.errors import InvalidRegistration


def endpoints_of(listeners: Iterable[Any]) -> list[Endpoint]:
    """Returns the listeners as endpoints.

    :raises InvalidRegistration: a listener has an unknown security protocol
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
