"""The plan of a run, from one seed: the clients, the steps of each, and the faults.

Only draws random numbers. The same seed gives the same plan; the progress of each process depends on the machine.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from tests.history.clients import NEWER

TOPICS = {"ledger": 3, "journal": 2, "inputs": 3, "outputs": 3, "inputs-alone": 2, "outputs-alone": 2}
"""Topics and their partition counts. Only transformers write the outputs."""

KEYS = [f"{topic}-{partition}" for topic, count in TOPICS.items() for partition in range(count)]
WRITABLE = [key for key in KEYS if not key.startswith("outputs")]

IDENTITIES = tuple(f"identity-{number}" for number in range(6))
IDENTITIES_OF_2 = tuple(f"identity-of-2-{number}" for number in range(3))
"""The transactional ids that clients of transactions version 2 (KIP-890) share with each other only.

After an abort by a client of version 1, which leaves the epoch, a producer of version 2 with the epoch before may
repeat its last EndTxn, and is given the same one. Apache Kafka gives two producers one epoch, too (histories.md).
"""

COMMIT, ABORT, CRASH = "commit", "abort", "crash"
LOSS = (0.5, 6.0)
PAUSES = {
    "kill": (0.0, 1.0), "restart": (0.0, 0.3), "pause": (0.5, 4.5), "late": (3.2, 5.0), "silence": (0.5, 4.0),
    "isolate": LOSS, "mute": LOSS, "deafen": LOSS, "part": LOSS, "slow": LOSS, "skew": LOSS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Worker:
    """A process: its client, ``reads`` its inputs, ``writes`` its outputs, ``group`` its group, which may be shared."""

    name: str
    client: str
    reads: str = ""
    writes: str = ""
    group: str = ""

    @property
    def transforms(self) -> bool:
        return bool(self.reads)

    @property
    def identities(self) -> tuple[str, ...]:
        """The transactional ids that it uses by turns; only those of transformers are nobody else's."""
        if self.transforms:
            return (f"of-{self.name}",)
        return IDENTITIES_OF_2 if self.client == "raw-v2" else IDENTITIES


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for ``seconds``, after ``wait_s`` without faults: see faults.py."""

    kind: str
    wait_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """The next operation of a worker, with its details.

    ``back``: how far before the last known record of a partition to start, 0 for its end.
    """

    kind: str
    keys: tuple[str, ...] = ()
    polls: int = 0
    end: str = COMMIT
    offsets: bool = False
    committed: bool = True
    back: int = 0
    identity: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float
    level: int
    workers: tuple[Worker, ...]
    faults: tuple[Fault, ...] = field(default=())
    late_of_old: bool = True
    """Whether requests may be late that cannot be distinguished from those of the next transaction."""

    def plain(self) -> dict[str, Any]:
        return asdict(self)


WEIGHTS = {"kill": 6, "restart": 2, "cut": 4, "delay": 3, "silence": 2, "late": 3, "pause": 2}
OF_NETWORKS = {"isolate": 4, "mute": 3, "deafen": 3, "part": 3}  #: faults only between nodes
OF_DELAYS = {"slow": 3}  #: where packets can be delayed
OF_CLOCKS = {"skew": 3}  #: where clocks can be set


def plan(
    seed: int,
    seconds: float,
    level: int,
    *,
    without: frozenset[str] = frozenset(),
    late_of_old: bool = True,
    consumer_protocol: bool = False,
    networked: bool = False,
    delayed: bool = False,
    skewed: bool = False,
    spares_librdkafka: bool = False,
) -> Plan:
    """Returns the plan for this time, at a level of transaction.version, without some kinds of faults.

    :param networked: whether packets between nodes can be lost
    :param delayed: whether they can be delayed, too
    :param skewed: whether clocks of nodes can be set
    :param spares_librdkafka: whether its processes use other clients. A failed assertion in its transactions ends the
        whole run sooner or later

    With ``consumer_protocol`` all but one of librdkafka's processes use this protocol in their groups, one of which
    they share with a process that does not.
    """
    raw = f"raw-v{level}"
    newer = NEWER if consumer_protocol else "confluent-kafka"
    clients = [newer, newer, "confluent-kafka", "kafka-python", "aiokafka", raw, raw]
    members = [newer, newer, "kafka-python"]
    if spares_librdkafka:
        # aiokafka cannot transform: it commits offsets without the group's generation, and does not rewind.
        clients[:3], members[:2] = ["aiokafka", "kafka-python", "aiokafka"], ["kafka-python", "kafka-python"]
    workers = [Worker(f"{number}-{name}", name) for number, name in enumerate(clients)]
    for number, name in enumerate(members):
        workers.append(Worker(f"t{number}-{name}", name, "inputs", "outputs", "transformers"))
    workers.append(Worker(f"t3-{raw}", raw, "inputs-alone", "outputs-alone", "transformer-alone"))
    weights = WEIGHTS | (OF_NETWORKS if networked else {})
    weights |= (OF_DELAYS if networked and delayed else {}) | (OF_CLOCKS if skewed else {})
    weights = {kind: weight for kind, weight in weights.items() if kind not in without}
    faults = tuple(_faults(Random(f"{seed}/faults"), seconds, weights))
    return Plan(seed, seconds, level, tuple(workers), faults, late_of_old)


def _faults(random: Random, seconds: float, weights: Mapping[str, int]) -> Iterator[Fault]:
    """Yields faults until the time is over: first one of each kind, a kill before the others."""
    first = sorted(weights, key=lambda kind: (kind != "kill", random.random()))
    spent = 0.0
    while weights:
        kind = first.pop(0) if first else random.choices(list(weights), list(weights.values()))[0]
        wait_s = round(random.uniform(0.5, 4.0), 2)
        lasts = round(random.uniform(*PAUSES.get(kind, (0.2, 3.0))), 2)
        spent += wait_s + lasts
        if spent > seconds:
            return
        yield Fault(kind, wait_s, lasts)


def steps(seed: int, worker: Worker) -> Iterator[Step]:
    """Yields the steps of a worker without end."""
    random = Random(f"{seed}/{worker.name}")
    follow = _transforming if worker.transforms else _mixed
    while True:
        yield follow(random, len(worker.identities))


def _transforming(random: Random, _: int) -> Step:
    lot = random.random()
    end = COMMIT if lot < 0.8 else ABORT if lot < 0.92 else CRASH
    return Step("transform", polls=random.randint(1, 2), end=end)


def _mixed(random: Random, identities: int) -> Step:
    lot = random.random()
    if lot < 0.25:
        return Step("send", tuple(random.choices(WRITABLE, k=random.randint(1, 4))))
    if lot < 0.45:
        return Step("poll", polls=random.randint(1, 3))
    if lot < 0.86:
        return _transaction(random)
    if lot < 0.92:
        keys = tuple(random.sample(KEYS, random.randint(1, 6)))
        return Step("assign", keys, back=random.choice((0, 20, 200)))
    if lot < 0.95:
        topics = ("ledger", "journal", "inputs", "outputs")
        return Step("subscribe", tuple(random.sample(topics, random.randint(1, 3))))
    if lot < 0.97:
        return Step("reopen", committed=random.random() < 0.65)
    return Step("take_over", identity=random.randrange(identities))


def _transaction(random: Random) -> Step:
    """Returns sends and polls in random order; "" denotes a poll."""
    lot = random.random()
    end = COMMIT if lot < 0.75 else ABORT if lot < 0.92 else CRASH
    keys = tuple(random.choice(WRITABLE) if random.random() < 0.75 else "" for _ in range(random.randint(1, 8)))
    return Step("transaction", keys, end=end, offsets=random.random() < 0.4)
