"""A topic whose oldest records are deleted, by retention or on request, and its clients.

Knows nothing of faults. Their observations are a history of their own, since what is deleted is not lost.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.errors import KafkaError, OffsetOutOfRange
from barnabas.records.batch import batches
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from tests.history.anomaly import Anomaly
from tests.history.checker import judge
from tests.history.records import BEFORE, OK, History, Operation
from tests.simulation.clients import REQUEST_MS, Client, Consumer, Place, Producer, check, somewhere
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.transactional import TransactionalProducer

TOPIC = "events"
PLACE: Place = (TOPIC, 0)
KEY = f"{TOPIC}-0"
LATEST, EARLIEST = -1, -2
"""The timestamps that stand for the end and the start of a log in ListOffsets."""
RATE_S = 1.0
TRIMMED = 0.5
"""The share of topics with retention from which records are deleted on request, too."""
OF_DELETION = frozenset({
    "lost-write", "unseen", "torn-transaction", "poll-skip", "internal-poll-skip", "duplicate", "circular-reads",
})  # fmt: skip
"""The anomalies that deletion explains. A replica that begins anew at a later offset does not know the producers of
earlier records, so that it takes a retry for a new batch, as Apache Kafka's does."""
PAST_OPEN = "past-open-transaction"


def configs_of(chance: Random) -> dict[str, str]:
    """Returns the configs of the topic: retention by time or by size, or records that are deleted on request only."""
    found = {"segment.ms": str(chance.choice([300, 1000]))}
    kept = chance.choice(["retention.ms", "retention.bytes", ""])
    if kept == "retention.ms":
        found[kept] = str(chance.choice([500, 2000, 8000]))
    elif kept:
        found[kept] = str(chance.choice([1, 1000, 10_000]))
    return found


class Expiring:
    """The topic, its clients, and what they have seen."""

    def __init__(self, cluster: SimulatedCluster, random: Random, values: Callable[[], int]) -> None:
        """:param values: returns the next value that no record has"""
        self.cluster, self.random, self.values = cluster, random, values
        self.configs = configs_of(random)
        self.history = History()
        self._lost: list[str] = []

    def clients(self) -> list[Client]:
        """Returns the clients, which are not started yet."""
        places = [PLACE]
        has_retention = len(self.configs) > 1
        trimmer = self._new(Trimmer, "trimmer", is_alone=not has_retention)
        found: list[Client] = [
            self._new(Producer, "producer", places=places, values=self.values),
            self._new(TransactionalProducer, "transactional", places=places, values=self.values, follows=True),
        ]
        for committed in (True, False):
            near = somewhere(self.cluster, self.random)
            found.append(self._new(EarliestConsumer, f"consumer-{committed}", committed=committed, near=near))
        return found if has_retention and self.random.random() >= TRIMMED else [*found, trimmer]

    def end_reader(self, *, committed: bool) -> "EarliestConsumer":
        """Returns a consumer that has read nothing."""
        return self._new(EarliestConsumer, f"end-{committed}", committed=committed)

    def _new(self, kind: Callable[..., Any], name: str, **settings: Any) -> Any:
        return kind(f"{TOPIC}-{name}", self.cluster, self.history, Random(self.random.getrandbits(64)), **settings)

    def conclude(self, reader: "EarliestConsumer") -> None:
        """Compares what was acknowledged with what a consumer has read, from the start of the log to its end."""
        for operation, send in self.history.sends():
            if operation.outcome == OK and send.offset is not None and send.offset >= reader.begins_at:
                found = reader.seen.get(send.offset)
                if found != send.value:
                    text = f"{KEY} begins at {reader.begins_at} and has {found} at {send.offset}, not {send.value}"
                    self._lost.append(text)

    def problems(self) -> list[str]:
        """Returns what no correct broker could have caused."""
        return self._lost + [str(each) for each in unexplained(self.history)]


def unexplained(history: History) -> list[Anomaly]:
    """Returns the anomalies that deletion does not explain."""
    return [
        each
        for each in judge(history).anomalies
        if each.kind not in OF_DELETION and not (each.kind == PAST_OPEN and is_deleted(history, *each.operations))
    ]


def is_deleted(history: History, transaction: Operation, read: Operation) -> bool:
    """Returns whether the records of the open transaction that was read past were deleted before.

    A replica that truncates its log reads the producers anew from the records that are left, and does not learn of a
    transaction whose records are deleted, as in Apache Kafka (``UnifiedLog.rebuildProducerState``).
    """
    first, last = position_of(history, read), read.polls[0].records[-1][1]
    return not any(send.offset is not None and first <= send.offset < last for send in transaction.sends)


