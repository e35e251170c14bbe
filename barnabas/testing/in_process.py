"""A broker in this process, on a thread of its own, for the time of a ``with`` block.

Knows nothing of pytest. Several brokers can run at the same time; each has its own port, data and cluster id.
"""

import asyncio
import contextlib
import functools
import tempfile
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from barnabas.clock import SystemClock
from barnabas.cluster.controller import bootstrap
from barnabas.cluster.controller.commands import (
    SET,
    ConfigChange,
    ConfigResource,
    CreateAcls,
    CreateTopics,
    IncrementalAlterConfigs,
    NewTopic,
)
from barnabas.cluster.features import first_levels
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.errors import KafkaError
from barnabas.log.files import DiskFiles, Files, MemoryFiles
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.record import records_of
from barnabas.security.acls import Acl
from barnabas.server.run import loop_factory
from barnabas.server.server import Server
from barnabas.testing.resetting import AtStart, reset
from barnabas.testing.security import Security
from barnabas.testing.turning import BrokerClock, TurnedClock

if TYPE_CHECKING:
    from barnabas.faults.seen import SeenRequest
    from barnabas.testing.faulting import Expected, Faults, OpenConnection

T = TypeVar("T")

LONGEST_WAIT_S = 30.0
"""The timeout of calls to the broker's thread."""


