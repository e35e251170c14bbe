"""A broker for tests with asyncio: ``async with AsyncBroker() as broker``.

Knows nothing of how a broker works. It runs on a thread of its own (:class:`~barnabas.testing.Broker`); methods that
may take long are coroutines, so that they do not block the event loop of the test.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from barnabas.testing.controls import Record
from barnabas.testing.in_process import Broker

if TYPE_CHECKING:
    from barnabas.faults.rules import Rule
    from barnabas.faults.seen import SeenRequest
    from barnabas.testing.faulting import Expected, Faults, OpenConnection
    from barnabas.testing.json_records import NewRecord
    from barnabas.testing.saving import State


class AsyncBroker:
    """A broker in this process. The arguments are those of :class:`~barnabas.testing.Broker`."""

    def __init__(self, configs: Mapping[str, object] | None = None, **options: Any) -> None:
        self.broker = Broker(configs, **options)  #: the same broker, for code that may block

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.broker.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.broker.stop)

    @property
    def bootstrap_servers(self) -> str:
        """The ``bootstrap.servers`` for clients."""
        return self.broker.bootstrap_servers

    def client_settings(self, client: str, **options: Any) -> dict[str, Any]:
        """Returns the settings with which a client connects (:meth:`Broker.client_settings`)."""
        return self.broker.client_settings(client, **options)

    @property
    def faults(self) -> "Faults":
        """The rules by which requests go wrong."""
        return self.broker.faults

    async def wait_for_hits(self, rule: "Rule", hits: int = 1, timeout: float = 10.0) -> None:
        """Returns once a rule has fired that often. :raises TimeoutError: it has not in ``timeout`` seconds"""
        await asyncio.to_thread(rule.wait_for_hits, hits, timeout)

    async def create_topic(self, name: str, **options: Any) -> None:
        """Creates a topic, which can be used when this returns. :raises KafkaError: an error of CreateTopics"""
        await asyncio.to_thread(self.broker.create_topic, name, **options)

    async def configure_group(self, group_id: str, configs: Mapping[str, object]) -> None:
        """Sets configs of a group, which need not exist. :raises InvalidConfig: groups have no such config"""
        await asyncio.to_thread(self.broker.configure_group, group_id, configs)

    async def topics(self) -> list[str]:
        """Returns the names of the topics, without internal ones."""
        return await asyncio.to_thread(self.broker.topics)

    async def records(self, topic: str, *, committed: bool = False) -> list[Record]:
        """Returns all records of a topic by partition and offset; none if it does not exist."""
        return await asyncio.to_thread(self.broker.records, topic, committed=committed)

    async def wait_for_records(self, topic: str, count: int, timeout: float = 10.0) -> list[Record]:
        """Returns the records of a topic once there are so many. :raises TimeoutError: there are not in time"""
        return await asyncio.to_thread(self.broker.wait_for_records, topic, count, timeout)

    async def requests(self, api: str | int | None = None, client_id: str | None = None) -> "list[SeenRequest]":
        """Returns the requests that were recorded since ``broker.record_requests()``."""
        return await asyncio.to_thread(self.broker.requests, api, client_id)

    def expect(
        self, api: str | int | None = None, *, client_id: str | None = None, times: int | None = None
    ) -> "Expected":
        """Returns a context manager that checks how many requests have been received (:meth:`Broker.expect`)."""
        return self.broker.expect(api, client_id=client_id, times=times)

    def record_requests(self) -> None:
        """Records requests from now on."""
        self.broker.record_requests()

    async def connections(self) -> "list[OpenConnection]":
        """Returns the open connections, the oldest first."""
        return await asyncio.to_thread(self.broker.connections)

    async def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Advances the broker's clock (``broker.clock``)."""
        turn: Callable[..., object] = self.broker.clock.advance
        await asyncio.to_thread(turn, seconds=seconds, minutes=minutes, hours=hours, days=days)

    async def at(self, date: str | datetime) -> None:
        """Advances the broker's clock to a date."""
        await asyncio.to_thread(self.broker.clock.at, date)

    def freeze(self) -> None:
        """Freezes the date (``broker.clock``)."""
        self.broker.clock.freeze()

    def go_on(self) -> None:
        """Unfreezes the date, which goes on from its current value."""
        self.broker.clock.go_on()

    @property
    def time_ms(self) -> int:
        """The broker's time in milliseconds since 1970."""
        return self.broker.clock.time_ms

    async def reset(self) -> None:
        """Brings the broker to the state of a new one."""
        await asyncio.to_thread(self.broker.reset)

    async def save(self) -> "State":
        """Returns the state of the broker."""
        return await asyncio.to_thread(self.broker.save)

    async def restore(self, state: "State") -> None:
        """Replaces the state of the broker by a saved one."""
        await asyncio.to_thread(self.broker.restore, state)

    async def seed(
        self, source: "str | Path | Iterable[NewRecord | Mapping[str, Any]]", topic: str | None = None
    ) -> int:
        """Appends records, and creates topics that are missing."""
        return await asyncio.to_thread(self.broker.seed, source, topic)