def position_of(history: History, read: Operation) -> int:
    """Returns the offset that a reader read from: what is deleted at that moment is below it."""
    if read.polls[0].moved:
        return read.polls[0].records[0][1]
    before = [each for each in history.operations[: read.index] if each.process == read.process]
    return before[-1].polls[0].records[-1][1] + 1 if before else 0


class EarliestConsumer(Consumer):
    """Reads from the earliest record, and again from there when its position was deleted."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, places=[PLACE], **settings)
        self.begins_at = 0  #: the offset that it began at, the last time
        self.seen: dict[int, int] = {}  #: values by offset

    async def read_failed(self, place: Place, error: KafkaError) -> None:
        """Continues at the start of the log, if that is later: a former leader may have less than was read."""
        if isinstance(error, OffsetOutOfRange):
            try:
                earliest = await offset_at(self, EARLIEST)
            except KafkaError:
                earliest = 0
            if earliest > self.positions[place]:
                self.positions[place] = self.begins_at = earliest
                self.moved = BEFORE
                return
        await super().read_failed(place, error)

    def take(self, place: Place, part: Any, start: float) -> None:
        """Takes the records of a response. :raises AssertionError: it lacks some"""
        at = self.positions[place]
        for batch in batches(memoryview(part.records or b"")):
            assert batch.base_offset <= at <= batch.last_offset, f"{self.name} got {batch.base_offset} of {KEY} at {at}"
            at = batch.last_offset + 1
        super().take(place, part, start)
        self.seen |= {offset: value for _, offset, value in self.found}


class Trimmer(Client):
    """Deletes the oldest records on request (DeleteRecords, KIP-107).

    :param is_alone: whether nothing else deletes any
    """

    def __init__(self, *args: Any, is_alone: bool) -> None:
        super().__init__(*args)
        self.is_alone = is_alone
        self.furthest = 0  #: the offset up to which records were to be deleted

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._trim()
            except KafkaError:
                self.leaders.pop(PLACE, None)
            await self.pause(RATE_S)

    async def _trim(self) -> None:
        for node_id, broker in self.cluster.brokers().items():
            if self.is_alone and PLACE in broker.partitions:
                begins_at = broker.partitions[PLACE].log.log_start_offset
                assert begins_at <= self.furthest, f"{node_id} has {KEY} from {begins_at}; deleted is {self.furthest}"
        earliest, latest = await offset_at(self, EARLIEST), await offset_at(self, LATEST)
        offset = max(earliest, self.random.choice([latest, self.random.randint(0, latest)]))
        self.furthest = max(offset, self.furthest)
        kind = DeleteRecordsRequest.DeleteRecordsTopic
        partition = kind.DeleteRecordsPartition(partition_index=PLACE[1], offset=offset)
        request = DeleteRecordsRequest(topics=[kind(name=TOPIC, partitions=[partition])], timeout_ms=REQUEST_MS)
        leader = await self.leader(*PLACE)
        before = self._replicas(leader)
        answer = await self.ask(leader, request)
        part = answer.topics[0].partitions[0]
        check(part.error_code)
        assert part.low_watermark >= offset, f"{KEY} begins at {part.low_watermark}; {offset} was to be deleted"
        after = self._replicas(leader)
        for replica in before.keys() & after.keys():
            assert after[replica] >= offset, f"{replica[0]} has {KEY} from {after[replica]}; deleted is {offset}"

    def _replicas(self, leader: int) -> dict[tuple[object, ...], int]:
        """Returns the log start offsets of the processes that are in sync, by process and leader epoch.

        There are none if that node does not lead: a former leader may not know all that are in sync.
        """
        brokers = self.cluster.brokers()
        newest = max((broker.image for broker in brokers.values()), key=lambda image: image.offset, default=None)
        state = None if newest is None else newest.partition(*PLACE)
        if state is None or state.leader != leader:
            return {}
        copies = {each: brokers[each].partitions.get(PLACE) for each in state.isr if each in brokers}
        return {
            (node_id, self.cluster.nodes[node_id].life, state.leader_epoch): copy.log.log_start_offset
            for node_id, copy in copies.items()
            if copy is not None
        }


async def offset_at(client: Client, timestamp: int) -> int:
    """Returns the start or the end of the log, from its leader. :raises KafkaError: it does not answer"""
    kind = ListOffsetsRequest.ListOffsetsTopic
    partition = kind.ListOffsetsPartition(partition_index=PLACE[1], timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[kind(name=TOPIC, partitions=[partition])])
    answer = await client.ask(await client.leader(*PLACE), request)
    part = answer.topics[0].partitions[0]
    check(part.error_code)
    return int(part.offset)