class Record(NamedTuple):
    """A record as a consumer returns it."""

    topic: str
    partition: int
    offset: int
    timestamp: int  #: milliseconds since 1970
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Broker:
    """A broker on a free port of 127.0.0.1, which is stopped at the end of the block.

    Configs are Kafka's, as a mapping by name or as keywords with underscores for dots: ``Broker(num_partitions=3)`` is
    ``Broker({"num.partitions": 3})``. Without a config, the development profile of ``barnabas serve --dev`` applies,
    with no initial rebalance delay and a replication factor of 1.

    :param on_disk: whether the data is in a temporary directory, or in ``log.dirs``, instead of in memory
    :param compatible_with: offers the APIs and versions of that Apache Kafka only, such as ``"2.8"``
    :param features: levels of the cluster's features, such as ``{"transaction.version": 1}``; :meth:`reset` restores
        them
    :param files: to write to, such as those of :mod:`barnabas.testing.faults`
    :param tls: whether clients connect by TLS, with certificates that are made for this broker
    :param users: the passwords of the users who may log in, by PLAIN or SCRAM: ``{"alice": "secret"}``
    :param acls: what users may do: ``[allow("alice", "read", topic="orders")]``; without it, everybody may do all

    With ``tls`` or ``users``, :meth:`client_settings` returns what a client needs.
    """

    def __init__(
        self,
        configs: Mapping[str, object] | None = None,
        *,
        on_disk: bool = False,
        compatible_with: str | None = None,
        files: Files | None = None,
        features: Mapping[str, int] | None = None,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        acls: Iterable[Acl] | None = None,
        **keywords: object,
    ) -> None:
        self.security = Security(tls=tls, users=users, acls=acls)
        named = {name.replace("_", "."): value for name, value in keywords.items()}
        if compatible_with is not None:
            named["barnabas.compatible.with"] = compatible_with
        self.configs = {name: as_property(value) for name, value in {**(configs or {}), **named}.items()}
        self._on_disk = on_disk
        self._files = files
        self._features = dict(features or {})
        self.on_fatal: Callable[[str], object] = lambda reason: None  #: called with the reason when it cannot continue
        self._cleanup = contextlib.ExitStack()
        self._features_at_start: Mapping[str, int] = {}
        self._faults: Faults | None = None
        self._turned: TurnedClock
        self._server: Server
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------ start and stop

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the broker, and returns when it answers requests.

        :raises ConfigError: a config or the level of a feature is invalid
        """
        first_levels(self._features)
        properties = {"log.dirs": "/barnabas"} | self.security.configs() | self.configs
        turned = TurnedClock()
        files: Files
        if self._on_disk:
            files = DiskFiles()
            if "log.dirs" not in self.configs:
                directory = tempfile.TemporaryDirectory(prefix="barnabas-", ignore_cleanup_errors=True)
                properties["log.dirs"] = self._cleanup.enter_context(directory)
        else:
            files = self._files or MemoryFiles(turned)
        config = BrokerConfig.from_properties(properties, dev=True)
        if self.security.users:
            self._format(files, config.log_dirs[0])
        self._server = Server(
            config,
            files=files,
            on_fatal=lambda reason: self.on_fatal(reason),
            features=self._features,
            clock=turned,
            scheduler=turned,
        )
        self._loop = turned.loop = loop_factory()()
        self._turned = turned
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas", daemon=True)
        self._thread.start()
        try:
            self._await(self._server.start())
            self._features_at_start = self._call(lambda: self._server.broker.image.features)
            if self.security.acls:
                self._submit(CreateAcls(self.security.acls))
        except BaseException:
            self._end()
            raise

    def _format(self, files: Files, directory: str) -> None:
        """Lets the metadata log of a new cluster begin with the users' credentials."""
        path = f"{directory}/{bootstrap.FILE_NAME}"
        if not files.exists(path):
            files.makedirs(directory)
            bootstrap.write(files, path, self._features, self.security.first_records(), SystemClock().time_ms())

    def stop(self) -> None:
        """Stops the broker cleanly; has no effect if it is stopped."""
        if self._thread is not None:
            try:
                self._await(self._server.stop())
            finally:
                self._end()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        self._faults = None
        assert thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()
        self._cleanup.close()

    # ------------------------------------------------------------ faults, and requests seen

    @property
    def faults(self) -> "Faults":
        """The rules by which requests go wrong (docs/how-to/faults.md)."""
        if self._faults is None:
            from barnabas.testing.faulting import Faults

            self._faults = Faults(self._server, self._call, SystemClock(), self._loop, Random(0))
        return self._faults

    def fault_report(self) -> str:
        """Returns which faults there were since the last reset, a line each. Imports nothing if there was no rule."""
        return "" if self._faults is None else self._faults.report()

    def record_requests(self) -> None:
        """Records requests from now on, the last 10000 of them, for :meth:`requests`."""
        self.faults.record()

    def requests(self, api: str | int | None = None, client_id: str | None = None) -> "list[SeenRequest]":
        """Returns the requests of an API and a client that were recorded, with their answers, in their order.

        :raises RuntimeError: nothing is recorded; call :meth:`record_requests` before
        """
        from barnabas.testing.faulting import canonical

        seen = self.faults.watch.seen
        if seen is None:
            raise RuntimeError("no requests are recorded: call record_requests() before the client sends them")
        return list(self._call(lambda: seen.find(canonical(api), client_id)))

    def expect(
        self, api: str | int | None = None, *, client_id: str | None = None, times: int | None = None
    ) -> "Expected":
        """Returns a block at whose end so many requests have been seen within it, or any if no number is given."""
        from barnabas.testing.faulting import Expected

        self.record_requests()
        what = f"of {api or 'any API'}" + (f" by {client_id}" if client_id else "")
        return Expected(lambda: self.requests(api, client_id), what, times)

    def connections(self) -> "list[OpenConnection]":
        """Returns the open connections, the oldest first."""
        return self.faults.connections()

    # ------------------------------------------------------------ time

    @property
    def clock(self) -> BrokerClock:
        """The broker's clock, to be turned (docs/how-to/turn-the-clock.md). :meth:`reset` sets the date back."""
        return BrokerClock(self._turned, lambda seconds: self._await(self._turned.advance(seconds, self._settled)))

    async def _settled(self) -> None:
        """Waits for the work in the background, and for what that leads to."""
        for _ in range(3):
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._server.background.run(lambda: None, partial(_finish, done))
            await done

    # ------------------------------------------------------------ for tests

    @property
    def port(self) -> int:
        return self._server.listeners[0].port

    @property
    def bootstrap_servers(self) -> str:
        """The ``bootstrap.servers`` for clients: ``127.0.0.1:40321``."""
        return f"127.0.0.1:{self.port}"

    def client_settings(
        self, client: str, *, user: str | None = None, mechanism: str = "SCRAM-SHA-512"
    ) -> dict[str, Any]:
        """Returns the settings with which a client connects, addresses and certificates included.

        :param client: ``"kafka-python"``, ``"aiokafka"``, ``"confluent"`` or ``"java"``
        :param user: one of ``users``; on a broker with ``tls`` and without users, the name in the client's certificate
        :param mechanism: ``"PLAIN"``, ``"SCRAM-SHA-256"`` or ``"SCRAM-SHA-512"``
        :raises ValueError: there is no such client, user or mechanism
        """
        return self.security.client_settings(client, self.bootstrap_servers, user, mechanism)

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, object] | None = None) -> None:
        """Creates a topic, which can be used when this returns.

        :raises KafkaError: an error of CreateTopics, such as TopicAlreadyExists
        """
        given = [(key, as_property(value)) for key, value in (configs or {}).items()]
        (created,) = self._submit(CreateTopics([NewTopic(name, partitions, 1, configs=given)]))
        if created.error is not None:
            raise created.error

    def configure_group(self, group_id: str, configs: Mapping[str, object]) -> None:
        """Sets configs of a group, which need not exist: ``{"share.auto.offset.reset": "earliest"}``.

        :raises InvalidConfig: groups have no such config, or the value is invalid
        """
        changes = [ConfigChange(key, SET, as_property(value)) for key, value in configs.items()]
        command = IncrementalAlterConfigs([(ConfigResource(GROUP_RESOURCE, group_id), changes)])
        (altered,) = self._submit(command)
        if altered.error is not None:
            raise altered.error

    def topics(self) -> list[str]:
        """Returns the names of the topics, without internal ones."""
        return self._call(
            lambda: sorted(name for name in self._server.broker.image.topics_by_name if not name.startswith("__"))
        )

    def records(self, topic: str, *, committed: bool = False) -> list[Record]:
        """Returns all records of a topic by partition and offset; none if it does not exist.

        :param committed: whether to return what a consumer with ``isolation.level=read_committed`` returns: no records
            of aborted transactions, and no records after the beginning of an open one
        """
        return self._call(lambda: self._read(topic, committed))

    def reset(self) -> None:
        """Brings the broker to the state of a new one: no topics, groups, dynamic configs and quotas, the first ACLs.

        Connections stay.
        """
        self._turned.set_back()
        if self._faults is not None:
            self._faults.clear()
            self._faults.stop_recording()
        finished: Future[None] = Future()
        done = functools.partial(finished.set_result, None)
        at_start = AtStart(self._features_at_start, self.security.acls or (), self.security.users or ())
        self._call(lambda: reset(self._server.broker, at_start, done))
        finished.result(LONGEST_WAIT_S)

    # ------------------------------------------------------------ on the broker's thread

    def _read(self, topic: str, committed: bool) -> list[Record]:
        found = []
        for (name, index), partition in sorted(self._server.broker.partitions.items()):
            if name != topic:
                continue
            log = partition.log
            for batch in _batches(log, committed):
                found += [
                    Record(topic, index, record.offset, record.timestamp, record.key, record.value, record.headers)
                    for record in records_of(batch)
                    if record.offset >= log.log_start_offset
                ]
        return found

    def _submit(self, command: Any) -> Any:
        """Returns the result of a controller command once it is committed. :raises KafkaError: it is refused"""
        answered: Future[Any] = Future()

        def done(result: Any, error: KafkaError | None) -> None:
            if error is None:
                answered.set_result(result)
            else:
                answered.set_exception(error)

        self._call(lambda: self._server.broker.controller.submit(command, done))
        return answered.result(LONGEST_WAIT_S)

    def _call(self, function: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return function()

        return self._await(on_loop())

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LONGEST_WAIT_S)


def _finish(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    done.set_result(None)


def _batches(log: PartitionLog, committed: bool) -> Iterator[RecordBatch]:
    """Yields the batches of records of clients, or those that a read_committed consumer gets."""
    offset, end = log.log_start_offset, log.last_stable_offset if committed else log.high_watermark
    while offset < end:
        data = log.read(offset, 1 << 20, up_to=end, minimum_one=True)
        aborted = log.aborted_transactions(offset, data) if committed else []
        for batch in batches(memoryview(data)):
            offset = batch.next_offset
            if batch.is_control or (
                batch.is_transactional
                and any(
                    each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset <= each.last_offset
                    for each in aborted
                )
            ):
                continue
            yield batch


def as_property(value: object) -> str:
    """Converts a Python value to its form in server.properties: ``True`` is ``true``, lists have commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
