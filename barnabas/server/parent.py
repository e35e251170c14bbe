"""Notices the end of the process that has started this one.

Knows nothing of what is done then.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from typing import Final

LOOK_S: Final = 0.5
"""The polling interval where the system cannot notify."""


def when_it_ends(pid: int, loop: asyncio.AbstractEventLoop, ended: Callable[[], object]) -> None:
    """Calls ``ended`` once the process has ended; a zombie counts as ended.

    :raises ProcessLookupError: there is no such process
    :raises OSError: the system has no way to find out
    """
    if sys.platform == "win32":  # where signal 0 is Ctrl-C
        raise OSError("the end of another process cannot be noticed on Windows")
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except (AttributeError, OSError):  # not Linux, or a sandbox
        _ask(pid)
        loop.call_later(LOOK_S, _look, pid, loop, ended)
        return

    def has_ended() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        ended()

    loop.add_reader(descriptor, has_ended)


def _look(pid: int, loop: asyncio.AbstractEventLoop, ended: Callable[[], object]) -> None:
    try:
        _ask(pid)
    except ProcessLookupError:
        ended()
    else:
        loop.call_later(LOOK_S, _look, pid, loop, ended)


def _ask(pid: int) -> None:
    """Checks that the process exists. :raises ProcessLookupError: it does not"""
    with contextlib.suppress(PermissionError):  # it is another user's
        os.kill(pid, 0)
