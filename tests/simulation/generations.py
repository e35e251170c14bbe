"""The two generations of the protocol of transactions, which of them a producer uses (KIP-890), and how many epochs it
has.

Knows nothing of transactions. The rules are those of Apache Kafka's ``TransactionManager`` and ``ApiVersions``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

import pytest

from barnabas.cluster.features import TRANSACTION_VERSION
from barnabas.transactions import ending, transaction
from barnabas.transactions.transaction import EPOCH_RISES
from barnabas.wire.frames import decode_request
from barnabas.wire.message import Request
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.wire.schema import Versions

AnyRequest = TypeVar("AnyRequest", bound=Request)

FEW = 0.3
"""The share of seeds in which producers have few epochs."""
LAST_EPOCHS = (3, 8, 20)
"""The last epoch of these seeds, instead of 32767. After it, a producer gets another id."""

OLDER: dict[type[Request], int] = {
    AddOffsetsToTxnRequest: 4,
    AddPartitionsToTxnRequest: 3,
    EndTxnRequest: 4,
    ProduceRequest: 11,
    TxnOffsetCommitRequest: 4,
}
"""The newest versions of the older generation."""


def of_older(request: AnyRequest) -> AnyRequest:
    """Returns the request, which is sent in a version of the older generation at most."""
    vars(request)["versions"] = Versions(request.versions.first, OLDER[type(request)])
    return request


def is_ambiguous(data: bytes) -> bool:
    """Returns whether the message is a request of the older generation that nobody could recognize if it were late.

    If its sender has sent it again by another connection, the producer's next transaction may be open, and has the same
    epoch: a marker would end it, and offsets would be committed with it, in Apache Kafka, too (KIP-890, KIP-1228).
    """
    key = int.from_bytes(data[4:6])
    if key == TxnOffsetCommitRequest.api_key:
        return int.from_bytes(data[6:8]) <= OLDER[TxnOffsetCommitRequest]
    if key != WriteTxnMarkersRequest.api_key:
        return False
    request = decode_request(data[4:], {key: WriteTxnMarkersRequest}).request
    assert isinstance(request, WriteTxnMarkersRequest)
    return any(marker.transaction_version < EPOCH_RISES for marker in request.markers)


class Generation:
    """The generation that a producer uses: the newer one if it knows that the cluster's ``transaction.version`` is 2.

    :param follows: whether the producer knows the newer generation
    """

    def __init__(self, *, follows: bool) -> None:
        self.follows, self.is_newer = follows, False
        self._features_epoch = -1

    def learn(self, answer: Any) -> None:
        """Takes the finalized features from a response to ApiVersions. Brokers may lag: the newest ones count."""
        if answer.finalized_features_epoch > self._features_epoch:
            self._features_epoch = answer.finalized_features_epoch
            levels = {each.name: each.max_version_level for each in answer.finalized_features}
            self.is_newer = levels.get(TRANSACTION_VERSION, 0) >= EPOCH_RISES


@contextmanager
def epochs_of(seed: int) -> Iterator[None]:
    """Gives producers few epochs meanwhile, in some seeds. The other decisions of a seed do not depend on that."""
    chance = Random(f"epochs of {seed}")
    if chance.random() >= FEW:
        yield
        return
    last = chance.choice(LAST_EPOCHS)
    with pytest.MonkeyPatch.context() as patch:
        for module in (ending, transaction):
            patch.setattr(module, "LAST_EPOCH", last)
        yield
