"""The clients of a run: those that each seed has, and groups of some kinds.

Knows nothing of faults. A seed pays only for the clients that it has.
"""

import asyncio
import itertools
from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS, FEATURES, METADATA_VERSION, TRANSACTION_VERSION
from barnabas.errors import KafkaError
from tests.history.checker import judge
from tests.history.records import History, Transform
from tests.simulation import expiring
from tests.simulation.changes import Changer
from tests.simulation.clients import PAUSE_S, Admin, Client, Consumer, Place, Producer, somewhere
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.expiring import Expiring
from tests.simulation.groups import Group, GroupMember, OffsetsClient
from tests.simulation.members import ClassicMember, ConsumerMember, StreamsMember
from tests.simulation.operators import Operator
from tests.simulation.sharing import ShareGroup, ShareMember
from tests.simulation.spare_broker import SpareBroker
from tests.simulation.transactional import TransactionalProducer
from tests.simulation.transforming import Transforms

TOPICS = {"orders": 2, "payments": 1}
TOTALS = {"totals": 1}
CONSUMER, CLASSIC, TRANSFORM, SHARE = "consumer group", "classic group", "transform", "share group"
GROUPS = ((CONSUMER,), (CLASSIC,), (TRANSFORM,), (SHARE,), (CONSUMER, SHARE), (CLASSIC, TRANSFORM))
"""The groups of a seed, one of these."""
SPARE = 0.2
"""The share of seeds in which a broker comes and goes."""
LOWERED = 0.4
"""The share of seeds that begin without eligible leader replicas (KIP-966)."""
LEVELLED = 0.4
"""The share of seeds in which ``transaction.version`` changes."""
OLDER = 0.3
"""The share of transactional producers that know the older generation of the protocol only (before KIP-890)."""
SLOWNESS = (1, 2, 4)
"""How slow producers, consumers and members are: a slow seed costs half as much, and has long silent times."""
GROUP_CONFIGS = 32
"""The resource type of groups."""


