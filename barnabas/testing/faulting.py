"""Faults and recorded requests of a broker in this process, for the thread of the test.

Knows nothing of how rules are applied: the broker's own thread does that (:mod:`barnabas.server.faulty`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas.clock import Clock, Scheduler
from barnabas.faults.naming import api_name, find_api
from barnabas.faults.rules import Rule, Rules
from barnabas.faults.scenarios import Scenarios
from barnabas.faults.script import rules_of
from barnabas.faults.seen import KEPT, Seen, SeenRequest
from barnabas.faults.subjects import TopicName
from barnabas.server.connection import Connection
from barnabas.server.faulty import Watch, Watched

Call = Callable[[Callable[[], Any]], Any]
"""Calls a function in the broker's thread, and returns what it returns."""


class OpenConnection(NamedTuple):
    """A connection of a client."""

    number: int
    host: str
    port: int
    principal: str
    client_software_name: str
    client_software_version: str
    node: int | None  #: the id of the broker


class Faults(Scenarios):
    """The rules of a broker. Each scenario of :mod:`barnabas.faults.scenarios` is a method.

    :param rules: makes the rules; its argument is called after each change
    :param call: calls a function in the broker's thread
    :param node_of: returns the id of the broker that a connection leads to
    """

    def __init__(
        self,
        rules: Callable[[Callable[[], object]], Rules],
        listeners: Iterable[Watched],
        topic_name: TopicName,
        call: Call,
        clock: Clock,
        scheduler: Scheduler,
        node_of: Callable[[Connection], int | None],
    ) -> None:
        self._listeners, self._call = listeners, call
        self._rules = rules(lambda: call(self.watch.update))
        self.watch = Watch(self._rules, listeners, clock, scheduler, topic_name, node_of)

    def add(self, **rule: Any) -> Rule:
        """Sets a rule, which is in force when this returns.

        :raises ImpossibleRule: it can never match, or does nothing; the text says what would be right
        """
        return self._rules.add(**rule)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that have not been removed."""
        return self._rules.all

    def script(self, text: str) -> list[Rule]:
        """Sets the rules of a text, a line each. :raises ImpossibleRule: none is set then"""
        made = rules_of(text, self._rules.possible)
        self._rules.set(*made)
        return made

    def seed(self, seed: int) -> None:
        """Seeds the random numbers of ``probability`` anew."""
        self._rules.random.seed(seed)

    def clear(self) -> None:
        """Removes all rules, and clears the report."""
        self._rules.clear()

    def report(self) -> str:
        """Returns which rule fired when, a line each."""
        return self._rules.report()

    # ------------------------------------------------------------ seeing

    @property
    def seen(self) -> Seen | None:
        """The requests that were recorded; None while they are not."""
        return self.watch.seen

    def record(self) -> Seen:
        """Starts recording requests, unless they are recorded already. Returns the record of them."""
        if self.watch.seen is None:
            self.watch.seen = Seen()
            self._call(self.watch.update)
        return self.watch.seen

    def stop_recording(self) -> None:
        if self.watch.seen is not None:
            self.watch.seen = None
            self._call(self.watch.update)

    def connections(self) -> list[OpenConnection]:
        return list(self._call(partial(open_connections, self._listeners, self.watch.node_of)))


class Expected:
    """What :meth:`Broker.expect` returns: at the end of the block the requests are counted."""

    def __init__(
        self,
        recorded: Callable[[], Seen],
        call: Call,
        api: str | None,
        client_id: str | None,
        node: int | None,
        times: int | None,
    ) -> None:
        self._recorded, self._call = recorded, call
        self._api, self._client_id, self._node, self._times = api, client_id, node, times
        self._before = 0
        self.requests: Sequence[SeenRequest] = ()  #: those within the block, at its end

    def __enter__(self) -> Self:
        self._before = self._recorded().count
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        seen = self._recorded()
        self.requests = self._call(lambda: seen.find(self._api, self._client_id, self._node, after=self._before))
        if kind is None:
            what = f"of {self._api or 'any API'}" + (f" by {self._client_id}" if self._client_id else "")
            what += "" if self._node is None else f" to broker {self._node}"
            found, times, came = len(self.requests), self._times, seen.count - self._before
            assert times is None or seen.first <= self._before + 1, (
                f"{came} requests came, and only the last {KEPT} are kept: how many were {what} is not known"
            )
            assert found == times if times is not None else found, (
                f"{found} instead of {'some' if times is None else times} requests {what}: {self.requests}"
            )


def canonical(api: str | int | None) -> str | None:
    """Returns an API's name as it is recorded. :raises ImpossibleRule: there is none"""
    return None if api is None else api_name(find_api(api).key)


def open_connections(listeners: Iterable[Watched], node_of: Callable[[Connection], int | None]) -> list[OpenConnection]:
    """Returns the connections of all listeners, the oldest first. To be called in the broker's thread."""
    found = []
    for listener in listeners:
        for guest in listener.connections:
            if isinstance(guest, Connection):
                session = guest.session
                software = session.client_software_name, session.client_software_version
                principal, node = str(session.principal), node_of(guest)
                found.append(OpenConnection(session.number, *guest.peer, principal, *software, node))
    return sorted(found)
