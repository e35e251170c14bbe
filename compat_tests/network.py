"""A network in the kernel: a namespace for each node, joined by a bridge that can drop packets silently.

Knows nothing of what the nodes are. The caller must be in its own network namespace (``unshare --net``), which gets the
bridge: nothing is visible outside, and everything ends with its processes.
"""

import subprocess
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Self

SUBNET = "10.77.0"
CALLER = 254  #: the last number of the caller's address; a node's is its id
NOBODY = "02:00:00:00:00:ff"  #: the bridge floods frames for this address, and no node accepts them
#: Without its own address a bridge uses the lowest of its devices', and nodes go on sending to an earlier one.
BRIDGE = "02:00:00:00:00:fe"
PATIENCE_S = 10.0

#: Runs a command in new namespaces, in which it has the rights that the network needs.
APART = ("unshare", "--user", "--map-root-user", "--net")


def is_possible() -> bool:
    """Returns whether this machine allows such a network: namespaces, ``ip``, bridges and pairs of devices."""
    words = (
        "ip link add br0 type bridge && ip link add v1 type veth peer name v2 && "
        "unshare --net true && nsenter --net=/proc/self/ns/net true"
    )
    try:
        return subprocess.run([*APART, "sh", "-c", words], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def can_delay() -> bool:
    """Returns whether the kernel can delay packets (netem), in the caller's namespace."""
    try:
        made = subprocess.run(
            ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], capture_output=True, check=False
        )
    except FileNotFoundError:
        return False
    if made.returncode == 0:
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=True)
    return made.returncode == 0


class Network:
    """The namespaces of nodes, by id; a context manager."""

    def __init__(self, nodes: Iterable[int]) -> None:
        self.nodes = list(nodes)
        self._holders: dict[int, subprocess.Popen[bytes]] = {}
        self._slow: set[int] = set()

    @staticmethod
    def host(node: int) -> str:
        return f"{SUBNET}.{node}"

    def command(self, node: int) -> tuple[str, ...]:
        """Returns the prefix of a command that runs at a node."""
        return ("nsenter", f"--net={self._namespace(node)}", "--")

    def __enter__(self) -> Self:
        try:
            _ip("link set lo up")
            _ip(f"link add br0 address {BRIDGE} type bridge")
            _ip(f"addr add {SUBNET}.{CALLER}/24 dev br0")
            _ip("link set br0 up")
            for node in self.nodes:
                self._add(node)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Holds a namespace open: it ends with the last of its processes, and its holder with the caller."""
        for holder in self._holders.values():
            holder.kill()
            holder.wait()
        _ip("link del br0")

    def _add(self, node: int) -> None:
        holder = self._holders[node] = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        own, end = Path("/proc/self/ns/net").readlink(), time.monotonic() + PATIENCE_S
        while self._namespace(node).readlink() == own:
            assert time.monotonic() < end, "no network namespace"
            time.sleep(0.005)
        _ip(f"link add v{node} type veth peer name eth0 netns {holder.pid}")
        _ip(f"link set v{node} master br0 up")
        for words in ("link set lo up", f"addr add {self.host(node)}/24 dev eth0", "link set eth0 up"):
            _ip(words, self.command(node))

    def _namespace(self, node: int) -> Path:
        return Path(f"/proc/{self._holders[node].pid}/ns/net")

    # ------------------------------------------------------------ faults

    def isolate(self, node: int) -> None:
        """Drops every packet from and to a node, those of clients included."""
        _ip(f"link set v{node} nomaster")

    def lose(self, sender: int, receivers: Collection[int]) -> None:
        """Drops every packet from a node to others, or to the caller. Those of the other direction arrive."""
        for receiver in receivers:
            address = self.host(receiver)
            _ip(f"neigh replace {address} lladdr {NOBODY} nud permanent dev eth0", self.command(sender))

    def slow(self, node: int) -> None:
        """Delays the packets that a node sends, by 100 ms more or less, and loses one in twenty."""
        _run("tc", "qdisc replace dev eth0 root netem delay 100ms 50ms loss 5%", self.command(node))
        self._slow.add(node)

    def heal(self) -> None:
        """Drops and delays nothing any more."""
        for node in self._slow:
            _run("tc", "qdisc del dev eth0 root", self.command(node))
        self._slow.clear()
        for node in self.nodes:
            _ip(f"link set v{node} master br0")
            _ip("neigh flush nud permanent dev eth0", self.command(node))


def _ip(words: str, where: tuple[str, ...] = ()) -> None:
    _run("ip", words, where)


def _run(program: str, words: str, where: tuple[str, ...]) -> None:
    ran = subprocess.run([*where, program, *words.split()], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{program} {words}: {ran.stderr}"
