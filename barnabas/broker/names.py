"""Looks up the addresses of host names, in a thread, so that the event loop does not wait for a name server.

Knows nothing of what the addresses are for.
"""

import socket
from collections.abc import Callable, Iterable, Mapping

from barnabas.log.background import Background


def address_of(name: str) -> str | None:
    """Returns the first address of a host; None if there is none. It may take seconds."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return str(found[0][4][0]) if found else None


class Names:
    """Looks up names one after the other."""

    def __init__(self, background: Background, address_of: Callable[[str], str | None] = address_of) -> None:
        self._background = background
        self._address_of = address_of

    def look_up(self, names: Iterable[str], done: Callable[[Mapping[str, str | None]], object]) -> None:
        """Calls ``done`` in this thread with the address of each name, or None."""
        found: dict[str, str | None] = dict.fromkeys(names)

        def work() -> None:
            for name in found:
                found[name] = self._address_of(name)

        self._background.run(work, lambda error: done(found))

    def close(self) -> None:
        """Returns when all requested names are looked up."""
        self._background.close()
