"""A pending verification: a request that asks the transaction coordinator whether a producer may write to a partition.

Knows nothing of the coordinator. The rules are those of Apache Kafka's ``VerificationStateEntry`` (KIP-890). The
transaction may end between the request to the coordinator and the first batch that is appended on its answer. The
marker then removes the verification, so that the batch cannot begin a transaction that never ends.
"""


class Verification:
    """One verification. It is valid as long as :class:`ProducerState` holds this very object."""

    __slots__ = ("bumps_epoch", "lowest_sequence", "producer_epoch", "since_ms")

    def __init__(self, producer_epoch: int, sequence: int, since_ms: int, *, bumps_epoch: bool) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        """The lowest sequence of the batches that wait. A higher one must not be appended first: the lower one would
        be out of order for ever."""
        self.since_ms = since_ms
        self.bumps_epoch = bumps_epoch
        """Whether the client bumps its epoch with each transaction (``transaction.version`` 2)."""

    def join(self, producer_epoch: int, sequence: int) -> None:
        """Adds another batch of the producer: of the same transaction or, in a newer epoch, of the next one."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
