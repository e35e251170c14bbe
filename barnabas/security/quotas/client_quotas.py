"""The quotas of users and client ids, and the usage of each client.

Knows nothing of what requests mean: the caller records what a request has used, and gets the throttle time. Clients
that share a quota share its usage. Follows Kafka's ``ClientQuotaManager``, ``ClientRequestQuotaManager`` and
``ControllerMutationQuotaManager``.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.errors import ThrottlingQuotaExceeded
from barnabas.security.quotas.entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    Entity,
    Limits,
    limit_of,
)
from barnabas.security.quotas.rates import WINDOWS, Rate, TokenBucket, Windows

KINDS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE)

MOST_CLIENTS = 10_000
"""The number of clients from which on idle ones are removed: a client can use any number of client ids."""


class LimitedRate(NamedTuple):
    """A rate and its bound."""

    rate: Rate
    bound: float

    def record(self, value: float, now_ms: int) -> int:
        """Records usage, and returns the throttle time in milliseconds."""
        self.rate.record(value, now_ms)
        return self.rate.throttle_ms(self.bound, now_ms)


class LimitedBucket(NamedTuple):
    """A bucket of tokens and its bound."""

    bucket: TokenBucket
    bound: float


class Client(NamedTuple):
    """The quotas of one user and client id; None for a quota that is not set."""

    produced: LimitedRate | None
    fetched: LimitedRate | None
    requests: LimitedRate | None
    mutations: LimitedBucket | None


UNLIMITED = Client(None, None, None, None)


class ClientQuotas:
    """The quotas of one broker. :meth:`change` applies those of a new metadata image.

    :param time: returns seconds that never decrease
    :param windows: the windows of rates
    """

    def __init__(
        self, time: Callable[[], float], windows: Windows = WINDOWS, mutation_windows: Windows = WINDOWS
    ) -> None:
        self.time = time
        self.windows = windows
        self._mutation_windows = mutation_windows
        self._limits: dict[str, Limits] = {kind: {} for kind in KINDS}
        self._rates: dict[tuple[str, str, str], Rate] = {}
        self._buckets: dict[tuple[str, str], TokenBucket] = {}
        self.throttled: Counter[str] = Counter()  #: the number of throttled requests by quota type
        self.throttled_ms: Counter[str] = Counter()  #: their throttle times
        self._clients: dict[tuple[str, str], Client | None] = {}  # None for a client without quotas

    def change(self, quotas: Iterable[tuple[Entity, str, float]]) -> None:
        """Replaces all quotas. The new ones are effective at once, and usage is kept."""
        limits: dict[str, dict[Entity, float]] = {kind: {} for kind in KINDS}
        for entity, kind, value in quotas:
            if kind in limits:
                limits[kind][entity] = value
        self._limits = {**limits}
        self._clients.clear()

    def client(self, user: str, client_id: str) -> Client | None:
        """Returns the quotas of a client; None if it has none."""
        key = user, client_id
        try:
            return self._clients[key]
        except KeyError:
            pass
        if len(self._clients) >= MOST_CLIENTS:
            self._forget_idle()
        client = Client(
            self._rate(PRODUCER_BYTE_RATE, user, client_id),
            self._rate(CONSUMER_BYTE_RATE, user, client_id),
            self._rate(REQUEST_PERCENTAGE, user, client_id),
            self._bucket(user, client_id),
        )
        found = self._clients[key] = None if client == UNLIMITED else client
        return found

    def meter(self, user: str, client_id: str | None, size: int) -> "Meter | None":
        """Returns the meter of a request that begins now; None if its client has no quotas.

        As in Kafka, a client without a client id has the quotas of the empty client id.
        """
        client = self.client(user, client_id or "")
        return None if client is None else Meter(self, client, size)

    def now_ms(self) -> int:
        return int(self.time() * 1000)

    def _rate(self, kind: str, user: str, client_id: str) -> LimitedRate | None:
        limit = limit_of(self._limits[kind], user, client_id)
        if limit is None:
            return None
        key = kind, limit.user, limit.client_id
        rate = self._rates.get(key)
        if rate is None:
            rate = self._rates[key] = Rate(self.windows)
        return LimitedRate(rate, limit.bound)

    def _bucket(self, user: str, client_id: str) -> LimitedBucket | None:
        limit = limit_of(self._limits[CONTROLLER_MUTATION_RATE], user, client_id)
        if limit is None:
            return None
        key = limit.user, limit.client_id
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = TokenBucket(self._mutation_windows)
        return LimitedBucket(bucket, limit.bound)

    def _forget_idle(self) -> None:
        """Forgets all clients, and the usage that is out of the window."""
        now_ms = self.now_ms()
        bounds = {
            id(each.mutations.bucket): each.mutations.bound
            for each in self._clients.values()
            if each is not None and each.mutations
        }
        self._rates = {key: rate for key, rate in self._rates.items() if not rate.is_idle(now_ms)}
        self._buckets = {
            key: bucket
            for key, bucket in self._buckets.items()
            if id(bucket) in bounds and not bucket.is_idle(bounds[id(bucket)], now_ms)
        }
        self._clients.clear()


class Meter:
    """The usage of one request, and the throttle time of its client.

    There is one for each request of a client with quotas. While a request waits its time is stopped (:meth:`stop`,
    :meth:`go_on`): only the time that the event loop spends on it counts.
    """

    __slots__ = (
        "_counted_s", "_is_throttled", "_mutations", "_quotas", "_running_since", "_spent_s", "client", "is_exempt",
        "size", "throttle_ms",
    )  # fmt: skip

    def __init__(self, quotas: ClientQuotas, client: Client, size: int) -> None:
        self._quotas = quotas
        self.client = client
        self.size = size  #: the size of the request in bytes
        self.throttle_ms = 0
        self.is_exempt = False  #: whether another broker sent it: such requests are exempt
        self._running_since = None if client.requests is None else quotas.time()
        self._spent_s = 0.0
        self._counted_s = 0.0
        self._mutations: Mutations | None = None
        self._is_throttled = False  # whether a throttle time for the request's time was returned

    # ------------------------------------------------------------ time

    def stop(self) -> None:
        """Stops counting the time: the request waits."""
        if self._running_since is not None:
            self._spent_s += self._quotas.time() - self._running_since
            self._running_since = None

    def go_on(self) -> None:
        """Counts the time again."""
        if self.client.requests is not None:
            self.stop()
            self._running_since = self._quotas.time()

    def count_time(self) -> None:
        """Records the time that was spent and not recorded yet. Only the first call throttles the client: later time is
        spent on a response that already has its throttle time. The throttle time is at most the length of one sample.
        """
        requests = self.client.requests
        if requests is None or self.is_exempt:
            return
        if self._running_since is not None:
            self.go_on()
        spent_s, self._counted_s = self._spent_s - self._counted_s, self._spent_s
        now_ms = self._quotas.now_ms()
        if self._is_throttled:
            requests.rate.record(spent_s * 100, now_ms)
        else:
            throttle_ms = requests.record(spent_s * 100, now_ms)
            self.throttle(min(throttle_ms, self._quotas.windows.length_ms), REQUEST_PERCENTAGE)
            self._is_throttled = True

    # ------------------------------------------------------------ bytes

    def count_produced(self) -> None:
        """Records the bytes of a produce request."""
        produced = self.client.produced
        if produced is not None:
            self.throttle(produced.record(self.size, self._quotas.now_ms()), PRODUCER_BYTE_RATE)

    def most_fetched(self) -> int | None:
        """Returns the number of bytes above which a fetch is always throttled; None if there is no limit."""
        fetched, windows = self.client.fetched, self._quotas.windows
        if fetched is None:
            return None
        most = fetched.bound * (windows.number - 1) * windows.length_ms / 1000
        return int(most) if most < 2**31 else None  # a quota of NaN has no limit either

    def refuses_fetched(self, size: int) -> bool:
        """Returns whether a response of ``size`` bytes exceeds the quota: it has to be empty, and the client is
        throttled.

        The bytes are recorded only if the response is sent. The time of the request counts here as well.
        """
        self.count_time()
        fetched = self.client.fetched
        if fetched is not None:
            now_ms = self._quotas.now_ms()
            self.throttle(fetched.record(size, now_ms), CONSUMER_BYTE_RATE)
            if self.throttle_ms:
                fetched.rate.record(-size, now_ms)
        return self.throttle_ms > 0

    # ------------------------------------------------------------ changes of the cluster

    def mutations(self, *, is_strict: bool, throttles: bool = True) -> "Mutations | None":
        """Returns the meter of the partitions that the request creates or deletes; None without such a quota.

        :param throttles: whether the client is throttled for its mutations, and for refused ones
        """
        limited = self.client.mutations
        if limited is None:
            return None
        mutations = Mutations(limited, self._quotas, is_strict=is_strict)
        if throttles:
            self._mutations = mutations
        return mutations

    def count_mutations(self) -> None:
        """Throttles the client for the mutations of the request, including refused ones."""
        if self._mutations is not None:
            self.throttle(self._mutations.throttle_ms, CONTROLLER_MUTATION_RATE)

    def throttle(self, throttle_ms: int, kind: str | None = None) -> None:
        """Throttles the client for at least that long.

        :param kind: the quota type; None if another node has recorded the usage
        """
        if kind is not None and throttle_ms > 0:
            self._quotas.throttled[kind] += 1
            self._quotas.throttled_ms[kind] += throttle_ms
        self.throttle_ms = max(self.throttle_ms, throttle_ms)


class Mutations:
    """The partitions that one request creates or deletes, counted while the controller decides (KIP-599).

    :param is_strict: whether a mutation is refused once the quota is used up (``StrictControllerMutationQuota``);
        otherwise it is done, and the client is throttled
    """

    __slots__ = ("_is_strict", "_limited", "_quotas", "_recorded", "_throttled_at_ms", "_throttled_ms")

    def __init__(self, limited: LimitedBucket, quotas: ClientQuotas, *, is_strict: bool) -> None:
        self._limited = limited
        self._quotas = quotas
        self._is_strict = is_strict
        self._recorded = 0
        self._throttled_ms = 0
        self._throttled_at_ms = 0

    def begin(self) -> None:
        """Resets the count, as the controller decides the command from its beginning, possibly again."""
        bucket, bound = self._limited
        if self._recorded:
            bucket.record(-self._recorded, bound, self._quotas.now_ms())
        self._recorded = self._throttled_ms = 0

    def count(self, partitions: int) -> None:
        """Counts partitions that are to be created or deleted.

        :raises ThrottlingQuotaExceeded: the quota is strict, and is used up
        """
        (bucket, bound), now_ms = self._limited, self._quotas.now_ms()
        if self._is_strict and (throttle_ms := bucket.throttle_ms(bound, now_ms)):
            self._throttled_ms, self._throttled_at_ms = throttle_ms, now_ms
            raise ThrottlingQuotaExceeded
        bucket.record(partitions, bound, now_ms)
        self._recorded += partitions
        if not self._is_strict and (throttle_ms := bucket.throttle_ms(bound, now_ms)):
            self._throttled_ms, self._throttled_at_ms = throttle_ms, now_ms

    @property
    def throttle_ms(self) -> int:
        """The throttle time of the client from now on."""
        return max(self._throttled_ms - (self._quotas.now_ms() - self._throttled_at_ms), 0) if self._throttled_ms else 0
