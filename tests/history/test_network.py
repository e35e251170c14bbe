"""A network of namespaces drops exactly the packets of a fault."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat_tests import network
from compat_tests.network import APART, CALLER, Network

ROOT = Path(__file__).parent.parent.parent
PORT = 7777

RELAY = f"""
import socket, sys
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.bind((sys.argv[1], {PORT}))
print("bound", flush=True)
while True:
    target, _, rest = own.recv(100).partition(b" ")
    own.sendto(rest, (target.decode(), {PORT}))
"""
"""A datagram has the remaining hosts of its route."""


class Post:
    """The caller's socket."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((Network.host(CALLER), PORT))
        self.socket.settimeout(0.2)

    def arrives(self, sender: int, receiver: int, within_s: float) -> bool:
        """Returns whether a datagram arrives from one node at another, and then at the caller."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            self.socket.sendto(
                f"{Network.host(receiver)} {Network.host(CALLER)}".encode(), (Network.host(sender), PORT)
            )
            with contextlib.suppress(TimeoutError):
                if self.socket.recvfrom(100)[1][0] == Network.host(receiver):
                    return True
        return False

    def takes_s(self, sender: int, receiver: int) -> float:
        """Returns the shortest time of a few datagrams from one node to another, and then to the caller."""
        times = []
        for _ in range(5):
            began = time.monotonic()
            assert self.arrives(sender, receiver, within_s=10)
            times.append(time.monotonic() - began)
        return min(times)

    def expect(self, lost: set[tuple[int, int]]) -> None:
        """Checks that only the lost packets do not arrive."""
        for pair in ((one, other) for one in (1, 2, 3) for other in (1, 2, 3) if one != other):
            assert self.arrives(*pair, within_s=0.2 if pair in lost else 10) == (pair not in lost), pair


def check() -> None:
    """Runs in its own network namespace."""
    with Network([1, 2, 3]) as net:
        nodes = [
            subprocess.Popen(
                [*net.command(node), sys.executable, "-c", RELAY, net.host(node)], stdout=subprocess.PIPE, text=True
            )
            for node in net.nodes
        ]
        try:
            for node in nodes:
                assert node.stdout is not None
                assert node.stdout.readline() == "bound\n"
            post = Post()
            post.expect(set())
            net.lose(1, [2])
            post.expect({(1, 2)})
            net.lose(3, [CALLER])
            post.expect({(1, 2), (1, 3), (2, 3)})
            net.heal()
            net.isolate(2)
            post.expect({(1, 2), (2, 1), (2, 3), (3, 2)})
            net.heal()
            post.expect(set())
            if network.can_delay():
                net.slow(1)
                assert post.takes_s(1, 2) > 0.04
                net.heal()
                assert post.takes_s(1, 2) < 0.04
        finally:
            for node in nodes:
                node.kill()
                node.wait()


def test_it_loses_what_it_is_told_to_lose() -> None:
    if not network.is_possible():
        pytest.skip("network namespaces cannot be made here")
    ran = subprocess.run(
        [*APART, sys.executable, "-c", "from tests.history.test_network import check; check()"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
