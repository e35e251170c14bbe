"""How a single request is held up in a simulation until what it asks for would do harm, and comes then.

Knows nothing of plans. The moment is chosen by what the cluster has come to, so these faults take as long as they take.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from barnabas.cluster.image.image import MetadataImage, PartitionImage
from barnabas.cluster.quorum.client import NO_NODE
from barnabas.wire.frames import decode_request
from barnabas.wire.message import Request
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.simulation.faults import Fault, Faults, Undo
from tests.simulation.network import FIRST_PORT, Stream
from tests.simulation.node import SimulatedNode

STEP_S = 0.01
PATIENCE_S = 6.0
"""How long a fault waits for the next thing that it needs."""


class Missed(Exception):
    """What a fault waits for does not happen."""


class Watch:
    """Waits for requests of a kind that match. The first one is held up if that is wanted."""

    def __init__(
        self,
        faults: Faults,
        kind: type[Request],
        matches: Callable[[Stream, Request], bool] = lambda stream, request: True,
        *,
        holds: bool = False,
        gives_up: bool = False,
    ) -> None:
        """:param gives_up: whether the sender loses the connection, and sends the request again by another one"""
        self.stream: Stream | None = None  #: over which the request was sent
        self._faults, self._kind, self._matches = faults, kind, matches
        self._holds, self._gives_up = holds, gives_up
        self._key = kind.api_key.to_bytes(2)

    def __enter__(self) -> "Watch":
        self._faults.network.watchers.append(self._sent)
        return self

    def __exit__(self, *_: object) -> None:
        self._faults.network.watchers.remove(self._sent)
        if self.stream is not None and self.stream.is_held and not self._faults.loop.is_closed():
            self.stream.release()

    @property
    def is_over(self) -> bool:
        """Whether such a request was sent."""
        return self.stream is not None

    def _sent(self, stream: Stream, data: bytes) -> None:
        if self.stream is not None or stream.is_accepted or data[4:6] != self._key:
            return
        if self._matches(stream, decode_request(data[4:], {self._kind.api_key: self._kind}).request):
            self.stream = stream
            if self._holds:
                self._faults.network.say(f"held up: {self._kind.__name__} of {stream.life.name} #{stream.port}")
                stream.is_held = True
            if self._gives_up:
                self._faults.loop.call_soon(stream.close, context=stream.life.context)


async def _until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Waits until something is so. :raises Missed: it is not, for that long"""
    for _ in range(round(seconds / STEP_S)):
        if condition():
            return
        await asyncio.sleep(STEP_S)
    raise Missed


# ---------------------------------------------------------------- changes of the ISR


class _Follower:
    """A follower whose fetches can be held up, and a partition from whose ISR it falls."""

    def __init__(self, faults: Faults, node: SimulatedNode) -> None:
        self.faults, self.node = faults, node
        self.partition: tuple[bytes, int] = b"", -1  #: topic id and index

    def lag(self) -> None:
        """Lets none of its requests get to another broker; to controllers they do."""
        self.faults.network.blocked.add((self.node.name, FIRST_PORT))

    def come(self) -> None:
        self.faults.network.blocked.discard((self.node.name, FIRST_PORT))

    def state(self) -> PartitionImage | None:
        """Returns the partition in the newest image."""
        image = self.image()
        topic = None if image is None else image.topics_by_id.get(self.partition[0])
        return None if topic is None else topic.partitions.get(self.partition[1])

    def image(self) -> MetadataImage | None:
        """Returns the newest image."""
        images = [broker.image for broker in self.faults.cluster.brokers().values()]
        return max(images, key=lambda image: image.offset) if images else None

    def incarnation(self) -> int:
        """Returns its broker epoch, -1 while it is fenced or not known."""
        image = self.image()
        broker = None if image is None else image.brokers.get(self.node.id)
        return -1 if broker is None or broker.fenced else broker.epoch

    def is_in(self) -> bool:
        state = self.state()
        return state is not None and self.node.id in state.isr

    def is_out(self) -> bool:
        state = self.state()
        return state is not None and self.node.id not in state.isr

    def has_fallen(self) -> bool:
        """Returns whether it has fallen from the ISR of a partition. Takes one with which others go on.

        Its leader is not the active controller: a node's request to itself is held up by nothing.
        """
        for broker in self.faults.cluster.brokers().values():
            for topic in broker.image.topics_by_id.values():
                for index, part in topic.partitions.items():
                    is_led = part.leader not in (NO_NODE, broker.quorum.leadership.leader_id)
                    if is_led and self.node.id in part.replicas and self.node.id not in part.isr:
                        self.partition = topic.id, index
                        if not topic.name.startswith("__"):
                            return True
        return self.partition[1] >= 0

    def is_proposed(self, stream: Stream, request: Request) -> bool:
        """Returns whether a request is to bring it into the ISR."""
        assert isinstance(request, AlterPartitionRequest)
        return any(
            (topic.topic_id, part.partition_index) == self.partition
            and self.node.id in (part.new_isr or [each.broker_id for each in part.new_isr_with_epochs])
            for topic in request.topics
            for part in topic.partitions
        )