class Cast:
    """The clients of a run.

    :param random: the chance of the run, of which each client gets its own
    :param expires: whether there is a topic whose oldest records are deleted
    :param is_of_streams: whether consumer groups are streams groups instead
    :param is_switched: whether protocols of groups are switched off and on
    :param has_operator: whether there is one, who changes the voters of the quorum
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        history: History,
        random: Random,
        *,
        expires: bool,
        is_of_streams: bool,
        is_switched: bool,
        has_operator: bool,
    ) -> None:
        self.cluster, self.history, self.random = cluster, history, random
        self.is_of_streams, self.is_switched, self.has_operator = is_of_streams, is_switched, has_operator
        self.groups = random.choice(GROUPS)
        self.is_lowered = random.random() < LOWERED or not cluster.levels[ELIGIBLE_LEADER_REPLICAS]
        self.is_levelled = random.random() < LEVELLED
        self.topics = TOPICS | (TOTALS if TRANSFORM in self.groups else {})
        self.places: list[Place] = [(topic, index) for topic, count in self.topics.items() for index in range(count)]
        self.clients: list[Client] = []
        self._inputs = [place for place in self.places if place[0] == "orders"]
        self._written = [place for place in self.places if place[0] in TOPICS]
        self._values = itertools.count(1)
        self._transforming: Group | None = None
        self._sharing: ShareGroup | None = None
        self._expiring: Expiring | None = None
        if expires:
            self._expiring = Expiring(cluster, Random(random.getrandbits(64)), self._value)

    def _new(self, kind: Callable[..., Any], name: str, **settings: Any) -> Any:
        """Returns a client with its own chance."""
        return kind(name, self.cluster, self.history, Random(self.random.getrandbits(64)), **settings)

    def _value(self) -> int:
        return next(self._values)

    # ------------------------------------------------------------ the beginning

    async def prepare(self) -> None:
        """Creates the topics."""
        admin = self._new(Admin, "admin")
        await self._as(admin, self._create(admin))

    async def _create(self, admin: Admin) -> None:
        if SHARE in self.groups:  # whoever knows the topics knows that
            await admin.configure(GROUP_CONFIGS, "share", {"share.auto.offset.reset": "earliest"})
        if self.is_lowered and self.cluster.levels[ELIGIBLE_LEADER_REPLICAS]:
            await admin.lower(ELIGIBLE_LEADER_REPLICAS)
        if self.is_levelled:
            await admin.lower(TRANSACTION_VERSION, self.random.choice([0, 1]))
        await admin.create(self.topics, replicas=3, configs={})
        if self._expiring is not None:
            await admin.create({expiring.TOPIC: 1}, replicas=3, configs=self._expiring.configs)

    def start(self) -> None:
        """Starts all clients."""
        for number in range(2):
            self._add(Producer, f"producer-{number}", places=self._inputs, values=self._value)
            near = somewhere(self.cluster, self.random)
            self._add(Consumer, f"consumer-{number}", places=self.places, committed=number == 0, near=near)
        for number in range(2):
            self.clients.append(self._new_transactional(f"transactional-{number}", self._written))
        for kind in self.groups:
            self._add_group(kind)
        self._add(
            Changer, "changer", places=self.places, is_lowered=self.is_lowered, is_levelled=self.is_levelled,
            is_upgraded=self.cluster.levels[METADATA_VERSION] < FEATURES[METADATA_VERSION].last,
            is_switched=self.is_switched, directories=self.cluster.directories,
        )  # fmt: skip
        if self.has_operator:
            self._add(Operator, "operator")
        if self.random.random() < SPARE:
            self._add(SpareBroker, "spare", places=self.places)
        if self._expiring is not None:
            self.clients += self._expiring.clients()
        slowness = self.random.choice(SLOWNESS)
        for client in self.clients:
            if not isinstance(client, Changer | Operator | SpareBroker | expiring.Trimmer):
                client.slowness = slowness
            client.start()

    def _add(self, kind: Callable[..., Any], name: str, **settings: Any) -> None:
        self.clients.append(self._new(kind, name, **settings))

    def _new_transactional(self, name: str, places: list[Place]) -> TransactionalProducer:
        follows = self.random.random() >= OLDER
        return self._new(TransactionalProducer, name, places=places, values=self._value, follows=follows)

    def _add_group(self, kind: str) -> None:
        """Adds two members of a group."""
        if kind == SHARE:
            self._sharing = ShareGroup("share", ["orders"] + [expiring.TOPIC] * (self._expiring is not None))
            for number in range(2):
                self._add(ShareMember, f"sharer-{number}", group=self._sharing)
            return
        is_classic = kind == CLASSIC or (kind == TRANSFORM and self.random.random() < 0.5)
        assigned = StreamsMember if self.is_of_streams else ConsumerMember
        member = ClassicMember if is_classic else assigned
        group = Group("transform" if kind == TRANSFORM else "group", self._inputs)
        for number in range(2):
            if kind == TRANSFORM:
                self._transforming = group
                self._add_transformer(member, number, group)
            else:
                self._add(member, f"member-{number}", group=group)

    def _add_transformer(self, member: type[GroupMember], number: int, group: Group) -> None:
        outputs = [place for place in self.places if place[0] in TOTALS]
        producer = self._new_transactional(f"transformer-{number}", outputs)
        self._add(member, f"transformer-{number}", group=group, job=Transforms(producer, outputs, self._value))

    # ------------------------------------------------------------ the end

    async def conclude(self, seconds: float) -> None:
        """Reads all partitions to their ends, and asks for what the groups have come to."""
        if any(node.clock.has_jumped for node in self.cluster.nodes.values()):
            await self._fence()
        for committed in (True, False):
            reader = self._new(Consumer, f"end-{committed}", places=self.places, committed=committed)
            stuck = await self._as(reader, read_to_end(reader, seconds))
            self.history.stuck |= {f"{place[0]}-{place[1]}": reason for place, reason in stuck.items()}
        if self._expiring is not None:
            await self._read_what_is_left(self._expiring, seconds)
        if self._transforming is not None:
            client = self._new(OffsetsClient, "end-offsets", group=self._transforming)
            try:
                offsets = await self._as(client, client.offsets())
            except KafkaError as error:
                raise AssertionError(f"the offsets of {self._transforming.name} stay unknown: {error!r}") from error
            committed_offsets = {f"{topic}-{index}": offset for (topic, index), offset in offsets.items()}
            outputs = [f"{topic}-{index}" for topic, index in self.places if topic in TOTALS]
            self.history.transforms.append(Transform(list(committed_offsets), outputs, committed_offsets))
        if self._sharing is not None:
            await self._share_to_end(self._sharing, seconds)

    async def _fence(self) -> None:
        """Ends open transactions, as an admin does that fences producers.

        One that began while the clock of its coordinator was an hour ahead times out in an hour, in Apache Kafka, too.
        """
        jobs = [client.job for client in self.clients if isinstance(client, GroupMember)]
        producers = [client for client in self.clients if isinstance(client, TransactionalProducer)]
        for producer in producers + [job.producer for job in jobs if isinstance(job, Transforms)]:
            try:
                await self._as(producer, producer.init())
            except KafkaError as error:
                raise AssertionError(f"{producer.name} cannot be fenced: {error!r}") from error

    async def _read_what_is_left(self, kept: Expiring, seconds: float) -> None:
        """Reads the topic whose oldest records are deleted."""
        for committed in (True, False):
            reader = kept.end_reader(committed=committed)
            stuck = await self._as(reader, read_to_end(reader, seconds))
            if stuck:
                kept.history.stuck[expiring.KEY] = str(stuck)
            else:
                kept.conclude(reader)

    def problems(self) -> list[str]:
        """Returns what the checker says of the observations of all clients."""
        found = [str(anomaly) for anomaly in judge(self.history).anomalies]
        return found if self._expiring is None else found + self._expiring.problems()

    async def _share_to_end(self, group: ShareGroup, seconds: float) -> None:
        """Waits until each record was acquired. :raises AssertionError: no other one is for a long time"""
        wanted: dict[Place, set[int]] = {place: set() for place in self._inputs}
        for _, poll in self.history.polls():
            for key, offset, _ in poll.records:
                topic, _, index = key.rpartition("-")
                if (topic, int(index)) in wanted:
                    wanted[topic, int(index)].add(offset)
        member = self._new(ShareMember, "end-sharer", group=group, is_thorough=True)
        member.start()
        last, count = self.cluster.loop.now, 0
        while missing := {place: left for place, each in wanted.items() if (left := each - group.acquired[place])}:
            if count != (count := sum(map(len, missing.values()))):
                last = self.cluster.loop.now  # a fetch acquires no more than there is in a segment, so it may take long
            if self.cluster.loop.now > last + seconds:
                raise AssertionError(f"{group.name} never gets {missing}")
            if member.task.done():
                await member.task
            await asyncio.sleep(PAUSE_S)
        member.is_stopping = True
        await member.task

    def _as(self, client: Client, work: Any) -> "asyncio.Task[Any]":
        """Runs the work as the client."""
        return self.cluster.loop.create_task(work, context=client.life.context)


async def read_to_end(reader: Consumer, seconds: float) -> dict[Place, str]:
    """Reads all partitions to their ends. Returns the reason for one whose end cannot be reached.

    A fetch returns no more than there is in a segment, so it may take long: it ends if nothing comes for ``seconds``.
    """
    last = reader.loop.now
    for place in reader.positions:
        position = -1
        while not (await reader.read(place) and reader.positions[place] >= reader.ends[place]):
            if position != (position := reader.positions[place]):
                last = reader.loop.now
            if reader.loop.now > last + seconds:
                return {place: f"at {position} of {reader.ends.get(place)} for {seconds} s"}
    return {}
