"""Ports of 127.0.0.1 for nodes whose addresses are in configs before they start, or that keep them while they are down.

Knows nothing of the nodes.
"""

import contextlib
import fcntl
import functools
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import BinaryIO

PORTS = range(10_000, 15_000)
"""Connections take higher ones (from 32768 on): other tests would have them while a node starts, or is down. The nodes
of ``barnabas cluster`` have those from 15000 on.
"""

CHANCE = random.SystemRandom()
"""A separate source of randomness for each process: pytest gives all workers the same seed."""


def free_port() -> int:
    """Returns a free TCP port. No other call returns it in this process, nor in another one while this process runs.

    :raises OSError: there is none
    """
    for port in CHANCE.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.socket() as probe:
            reserve(port)
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port between {PORTS[0]} and {PORTS[-1]} is free")


def reserve(port: int) -> None:
    """Reserves a port until this process ends. :raises OSError: it is reserved already"""
    if port in reserved():
        raise OSError(f"port {port} is reserved by this process")
    fcntl.lockf(reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    reserved().add(port)


@functools.cache
def reserved() -> set[int]:
    """Returns the ports that this process has reserved: a lock keeps out only other processes."""
    return set()


@functools.cache
def reservations() -> BinaryIO:
    """Returns a file of all test processes of this user. A process locks the byte at the offset of a port's number; the
    system unlocks it at the end of the process, however it ends.
    """
    return (Path(tempfile.gettempdir()) / f"barnabas-test-ports-{os.getuid()}").open("wb")