def old_isr(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Holds up a change that brings a follower into the ISR, until the follower is far from being in sync again.

    The leader has repeated it, and the follower was in the ISR and has fallen out of it: the partition epoch has risen.
    """
    return _begin(faults, fault, chance, _falls_out_again)


def old_incarnation(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Holds up a change that brings a follower into the ISR, until the follower has started again.

    It is another incarnation of its broker, which may have lost what it had (KIP-903): the partition epoch is the same.
    """
    return _begin(faults, fault, chance, _starts_again)


def _begin(faults: Faults, fault: Fault, chance: Random, script: "Script") -> Undo | None:
    node = faults.cluster.nodes[fault.node]
    if node.id not in faults.cluster.brokers():
        return None
    faults.do(_hold_change(_Follower(faults, node), script, chance))
    return lambda: None


Script = Callable[[_Follower, Random], Awaitable[None]]


async def _hold_change(follower: _Follower, script: Script, chance: Random) -> None:
    try:
        follower.lag()
        await _until(follower.has_fallen)
        await script(follower, chance)
        await asyncio.sleep(chance.choice([0.3, 1.0]))
    except Missed:
        follower.faults.network.say(f"no change of an ISR with {follower.node.id} can be held up")
    finally:
        follower.come()


async def _falls_out_again(follower: _Follower, chance: Random) -> None:
    with Watch(follower.faults, AlterPartitionRequest, follower.is_proposed, holds=True, gives_up=True) as held:
        follower.come()
        await _until(lambda: held.is_over)
        await _until(follower.is_in)
        follower.lag()
        await _until(follower.is_out)
        await asyncio.sleep(chance.choice([0.0, 0.1, 0.5]))


async def _starts_again(follower: _Follower, chance: Random) -> None:
    faults, node = follower.faults, follower.node
    with Watch(faults, AlterPartitionRequest, follower.is_proposed, holds=True) as held:
        follower.come()
        await _until(lambda: held.is_over)
        before, power_cut = follower.incarnation(), faults.may_forget(node.id)
        revive = faults.killed(node.id, power_cut=power_cut)
        if revive is None:
            raise Missed
        if power_cut:
            faults.forgets(node.id)
        follower.lag()
        await asyncio.sleep(chance.choice([0.01, 0.5]))
        revive()
        await _until(lambda: follower.incarnation() not in (-1, before))
        await asyncio.sleep(chance.choice([0.0, 0.1, 0.5]))


# ---------------------------------------------------------------- ends of transactions


def old_end(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Holds up the end of a transaction, which is repeated, until the producer's next transaction is open (KIP-890)."""
    faults.do(_old_end(faults, chance))
    return lambda: None


async def _old_end(faults: Faults, chance: Random) -> None:
    try:
        with Watch(faults, EndTxnRequest, holds=True, gives_up=True) as held:
            await _until(lambda: held.is_over)
            assert held.stream is not None
            producer = held.stream.life

            def is_its_own(stream: Stream, request: Request) -> bool:
                return stream.life is producer

            with Watch(faults, EndTxnRequest, is_its_own) as again:
                await _until(lambda: again.is_over)
            with Watch(faults, ProduceRequest, is_its_own) as following:
                await _until(lambda: following.is_over)
            await asyncio.sleep(chance.choice([0.0, 0.02, 0.05]))
    except Missed:
        faults.network.say("no end of a transaction can be held up")
