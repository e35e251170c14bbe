"""Client telemetry (KIP-714): the subscriptions, and the client instances with the metrics that each has to push.

Knows nothing of the metrics' contents: the receiver is passed in. Imported only if somebody does. Corresponds to Apache
Kafka's ``ClientMetricsManager``.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.config.definitions import of_client_metrics
from barnabas.config.dynamic import CLIENT_METRICS_RESOURCE
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRegularExpression,
    InvalidRequest,
    KafkaError,
    MessageTooLarge,
    TelemetryTooLarge,
    ThrottlingQuotaExceeded,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
)
from barnabas.patterns import matcher
from barnabas.records.batch import Compression
from barnabas.records.checksum import crc32c
from barnabas.records.compression import decompress
from barnabas.uuids import random_uuid, uuid_text

if TYPE_CHECKING:
    from barnabas.cluster.image.image import Configs

ALL: Final = "*"
NO_ID: Final = bytes(16)
RESERVED: Final = frozenset({NO_ID, bytes(15) + b"\x01"})
"""Ids that no client has (``Uuid.RESERVED``)."""

ACCEPTED: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The accepted codecs, which clients are sent, the preferred first."""

CODECS: Final = frozenset(Compression)

MOST_INSTANCES: Final = 16384
"""The most instances that are kept. Beyond it, those that have been silent longest are dropped."""

LEAST_EXPIRY_MS: Final = 60_000
"""An instance is dropped after three push intervals without a request, but not before this time."""

FORGIVEN: Final = (UnknownSubscriptionId.code, UnsupportedCompressionType.code)
"""After these errors a client may ask for its subscription at once."""

Attributes = Mapping[str, str | None]
"""The client attributes that subscriptions match: client_id, client_software_name, and so on."""


class Subscription(NamedTuple):
    """A resource of the type CLIENT_METRICS, parsed."""

    metrics: frozenset[str]
    interval_ms: int
    patterns: Mapping[str, Callable[[str], bool]]

    def matches(self, attributes: Attributes) -> bool:
        """Returns whether each pattern matches; without patterns, all clients match."""
        return all((value := attributes.get(name)) is not None and fits(value) for name, fits in self.patterns.items())


def subscription_of(configs: "Configs") -> Subscription:
    """Returns the subscription that sets these configs, which the controller has checked."""
    values = {
        name: definition.parse_set(configs[name]) if name in configs else definition.default
        for name, definition in of_client_metrics().items()
    }
    parts = [each.partition("=") for each in values["match"]]
    patterns = {name.strip(): _matcher(pattern.strip()) for name, _, pattern in parts}
    return Subscription(frozenset(values["metrics"]), values["interval.ms"], patterns)


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Returns the function that tells whether a text matches. As in Apache Kafka, patterns that RE2 refuses are
    accepted as well.
    """
    try:
        return matcher(pattern)
    except InvalidRegularExpression:
        compiled = re.compile(pattern)
        return lambda text: compiled.fullmatch(text) is not None


class Instance:
    """A client instance, and the metrics that it has to push."""

    __slots__ = (
        "attributes",
        "expiry",
        "instance_id",
        "interval_ms",
        "is_terminating",
        "last_error",
        "metrics",
        "pushed_ms",
        "requested_ms",
        "subscription_id",
        "version",
    )  # fmt: skip

    def __init__(
        self, instance_id: bytes, attributes: Attributes, metrics: tuple[str, ...], interval_ms: int, version: int
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.version = version  #: of the subscriptions from which these settings were made
        self.subscription_id = subscription_id(instance_id, metrics, interval_ms)
        self.requested_ms = self.pushed_ms = 0
        self.is_terminating = False
        self.last_error = 0
        self.expiry: Deadline

    def may_ask(self, now_ms: int) -> bool:
        """Returns whether the client may request its subscription now, and records the time."""
        if now_ms - max(self.requested_ms, self.pushed_ms) < self.interval_ms:
            return False
        self.requested_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Returns whether the client may push now, as it may after each GetTelemetrySubscriptions; records the time."""
        if self.requested_ms <= self.pushed_ms and now_ms - self.pushed_ms < self.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


