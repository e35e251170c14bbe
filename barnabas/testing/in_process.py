"""A broker in this process, on a thread of its own, for the time of a ``with`` block.

Knows nothing of pytest. Several brokers can run at the same time; each has its own port, data and cluster id.
"""

import asyncio
import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from barnabas.clock import SystemClock
from barnabas.cluster.controller import bootstrap
from barnabas.cluster.controller.commands.acls import CreateAcls
from barnabas.cluster.controller.commands.configs import SET, ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.cluster.features import first_levels
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.log.files import DiskFiles, Files, MemoryFiles
from barnabas.security.acls import Acl
from barnabas.server.run import loop_factory
from barnabas.server.server import Server
from barnabas.testing.controls import Controls, Record
from barnabas.testing.security import Security
from barnabas.testing.seeing import Seeing
from barnabas.testing.turning import BrokerClock, TurnedClock

if TYPE_CHECKING:
    from pathlib import Path

    from barnabas.testing.faulting import Faults
    from barnabas.testing.json_records import NewRecord
    from barnabas.testing.saving import State

T = TypeVar("T")

LOOK_S = 0.005
"""The polling interval of waits."""

LONGEST_WAIT_S = 30.0
"""The timeout of calls to the broker's thread."""


class Broker(Seeing):
    """A broker on a free port of 127.0.0.1, which is stopped at the end of the block.

    Configs are Kafka's, as a mapping by name or as keywords with underscores for dots: ``Broker(num_partitions=3)`` is
    ``Broker({"num.partitions": 3})``. Without a config, the development profile of ``barnabas serve --dev`` applies,
    with no initial rebalance delay and a replication factor of 1.

    :param on_disk: whether the data is in a temporary directory, or in ``log.dirs``, instead of in memory
    :param compatible_with: offers the APIs and versions of that Apache Kafka only, such as ``"2.8"``
    :param features: levels of the cluster's features, such as ``{"transaction.version": 1}``; :meth:`reset` restores
        them
    :param files: the file system to write to, such as that of :mod:`barnabas.testing.faults`
    :param tls: whether clients connect by TLS, with certificates that are made for this broker
    :param users: the passwords of the users who may log in, by PLAIN or SCRAM: ``{"alice": "secret"}``
    :param acls: what users may do: ``[allow("alice", "read", topic="orders")]``; without it, there is no authorizer

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
        self.on_fatal: Callable[[str], object] = lambda reason: None  #: called with the reason of a fatal error
        self._cleanup = contextlib.ExitStack()
        self._turned: TurnedClock
        self._server: Server
        self._controls: Controls
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
            self._controls = Controls.of(self._server)
            if self.security.acls:
                self._submit(CreateAcls(self.security.acls))
            self._call(lambda: self._controls.begin(self._loop, self._server.broker.image))
        except BaseException:
            self._end()
            raise

    def _format(self, files: Files, directory: str) -> None:
        """Writes the users' credentials to the beginning of the metadata log of a new cluster."""
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
        assert thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join()
        self._loop.close()
        self._cleanup.close()

    # ------------------------------------------------------------ faults

    @property
    def faults(self) -> "Faults":
        """The rules by which requests go wrong (docs/how-to/faults.md)."""
        return self._controls.faults

    def fault_report(self) -> str:
        """Returns which faults there were since the last reset, a line each. Imports nothing if there was no rule."""
        return self._controls.faults.report() if self._controls.has_faults else ""

    # ------------------------------------------------------------ time

    @property
    def clock(self) -> BrokerClock:
        """The broker's clock, which a test may advance (docs/how-to/turn-the-clock.md). :meth:`reset` sets the date
        back.
        """
        return BrokerClock(self._turned, lambda seconds: self._await(self._controls.advance(seconds)))

    # ------------------------------------------------------------ for tests

    @property
    def port(self) -> int:
        return self._server.listeners[0].port

    @property
    def bootstrap_servers(self) -> str:
        """The ``bootstrap.servers`` for clients: ``127.0.0.1:40321``."""
        return f"127.0.0.1:{self.port}"

    @property
    def admin_url(self) -> str:
        """The URL of the admin API, if ``barnabas.admin.listener`` is set: for the parts of a test in another process.

        :raises RuntimeError: it is not set
        """
        return self._http_url("admin", "barnabas_admin_listener", "admin API")

    @property
    def schema_registry_url(self) -> str:
        """The ``schema.registry.url`` for clients, if ``barnabas.schema.registry.listener`` is set.

        :raises RuntimeError: it is not set
        """
        return self._http_url("schema-registry", "barnabas_schema_registry_listener", "schema registry")

    @property
    def metrics_url(self) -> str:
        """The URL of /metrics and /health, if ``barnabas.metrics.listener`` is set.

        :raises RuntimeError: it is not set
        """
        return self._http_url("metrics", "barnabas_metrics_listener", "metrics")

    def _http_url(self, name: str, config: str, what: str) -> str:
        for service in self._server.http_services:
            if service.name == name:
                return service.url
        raise RuntimeError(f'this broker has no {what}: Broker({config}="127.0.0.1:0")')

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
        given = {key: as_property(value) for key, value in (configs or {}).items()}
        self._await(self._controls.create_topic(name, partitions, given))

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
        return self._call(self._controls.topics)

    def records(self, topic: str, *, committed: bool = False) -> list[Record]:
        """Returns all records of a topic by partition and offset; none if it does not exist.

        :param committed: whether to return what a consumer with ``isolation.level=read_committed`` returns: no records
            of aborted transactions, and no records after the beginning of an open one
        """
        return self._call(lambda: self._controls.records(topic, committed=committed))

    def wait_for_records(self, topic: str, count: int, timeout: float = 10.0) -> list[Record]:
        """Returns the records of a topic once there are that many: for a service under test that sends records by
        itself.

        :raises TimeoutError: there are fewer after ``timeout`` seconds
        """
        end = time.monotonic() + timeout
        while len(found := self.records(topic)) < count:
            if time.monotonic() > end:
                raise TimeoutError(f"{topic} has {len(found)} instead of {count} records after {timeout:g} s")
            time.sleep(LOOK_S)
        return found

    def reset(self) -> None:
        """Brings the broker to the state of a new one: no topics, groups, dynamic configs and quotas, the first ACLs.

        Connections stay.
        """
        self._await(self._controls.reset())

    # ------------------------------------------------------------ saved states, and records from elsewhere

    def save(self) -> "State":
        """Returns the state of the broker, which can be restored any number of times: a costly set-up is made once.

        It has topics, records, groups with their offsets, transactions, configs, ACLs, users and quotas, but not
        faults, the clock and connections. ``state.write(path)`` and ``State.read(path)`` keep it in a file.
        """
        return self._call(self._controls.save)

    def restore(self, state: "State") -> None:
        """Replaces the state of the broker by a saved one. Connections stay."""
        self._await(self._controls.restore(state))

    def seed(self, source: "str | Path | Iterable[NewRecord | Mapping[str, Any]]", topic: str | None = None) -> int:
        """Appends records, and creates topics that are missing. Returns how many there are.

        :param source: a file with a JSON object a line, as ``barnabas consume --json`` and ``barnabas copy`` write it,
            or such objects
        :param topic: of records that name no topic
        :raises ValueError: a line is not a record
        """
        from barnabas.testing.json_records import records_from

        return self._await(self._controls.append(list(records_from(source, topic))))

    # ------------------------------------------------------------ on the broker's thread

    def _submit(self, command: Any) -> Any:
        """Returns the result of a controller command once it is committed. :raises KafkaError: it is refused"""
        return self._await(self._controls.submit(command))

    def _call(self, function: Callable[[], T]) -> T:
        async def on_loop() -> T:
            return function()

        return self._await(on_loop())

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LONGEST_WAIT_S)


def as_property(value: object) -> str:
    """Converts a Python value to its form in server.properties: ``True`` is ``true``, lists have commas."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
