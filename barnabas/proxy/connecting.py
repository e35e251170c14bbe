"""Connects to nodes in plaintext, or by TLS and SASL with the security properties of a Java client.

Knows nothing of what is sent over the connections.
"""

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from barnabas.clock import Scheduler
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.config.validators import ConfigError
from barnabas.diagnosis import Address
from barnabas.proxy.proxy import Connect
from barnabas.proxy.upstream import Upstream

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LISTENER: Final = "CLUSTER"
MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
PREFIXES: Final = ("ssl.", "sasl.")


async def connect_in_the_clear(node: Address, new: Callable[[], Upstream]) -> Upstream:
    """Connects without TLS and SASL. :raises OSError: the node cannot be reached"""
    _, upstream = await asyncio.get_running_loop().create_connection(new, node.host, node.port)
    return upstream


def connect_by(properties: Mapping[str, str], scheduler: Scheduler, random: Random) -> Connect:
    """Returns the function that connects to nodes with the security properties of a client.

    :raises ConfigError: these are not valid
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise ConfigError("security.protocol", protocol, f"one of {', '.join(PROTOCOLS)}")
    if protocol == "PLAINTEXT":
        return connect_in_the_clear
    from barnabas.peers.secure import SecureConnect

    configs = {name: text for name, text in properties.items() if name.startswith(PREFIXES)}
    configs[MECHANISM] = configs.pop("sasl.mechanism", "GSSAPI").strip()
    secure = SecureConnect(Surroundings(BrokerConfig(configs), scheduler, random), LISTENER, protocol, MECHANISM)

    async def connect(node: Address, new: Callable[[], Upstream]) -> Upstream:
        return await secure(Endpoint(LISTENER, node.host, node.port, protocol), new)

    return connect


class Surroundings:
    """The part of a node that SASL authentication needs."""

    def __init__(self, config: BrokerConfig, scheduler: Scheduler, random: Random) -> None:
        self.config = config
        self.scheduler = scheduler
        self.random = random
