"""Builds short histories, for tests of the checker."""

from itertools import count

from tests.history.records import FAIL, INFO, OK, POLL, SEND, TRANSACTION, History, Operation, Poll, Send


class Story:
    """A history that is built operation by operation. Each takes a second, and requests its commit at its end."""

    def __init__(self):
        self.operations = []
        self.stuck = {}
        self.transforms = []
        self.clock = count()

    def send(self, *sends, process="p", outcome=OK):
        """Adds sends (key, value, offset), whose offset is None if it was not acknowledged."""
        return self._add(SEND, process, outcome, sends, ())

    def transaction(self, *sends, polls=(), process="p", outcome=OK, commits=True):
        return self._add(TRANSACTION, process, outcome, sends, polls, commits=commits and outcome != FAIL)

    def poll(self, *records, reader="r", committed=True, moved=""):
        return self._add(POLL, reader, OK, (), [(records, reader, committed, moved)])

    def polls(self, *polls, reader="r", committed=True):
        """Adds several polls in one operation."""
        return self._add(POLL, reader, OK, (), [(records, reader, committed, "") for records in polls])

    def _add(self, kind, process, outcome, sends, polls, *, commits=False):
        start = next(self.clock)
        made = [
            Poll(reader, committed, list(records), start + 0.5, moved) for records, reader, committed, moved in polls
        ]
        operation = Operation(process, kind, outcome, start=start, end=start + 1, producer=process, polls=made)
        operation.sends = [Send(*send) for send in sends]
        operation.commit_at = start + 0.9 if commits else None
        self.operations.append(operation)
        return operation

    def history(self):
        return History(list(self.operations), stuck=self.stuck, transforms=self.transforms)


__all__ = ["FAIL", "INFO", "OK", "Story"]