def subscription_id(instance_id: bytes, metrics: tuple[str, ...], interval_ms: int) -> int:
    """Returns the subscription id of an instance: it changes with each subscription that concerns the instance."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    words = [int.from_bytes(instance_id[at : at + 4]) for at in range(0, 16, 4)]
    number = checksum ^ words[0] ^ words[1] ^ words[2] ^ words[3]  # the hash code of java.util.UUID
    return number - (1 << 32) if number >> 31 else number


class Pushed(NamedTuple):
    """Metrics that an instance has pushed."""

    instance: Instance
    data: bytes  #: MetricsData of OpenTelemetry


class Telemetry:
    """The instances of a broker.

    :param configs: returns the configs of all resources, those of the image
    :param max_bytes: the largest push, compressed or not
    :param receive: receives the pushed metrics. It raises ValueError if they cannot be read
    """

    def __init__(
        self,
        configs: Callable[[], Mapping[tuple[int, str], "Configs"]],
        max_bytes: int,
        deadlines: Deadlines,
        random_bytes: Callable[[int], bytes],
        receive: Callable[[Pushed], object],
    ) -> None:
        self.max_bytes = max_bytes
        self.instances: OrderedDict[bytes, Instance] = OrderedDict()  #: by id, the longest silent first
        self.throttled = self.unknown_subscriptions = self.received = self.unreadable = 0
        self._configs = configs
        self._deadlines = deadlines
        self._random_bytes = random_bytes
        self._receive = receive
        self._by_connection: dict[int, bytes] = {}
        self._seen: object = None  # the configs from which the subscriptions were made
        self._sources: dict[str, Configs] = {}
        self._subscriptions: list[Subscription] = []
        self._version = 0

    def ask(self, instance_id: bytes, attributes: Attributes, connection: int, now_ms: int) -> Instance:
        """Returns the instance with that id, or a new one.

        :raises ThrottlingQuotaExceeded: its interval is not over yet
        """
        if instance_id == NO_ID:
            instance_id = random_uuid(self._random_bytes)
        instance = self._instance(instance_id, attributes, connection)
        if not instance.may_ask(now_ms) and instance.last_error not in FORGIVEN:
            self.throttled += 1
            raise ThrottlingQuotaExceeded("The client has sent a request before its push interval was over")
        instance.last_error = 0
        return instance

    def push(
        self, instance_id: bytes, attributes: Attributes, connection: int, now_ms: int,
        *, subscription: int, terminating: bool, codec: int, metrics: bytes,
    ) -> None:  # fmt: skip
        """Receives the metrics that an instance pushes. :raises KafkaError: the push is refused"""
        if instance_id in RESERVED:
            raise InvalidRequest("No client instance has that id")
        instance = self._instance(instance_id, attributes, connection)
        instance.last_error = 0
        try:
            self._check(instance, now_ms, subscription, terminating, codec, metrics)
            if metrics:
                self._take(instance, Compression(codec), metrics)
        except KafkaError as error:
            instance.last_error = error.code
            raise
        finally:
            instance.is_terminating = terminating

    def _check(
        self, instance: Instance, now_ms: int, subscription: int, terminating: bool, codec: int, metrics: bytes
    ) -> None:
        if instance.is_terminating:
            raise InvalidRequest("The client has sent its terminating push already")
        if not instance.may_push(now_ms) and not terminating:
            self.throttled += 1
            raise ThrottlingQuotaExceeded("The client has pushed before its push interval was over")
        if subscription != instance.subscription_id:
            self.unknown_subscriptions += 1
            raise UnknownSubscriptionId("The push has another subscription id than the client's subscription")
        if codec not in CODECS:
            raise UnsupportedCompressionType(f"No codec has the number {codec}")
        if len(metrics) > self.max_bytes:
            raise TelemetryTooLarge(f"{len(metrics)} bytes are more than telemetry.max.bytes ({self.max_bytes})")

    def _take(self, instance: Instance, codec: Compression, metrics: bytes) -> None:
        try:
            self._receive(Pushed(instance, decompress(codec, metrics, self.max_bytes)))
        except MessageTooLarge as error:
            self.unreadable += 1
            raise TelemetryTooLarge(
                f"The decompressed metrics are larger than telemetry.max.bytes ({self.max_bytes})"
            ) from error
        except (CorruptMessage, ValueError) as error:
            self.unreadable += 1
            raise InvalidRecord(f"The metrics cannot be read: {error}") from error
        self.received += 1

    # ------------------------------------------------------------ instances

    def _instance(self, instance_id: bytes, attributes: Attributes, connection: int) -> Instance:
        """Returns the instance with the current subscriptions. Its attributes are those of its first request."""
        self._deadlines.run_due()
        self._follow()
        instance = self.instances.get(instance_id)
        if instance is None or instance.version < self._version:
            if instance is not None:
                instance.expiry.cancel()
                attributes = instance.attributes
            instance = self._new_instance(instance_id, attributes)
            instance.expiry = Deadline(self._forget, instance_id, connection)
            self.instances[instance_id] = instance
            self._by_connection[connection] = instance_id
            if len(self.instances) > MOST_INSTANCES:
                _, oldest = self.instances.popitem(last=False)
                oldest.expiry.cancel()
        self.instances.move_to_end(instance_id)
        self._deadlines.set(instance.expiry, max(LEAST_EXPIRY_MS, 3 * instance.interval_ms) / 1000)
        return instance

    def _new_instance(self, instance_id: bytes, attributes: Attributes) -> Instance:
        attributes = {**attributes, "client_instance_id": uuid_text(instance_id)}
        mine = [each for each in self._subscriptions if each.matches(attributes)]
        metrics = frozenset[str]().union(*(each.metrics for each in mine))
        names = (ALL,) if ALL in metrics else tuple(sorted(metrics))
        default: int = of_client_metrics()["interval.ms"].default
        interval_ms = min((each.interval_ms for each in mine), default=default)
        return Instance(instance_id, attributes, names, min(interval_ms, default), self._version)

    def _follow(self) -> None:
        """Reads the subscriptions, if any has changed."""
        configs = self._configs()
        if configs is self._seen:
            return
        self._seen = configs
        sources = {name: each for (kind, name), each in configs.items() if kind == CLIENT_METRICS_RESOURCE}
        if sources != self._sources:
            self._sources = sources
            self._subscriptions = [subscription_of(each) for each in sources.values()]
            self._version += 1

    def disconnected(self, connection: int) -> None:
        """Drops the instance of a closed connection."""
        instance_id = self._by_connection.pop(connection, None)
        instance = None if instance_id is None else self.instances.pop(instance_id, None)
        if instance is not None:
            instance.expiry.cancel()

    def _forget(self, instance_id: bytes, connection: int) -> None:
        self.instances.pop(instance_id, None)
        self._by_connection.pop(connection, None)
