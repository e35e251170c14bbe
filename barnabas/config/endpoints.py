"""Parses and checks listeners and advertised listeners, ``NAME://host:port``.

Knows nothing of sockets: the server replaces port 0 and an empty host when it binds the listener. The rules are
Kafka's.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.config.settings import Settings
from barnabas.config.validators import ConfigError, InvalidValue

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SHAPE = "a list of NAME://host:port, each name once"


class Endpoint(NamedTuple):
    """The address of a listener. An empty host is every interface, port 0 any free port."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parses ``listener.security.protocol.map``: security protocols by listener names, in upper case.

    :raises ConfigError: the text is not a list of ``NAME:PROTOCOL``
    """
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in item.rpartition(":"))
        if not colon or not name or protocol.upper() not in SECURITY_PROTOCOLS or name.upper() in protocols:
            rule = f"a list of NAME:PROTOCOL, each name once, with a protocol of {', '.join(SECURITY_PROTOCOLS)}"
            raise ConfigError("listener.security.protocol.map", text, rule)
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_endpoints(config: str, items: Sequence[str], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Parses a list of endpoints, the value of the config ``config``.

    :raises ConfigError: an item is malformed, has no security protocol, or repeats a name
    """
    endpoints: dict[str, Endpoint] = {}
    for item in items:
        name, separator, address = item.strip().partition("://")
        host, colon, port = address.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        shaped = separator and name and colon and port.isdecimal() and int(port) < 65536
        if not shaped or (":" in bare and bare == host) or name.upper() in endpoints:
            raise ConfigError(config, ",".join(items), _SHAPE)
        if name.upper() not in protocols:
            rule = f"made of names that listener.security.protocol.map knows: {', '.join(protocols)}"
            raise ConfigError(config, ",".join(items), rule)
        endpoints[name.upper()] = Endpoint(name.upper(), bare, int(port), protocols[name.upper()])
    return tuple(endpoints.values())


def check_ports(endpoints: Iterable[Endpoint], text: str) -> None:
    """Checks ports: two listeners may have the same port only if one is IPv4 and the other IPv6.

    :raises ConfigError: two listeners have the same port
    """
    taken: set[tuple[int, bool | None]] = set()
    for endpoint in endpoints:
        # A host name may be of either family, and an empty host is both: their ports must be unique.
        family = ":" in endpoint.host if ":" in endpoint.host or _is_ipv4(endpoint.host) else None
        rivals = {(endpoint.port, other) for other in (True, False, None) if None in (family, other) or family == other}
        if endpoint.port and rivals & taken:
            raise ConfigError("listeners", text, "a list in which no two listeners have the same port")
        taken.add((endpoint.port, family))


def check_early_start(values: Settings, known: Collection[str]) -> None:
    """Checks ``early.start.listeners`` (KIP-801). On a single node it has no effect: the authorizer is always ready.

    :param known: the names of listeners
    :raises InvalidValue: a listener is unknown
    """
    name = "early.start.listeners"
    for listener in values[name] or ():
        if listener.upper() not in known:
            text = f"{name} contains listener {listener.upper()}, but this is not contained in"
            raise InvalidValue(name, f"{text} listeners or controller.listener.names")


def _is_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and all(part.isdecimal() for part in parts)
