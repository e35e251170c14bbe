"""The settings of writers, by the names of Kafka's Java producer.

Knows nothing of connections, whose settings are in :mod:`barnabas.pipelines.client.settings`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.pipelines.client.settings import BadSetting, Setting, check_setting
from barnabas.records.batch import Compression

KIB = 1 << 10
MIB = 1 << 20
LEVELS = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131072, 22)}
IDEMPOTENT_IN_FLIGHT = 5
"""The number of a producer's last batches of a partition that a broker recognizes (KIP-98)."""


def _between(least: int, most: int = (1 << 31) - 1) -> Callable[[str], int]:
    def check(value: str) -> int:
        number = int(value)
        if not least <= number <= most:
            raise ValueError(f"must be from {least} to {most}")
        return number

    return check


def _choice(*choices: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value.lower()

    return check


PRODUCER_SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            "acks",
            _choice("all", "-1", "0", "1"),
            "all",
            "which replicas must have a batch: all in sync, 1 the leader, 0 none",
        ),
        Setting("batch.size", _between(1), str(MIB), "bytes of a batch before compression"),
        Setting("buffer.memory", _between(1), str(16 * MIB), "bytes of unacknowledged batches, per task"),
        Setting(
            "compression.type", _choice(*(codec.name.lower() for codec in Compression)), "none", "codec of batches"
        ),
        *(
            Setting(f"compression.{codec}.level", _between(*levels), None, f"the compression level of {codec}")
            for codec, levels in LEVELS.items()
        ),
        Setting("delivery.timeout.ms", _between(1), "120000", "how long a batch may take, including retries"),
        Setting("enable.idempotence", _choice("true", "false"), None, "write each batch once, and in order"),
        Setting("linger.ms", _between(0), "1000", "how long a task waits for more rows to fill a batch"),
        Setting("max.in.flight.requests.per.connection", _between(1), "5", "requests in flight to a broker"),
        Setting("max.request.size", _between(1), str(MIB), "bytes of a request; if set, also of a record"),
        Setting("retries", _between(0), None, "how often a batch is retried within delivery.timeout.ms"),
        Setting("transaction.timeout.ms", _between(1), "900000", "how long the transaction of a task may stay open"),
    )
}

PRODUCER_REFUSED = {
    "transactional.id": "delivery=exactly-once creates one for each task",
    "transaction.two.phase.commit.enable": "delivery=exactly-once commits the transaction of each task",
    "max.block.ms": "default.api.timeout.ms limits how long to wait for a broker",
    "partitioner.ignore.keys": "omit the column key, or set the column partition",
    "partitioner.adaptive.partitioning.enable": "rows without a key go to all partitions in turn",
}


@dataclass(frozen=True)
class WriteSettings:
    """Settings of a writer, with sizes in bytes and times in seconds; `PRODUCER_SETTINGS` documents them."""

    acks: int = -1
    batch_bytes: int = MIB
    buffer_bytes: int = 16 * MIB
    compression: Compression = Compression.NONE
    level: int | None = None
    delivery_timeout: float = 120.0
    request_timeout: float = 30.0
    idempotent: bool = True
    linger: float = 1.0
    max_in_flight: int = 5
    request_bytes: int = MIB
    record_bytes: int | None = None
    retries: int | None = None
    transaction_timeout_ms: int = 900_000

    @classmethod
    def parse(cls, options: Mapping[str, str], *, request_timeout: float = 30.0) -> "WriteSettings":
        """Parses settings by their Java names, without the prefix ``kafka.``.

        :raises BadSetting: a setting is unknown or wrong.
        """
        for name, value in options.items():
            check_setting(name, value, PRODUCER_SETTINGS, PRODUCER_REFUSED, "a producer")
        said = {name: setting.default for name, setting in PRODUCER_SETTINGS.items()} | dict(options)
        acks = {"all": -1, "-1": -1, "0": 0, "1": 1}[str(said["acks"]).lower()]
        compression = Compression[str(said["compression.type"]).upper()]
        level = said.get(f"compression.{compression.name.lower()}.level")
        in_flight = int(said["max.in.flight.requests.per.connection"] or 0)
        return cls(
            acks=acks,
            batch_bytes=int(said["batch.size"] or 0),
            buffer_bytes=int(said["buffer.memory"] or 0),
            compression=compression,
            level=None if level is None else int(level),
            delivery_timeout=int(said["delivery.timeout.ms"] or 0) / 1000,
            request_timeout=request_timeout,
            idempotent=_idempotent(said["enable.idempotence"], acks, in_flight),
            linger=int(said["linger.ms"] or 0) / 1000,
            max_in_flight=in_flight,
            request_bytes=int(said["max.request.size"] or 0),
            record_bytes=int(options["max.request.size"]) if "max.request.size" in options else None,
            retries=None if said["retries"] is None else int(said["retries"]),
            transaction_timeout_ms=int(said["transaction.timeout.ms"] or 0),
        )


def _idempotent(said: str | None, acks: int, in_flight: int) -> bool:
    """Returns whether the producer is idempotent: it is, unless another setting excludes it, as in Java's producer.

    :raises BadSetting: idempotence is set explicitly, and another setting excludes it.
    """
    wanted = said is not None and said.lower() == "true"
    for name, works, needed in (
        ("acks", acks == -1, "all"),
        ("max.in.flight.requests.per.connection", in_flight <= IDEMPOTENT_IN_FLIGHT, f"{IDEMPOTENT_IN_FLIGHT} or less"),
    ):
        if not works and wanted:
            raise BadSetting(f"kafka.{name} must be {needed} with kafka.enable.idempotence")
        if not works:
            return False
    return said is None or wanted
