"""The quotas in effect on this broker, from the image and the configs.

Knows nothing of requests and connections. While nothing is limited, there are no quota objects, and quotas cost
nothing. Apache Kafka's ``ClientQuotaMetadataManager``.
"""

from collections.abc import Callable, Mapping

from barnabas.broker.names import Names
from barnabas.clock import Clock
from barnabas.cluster.image.image import MetadataImage
from barnabas.config import BrokerConfig
from barnabas.config.listener_configs import ListenerConfigs, prefix_of
from barnabas.security.quotas.addresses import numeric_address
from barnabas.security.quotas.client_quotas import KINDS, ClientQuotas
from barnabas.security.quotas.connections import UNLIMITED, ConnectionRates
from barnabas.security.quotas.entities import CONNECTION_CREATION_RATE, IP, Entity
from barnabas.security.quotas.rates import Windows

MAX_CREATION_RATE = "max.connection.creation.rate"


def windows(config: BrokerConfig) -> Windows:
    """Returns the windows over which the quotas of clients and connections are measured."""
    return Windows(config["quota.window.num"], config["quota.window.size.seconds"] * 1000)


def mutation_windows(config: BrokerConfig) -> Windows:
    """Returns the windows of the token bucket for controller mutations."""
    return Windows(config["controller.quota.window.num"], config["controller.quota.window.size.seconds"] * 1000)


def client_quotas(
    before: ClientQuotas | None, image: MetadataImage, config: BrokerConfig, clock: Clock
) -> ClientQuotas | None:
    """Returns the quotas of users and client ids, which keep the usage measured so far; None if none is set."""
    values = [(entity, key, record.value) for (entity, key), record in image.quotas.items() if key in KINDS]
    if not values:
        return None
    quotas = before or ClientQuotas(clock.monotonic, windows(config), mutation_windows(config))
    quotas.change(values)
    return quotas


class AddressQuotas:
    """The quotas of the image's IP entities, by address: host names are looked up.

    :param changed: called when the addresses of hosts are known
    """

    def __init__(self, names: Names, changed: Callable[[], object]) -> None:
        self._names = names
        self._changed = changed
        self._addresses: dict[str, str | None] = {}
        self._requested: set[str] = set()

    def of(self, image: MetadataImage) -> Mapping[Entity, float]:
        """Returns the quotas. One for a host is missing until its address is known."""
        found: dict[Entity, float] = {}
        unknown = []
        for (entity, key), record in image.quotas.items():
            if key != CONNECTION_CREATION_RATE:
                continue
            _, has_name, name = entity[0]
            address = numeric_address(name) or self._addresses.get(name)
            if not has_name:
                found[entity] = record.value
            elif address is not None:
                found[((IP, True, address),)] = record.value
            elif name not in self._requested:
                unknown.append(name)
        if unknown:
            self._requested.update(unknown)
            self._names.look_up(unknown, self._looked_up)
        return found

    def _looked_up(self, addresses: Mapping[str, str | None]) -> None:
        self._addresses.update(addresses)
        self._changed()


def connection_rates(
    before: ConnectionRates | None, addresses: Mapping[Entity, float], config: BrokerConfig, clock: Clock
) -> ConnectionRates | None:
    """Returns the limits of the connection rate, which keep the rates recorded so far; None if nothing is limited."""
    names = [endpoint.name for endpoint in config.listeners]
    of_listeners = {
        name: rate for name in names if (rate := listener_limit(config, name, MAX_CREATION_RATE)) is not None
    }
    of_broker = config[MAX_CREATION_RATE]
    if of_broker == UNLIMITED and not of_listeners and not addresses:
        return None
    return ConnectionRates(
        clock.monotonic,
        windows(config),
        of_broker=of_broker,
        of_listeners=of_listeners,
        addresses=addresses,
        protected=config.inter_broker_listener_name if len(names) > 1 else None,
    ).taking_over(before)


def listener_limit(config: BrokerConfig, listener: str, name: str) -> int | None:
    """Returns a limit that is set for the listener itself; None if there is none."""
    return int(ListenerConfigs(config, listener)[name]) if config.is_set(prefix_of(listener) + name) else None
