"""The periodic tasks of the active controller: it fences brokers, balances leaders, and writes NoOp records.

Knows nothing of how commands are decided. A single broker needs no periodic tasks, and does not import them. Apache
Kafka's ``PeriodicTaskControlManager`` and the tasks that its ``QuorumController`` registers.
"""

from collections.abc import Callable
from typing import Any

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.controller.commands.nodes import FenceStaleBroker, WriteNoOp
from barnabas.cluster.controller.commands.replicas import BalanceLeaders, ElectUncleanLeaders
from barnabas.cluster.controller.controller import Controller
from barnabas.config.settings import Settings
from barnabas.errors import KafkaError

LATE = 0.1
"""A check that is late by more than this part of a session indicates that the process was suspended: heartbeats of that
time are not read yet, or other processes were suspended, too. Sessions are extended by as much as the check is late."""

SHORTEST_S = 0.001


class PeriodicTasks:
    """The timers of one controller. They end when it is no longer active; :meth:`start` sets them again."""

    def __init__(
        self, controller: Controller, scheduler: Scheduler, clock: Clock, settings: Callable[[], Settings]
    ) -> None:
        self._controller = controller
        self._scheduler = scheduler
        self._clock = clock
        self._settings = settings
        self._timers: dict[str, Timer] = {}
        self._expiry = 0.0  # when the check for expired sessions is due
        self._last_offset = -1

    def start(self) -> None:
        """Sets the timers that are not set."""
        self._watch()
        for name, _, task in self._tasks():
            if name not in self._timers:
                self._wait(name, task)

    def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _tasks(self) -> list[tuple[str, float, Callable[[], object]]]:
        """Returns names, intervals in seconds and functions of the tasks; an interval of 0 disables a task."""
        settings = self._settings()
        balances = settings["leader.imbalance.check.interval.seconds"]
        return [
            ("balance", balances if settings["auto.leader.rebalance.enable"] else 0, self._balance),
            ("elect", settings["unclean.leader.election.interval.ms"] / 1000, self._elect),
            ("no-op", settings["metadata.max.idle.interval.ms"] / 1000, self._write_no_op),
        ]

    def _wait(self, name: str, task: Callable[[], object]) -> None:
        seconds = next(seconds for each, seconds, _ in self._tasks() if each == name)
        self._timers.pop(name, None)
        if seconds > 0:
            self._timers[name] = self._scheduler.call_later(seconds, self._run, name, task)

    def _run(self, name: str, task: Callable[[], object]) -> None:
        if not self._controller.is_active:
            self.stop()
            return
        self._wait(name, task)
        task()

    # ------------------------------------------------------------ expired sessions

    def _watch(self) -> None:
        """Sets a timer to the first expiry of a session."""
        expiry = self._controller.heartbeats.next_expiry
        if expiry is not None and "fence" not in self._timers:
            self._expiry = expiry
            delay = max(expiry - self._clock.monotonic(), SHORTEST_S)
            self._timers["fence"] = self._scheduler.call_later(delay, self._check)

    def _check(self) -> None:
        if not self._controller.is_active:
            self.stop()
            return
        late_s = self._clock.monotonic() - self._expiry
        if late_s > LATE * self._settings()["broker.session.timeout.ms"] / 1000:
            self._controller.heartbeats.extend(late_s)
        self._fence()

    def _fence(self) -> None:
        self._controller.submit(FenceStaleBroker(), self._fenced)

    def _fenced(self, may_be_more: bool | None, error: KafkaError | None) -> None:
        if may_be_more:
            self._fence()
        elif self._timers.pop("fence", None) is not None:
            self._watch()

    # ------------------------------------------------------------ elections

    def _balance(self) -> None:
        self._again(BalanceLeaders())

    def _elect(self) -> None:
        self._again(ElectUncleanLeaders())

    def _again(self, command: Any) -> None:
        """Submits the command again until there is nothing more to do."""

        def done(may_be_more: bool | None, error: KafkaError | None) -> None:
            if may_be_more:
                self._scheduler.call_later(0, self._again, command)

        self._controller.submit(command, done)

    # ------------------------------------------------------------ NoOp records

    def _write_no_op(self) -> None:
        """Writes a record if nothing was written since the last call, so that brokers see that the log advances."""
        if self._controller.next_offset == self._last_offset:
            self._controller.submit(WriteNoOp(), lambda result, error: None)
        self._last_offset = self._controller.next_offset
