"""The fetchers of a broker: each follows one leader over one connection, for a part of the partitions.

Knows nothing of the records, nor of the metadata. Apache Kafka's ``ReplicaFetcherManager``.
"""

import logging
from typing import Any, NamedTuple, Protocol

from barnabas.broker.lifecycle import Lifecycle
from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.replication.fetch_session_handler import Key
from barnabas.cluster.replication.fetcher import Fetcher, FetchSettings
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.throttle import ReplicationThrottle, is_throttled
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError, KafkaStorageError
from barnabas.groups.java_hash import hash_code
from barnabas.log_limit import LogLimit
from barnabas.peers.peers import Peers
from barnabas.security.quotas.rates import Windows
from barnabas.wire.message import Request

logger = logging.getLogger(__name__)

BYTES_A_TURN = 1 << 20
"""About how many bytes are appended in one turn of the event loop."""


class FollowingNode(Protocol):
    """The broker whose fetchers these are."""

    @property
    def node_id(self) -> int: ...

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def cluster_clock(self) -> Clock: ...

    @property
    def cluster_scheduler(self) -> Scheduler: ...

    @property
    def peers(self) -> Peers: ...

    @property
    def lifecycle(self) -> Lifecycle: ...


def fetcher_id(topic: str, index: int, fetchers: int) -> int:
    """Returns the number of the fetcher that fetches a partition (``AbstractFetcherManager.getFetcherId``).

    >>> fetcher_id("orders", 3, 4)
    0
    """
    code = (31 * hash_code(topic) + index) & 0xFFFFFFFF
    code -= (code & 0x80000000) << 1
    return 0 if code == -(1 << 31) else abs(code) % fetchers


class Followed(NamedTuple):
    """A partition, and the leader that it follows in an epoch."""

    partition: Partition
    leader: int
    leader_epoch: int
    running: "Running"


class ReplicaFetchers:
    """The fetchers, by leader and number. A fetcher without partitions is kept."""

    def __init__(self, broker: FollowingNode) -> None:
        self._broker = broker
        self._fetchers: dict[tuple[int, int], Running] = {}
        self._followed: dict[Key, Followed] = {}  # also those that a fetcher has given up, until the next epoch
        config = broker.config
        self._number = config["num.replica.fetchers"]
        self._throttle = ReplicationThrottle(
            lambda: broker.config["follower.replication.throttled.rate"],
            Windows(config["replication.quota.window.num"], config["replication.quota.window.size.seconds"] * 1000),
        )

    def follow(self, partition: Partition) -> None:
        """Fetches a partition from the leader of its image, unless it does so already in that leader epoch."""
        key, image = (partition.topic_id, partition.index), partition.image
        known = self._followed.get(key)
        if known is not None and known[:3] == (partition, image.leader, image.leader_epoch):
            return
        self.stop(partition)
        self._start(key, partition, image.leader)

    def _start(self, key: Key, partition: Partition, leader: int) -> None:
        number = fetcher_id(partition.topic, partition.index, self._number)
        running = self._fetchers.get((leader, number))
        if running is None:
            running = self._fetchers[leader, number] = Running(self._broker, self._throttle, leader, number)
        self._followed[key] = Followed(partition, leader, partition.leader_epoch, running)
        try:
            running.fetcher.add(partition, is_throttled=self._is_throttled(partition))
        except KafkaStorageError as error:
            logger.error("%s-%d follows no leader: %s", partition.topic, partition.index, error)
        else:
            running.run_soon()

    def _is_throttled(self, partition: Partition) -> bool:
        replicas = partition.log.config.follower_replication_throttled_replicas
        return is_throttled(replicas, partition.index, self._broker.node_id)

    def reconfigured(self, partition: Partition) -> None:
        """Applies the changed configs of the topic."""
        key = partition.topic_id, partition.index
        known = self._followed.get(key)
        if known is not None:
            known.running.fetcher.set_throttled(key, is_throttled=self._is_throttled(partition))

    def stop(self, partition: Partition) -> None:
        """Stops fetching a partition."""
        key = partition.topic_id, partition.index
        known = self._followed.pop(key, None)
        if known is not None:
            known.running.fetcher.remove(key)

    def resize(self) -> None:
        """Distributes the partitions over another number of fetchers, if ``num.replica.fetchers`` has changed."""
        number = self._broker.config["num.replica.fetchers"]
        if number == self._number:
            return
        self._number = number
        for key, known in list(self._followed.items()):
            known.running.fetcher.remove(key)
            self._start(key, known.partition, known.leader)

    def registered(self) -> None:
        """Starts all fetchers: the broker has an epoch now.

        Without one, the leader would take the fetches for those of the incarnation that is registered still, and the
        broker would be in the ISR until the controller fences that one (KIP-903).
        """
        for running in self._fetchers.values():
            running.run_soon()

    def close(self) -> None:
        """Stops all fetchers."""
        for running in self._fetchers.values():
            running.close()
        self._fetchers.clear()
        self._followed.clear()


class Running:
    """One fetcher with its connection and its timer."""

    def __init__(self, broker: FollowingNode, throttle: ReplicationThrottle, leader: int, number: int) -> None:
        self._broker = broker
        self._leader = leader
        self._lane = f"fetcher-{number}"
        self._is_sending = False
        self._is_closed = False
        self._is_soon = False
        self._timer: Timer | None = None
        self._log_limit = LogLimit(broker.cluster_clock)
        self.fetcher = Fetcher(broker.node_id, lambda: broker.lifecycle.epoch, self._settings, throttle)

    def _settings(self) -> FetchSettings:
        config = self._broker.config
        return FetchSettings(
            config["replica.fetch.wait.max.ms"],
            config["replica.fetch.min.bytes"],
            config["replica.fetch.response.max.bytes"],
            config["replica.fetch.max.bytes"],
            config["replica.fetch.backoff.ms"] / 1000,
        )

    def run_soon(self) -> None:
        """Sends the next request in the next turn of the loop, when all changes of the metadata have been applied."""
        if not self._is_sending and not self._is_soon:
            self._call_later(0)
            self._is_soon = True

    def close(self) -> None:
        """Stops sending, and ignores the response to the request in flight."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _call_later(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._broker.cluster_scheduler.call_later(seconds, self._run)

    def _run(self) -> None:
        """Appends the fetched records, a part in each turn of the loop, and then sends the next request."""
        self._timer, self._is_soon = None, False
        if self._is_closed or self._is_sending or self._broker.lifecycle.epoch < 0:
            return
        clock, fetcher = self._broker.cluster_clock, self.fetcher
        now = clock.monotonic()
        if fetcher.work(BYTES_A_TURN, now, clock.time_ms()):
            self._call_later(0)
            return
        request = fetcher.next_request(now, clock.time_ms())
        if request is not None:
            self._send(request)
            return
        at = fetcher.wakes_at()
        if at is not None and at > now:
            self._call_later(at - now)

    def _send(self, request: Request) -> None:
        self._is_sending = True
        self._broker.peers.send(
            self._leader,
            request,
            self._answered,
            lane=self._lane,
            timeout_ms=self._broker.config["replica.socket.timeout.ms"],
        )

    def _answered(self, response: Any, error: KafkaError | None) -> None:
        self._is_sending = False
        if self._is_closed:
            return
        clock = self._broker.cluster_clock
        if error is not None:
            if self._log_limit.is_due(error):
                logger.warning("Cannot fetch from broker %d: %s", self._leader, error or type(error).__name__)
            self.fetcher.failed(clock.monotonic())
        else:
            self.fetcher.answered(response, clock.monotonic(), clock.time_ms())
        self._call_later(0)
