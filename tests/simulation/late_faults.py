"""Late requests in a simulation, which later requests overtake.

Knows nothing of plans. A late request stays in flight when its sender has closed its connection and uses another one.
It must have no effect when it arrives.
"""

from random import Random
from typing import NamedTuple

from barnabas.wire.message import Request
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.vote import VoteRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.simulation.faults import Fault, Faults, Undo
from tests.simulation.network import FIRST_PORT, Stream

CHANGING: tuple[type[Request], ...] = (
    AddPartitionsToTxnRequest,
    AlterPartitionRequest,
    AlterPartitionRequest,
    BeginQuorumEpochRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    EndTxnRequest,
    EndTxnRequest,
    OffsetCommitRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    VoteRequest,
    WriteTxnMarkersRequest,
)
"""Requests that change state, so that a late one could do harm."""


class Late(NamedTuple):
    """A rule for requests of a kind, some of which are late.

    :param sender: the sender; empty for all
    :param port: the target's port; 0 for any
    """

    kind: type[Request]
    chance: Random
    share: float
    seconds: tuple[float, float]
    given_up: float  #: the share of requests whose sender loses the connection immediately
    sender: str = ""
    port: int = 0

    def delay(self, stream: Stream, data: bytes) -> float:
        """Returns the delay of a message in seconds, and may close its sender's connection."""
        if len(data) < 8 or int.from_bytes(data[4:6]) != self.kind.api_key or stream.is_accepted:
            return 0.0
        if self.sender not in ("", stream.life.name) or self.port not in (0, stream.peer[1]):
            return 0.0
        if self.chance.random() >= self.share:
            return 0.0
        if self.chance.random() < self.given_up:
            stream.network.loop.call_later(self.chance.uniform(0, 0.1), stream.close, context=stream.life.context)
        return self.chance.uniform(*self.seconds)


def late_requests(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Makes requests of one kind late; their senders give up some of them."""
    seconds = chance.choice([(0.1, 1.0), (1.0, 4.0), (2.0, 9.0)])
    share = chance.choice([0.05, 0.3, 0.3, 1.0])
    kind = chance.choice(CHANGING)
    release = faults.cut_off(*faults.cluster.broker_ids) if kind is BrokerHeartbeatRequest else lambda: None
    if release is None:
        return None
    undo = _rule(faults, Late(kind, chance, share, seconds, chance.choice([0.0, 0.5, 1.0])))

    def stop() -> None:
        undo()
        faults.loop.call_later(seconds[1], release)  # the last one may be on its way until then

    return stop


def _rule(faults: Faults, rule: Late) -> Undo:
    faults.network.say(f"late: {rule.kind.__name__} of {rule.sender or 'all'}, {rule.share:.0%}, by {rule.seconds} s")
    faults.network.late_rules.append(rule.delay)
    return lambda: faults.network.late_rules.remove(rule.delay)


def unsteady_follower(faults: Faults, fault: Fault, chance: Random) -> Undo | None:
    """Makes a broker lag, catch up, and lag again or lose unsynced records.

    Meanwhile the changes of ISRs are late, and repeated by the leaders: one that adds it arrives when it lags.
    """
    node = faults.cluster.nodes[fault.node]
    name = node.name

    def lag(seconds: float) -> None:
        rule = Late(FetchRequest, chance, 1.0, (2.5, 3.0), 0.0, sender=name, port=FIRST_PORT)
        faults.later(seconds, _rule(faults, rule))

    def again() -> None:
        if chance.random() < 0.5 and faults.may_forget(node.id):
            faults.power_cut(fault, chance)
            faults.later(chance.choice([0.01, 0.5]), lambda: faults.revive(node))
        else:
            lag(3.0)

    lag(0.5)
    late = Late(AlterPartitionRequest, chance, chance.choice([0.5, 1.0]), (2.0, 7.0), chance.choice([0.5, 1.0]))
    undo = _rule(faults, late)
    faults.later(chance.uniform(2.5, 5.0), again)
    return undo
