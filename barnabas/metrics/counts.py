"""The counters of an API, a topic and a client.

Knows nothing of requests, nor of who reads the counters.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Final

from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.traffic import Traffic

BUCKETS: Final = 22
FIRST_BUCKET_S: Final = 0.0001
"""The upper bounds of the buckets: 0.1 ms, and twice as much for each further one. The last bucket has all longer
times.
"""

OTHERS: Final = "(others)"
"""The name under which everything beyond a limit is summed."""


class Times:
    """A histogram of times: number, sum and buckets."""

    __slots__ = ("buckets", "total_s")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total_s = 0.0

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def add(self, took_s: float, weight: int = 1) -> None:
        """Adds a time ``weight`` times."""
        self.total_s += took_s * weight
        bucket = int(took_s / FIRST_BUCKET_S).bit_length()
        self.buckets[bucket if bucket < BUCKETS else BUCKETS - 1] += weight

    def add_all(self, others: "Iterable[Times]") -> "Times":
        """Adds the times of other histograms. Returns this one."""
        for other in others:
            self.total_s += other.total_s
            self.buckets = [count + more for count, more in zip(self.buckets, other.buckets, strict=True)]
        return self

    def quantile(self, part: float) -> float:
        """Returns the quantile in seconds, as the upper bound of its bucket."""
        wanted = part * self.count
        bucket = next(index for index, seen in enumerate(accumulate(self.buckets)) if seen >= wanted)
        return float(FIRST_BUCKET_S * 2**bucket)


class ApiCounts:
    """The requests of one version of an API.

    Every ``stride``-th request is timed, and stands for ``weight`` requests. A request decrements the number of those
    until the next one is timed, and nothing else.

    :param add_left: adds to that number, and returns it. It is a variable of the function that handles the requests: an
        attribute costs twice as much
    """

    __slots__ = (
        "_add_left",
        "_least_stride",
        "at_stride",
        "closed",
        "errors",
        "failed",
        "local",
        "queue",
        "remote",
        "seen_before",
        "send",
        "stood_for",
        "stride",
        "total",
        "weight",
    )

    def __init__(self, add_left: Callable[[int], int]) -> None:
        self._add_left = add_left
        self._least_stride = 1
        self.errors: dict[int, int] = defaultdict(int)  #: error codes in responses, without that of no error
        self.failed = 0  #: requests whose response has an error
        self.closed = 0  #: requests without a response, whose connection was closed
        self.stride = self.weight = 1
        self.at_stride = 0  #: requests that were timed with this stride
        self.stood_for = 0  #: requests up to the last timed one
        self.seen_before = 0  #: requests until the stride was last set
        self.queue = Times()  #: from the last received byte to the handler
        self.local = Times()  #: in the handler
        self.remote = Times()  #: from the handler's return to a later response
        self.send = Times()  #: from the response to the next turn of the loop, which has it written
        self.total = Times()  #: from the handler to the response

    def begin_timed(self, most: int) -> int:
        """Begins to time a request. Returns the number of requests that it stands for.

        The stride doubles after each ``most`` timed requests. So few requests of a burst are timed, also if the API had
        none in the last period.
        """
        weight = self.weight
        self.stood_for += weight
        self.at_stride += 1
        if self.at_stride >= most:
            self.stride *= 2
            self.at_stride = 0
        self.weight = self._add_left(self.stride)
        return weight

    def set_stride(self, timed: int) -> None:
        """Sets the stride so that about so many requests are timed in a period like the last one; all if there are
        fewer. It falls by half at most: clients send in bursts.
        """
        seen = self.requests
        self.stride = self._least_stride = max((seen - self.seen_before) // timed, self._least_stride // 2, 1)
        self.seen_before = seen
        self.at_stride = 0
        beyond = self._add_left(0) - self.stride
        if beyond > 0:
            self.weight -= beyond
            self._add_left(-beyond)

    @property
    def requests(self) -> int:
        return self.stood_for + self.weight - self._add_left(0)


class TopicCounts:
    """The traffic of one topic."""

    __slots__ = ("batches", "bytes_in", "bytes_out", "failed_batches", "failed_fetches", "messages_in")

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = 0
        self.batches = self.failed_batches = self.failed_fetches = 0

    def add(self, partition: Partition, traffic: Traffic) -> None:
        """Adds what was appended to a partition, and sets its counts to 0."""
        traffic.look()
        self.batches += partition.batches
        self.bytes_in += traffic.bytes_in
        self.messages_in += traffic.messages_in
        partition.batches = traffic.bytes_in = traffic.messages_in = 0


class ClientCounts:
    """The traffic of one client id, estimated from the timed requests."""

    __slots__ = ("bytes_in", "bytes_out", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = self.bytes_in = self.bytes_out = 0
        self.seconds = 0.0
