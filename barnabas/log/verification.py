"""That somebody is asking the transaction coordinator whether a producer may write to a partition, for the log to know.

Knows nothing of the coordinator. Rules of Apache Kafka's ``VerificationStateEntry`` (KIP-890): between the question and
the first batch that is written on its answer, the transaction may have ended. Its marker then voids the question, so
that the batch cannot open a transaction that nobody will end.
"""


class Verification:
    """One question. It is its own proof: good as long as :class:`ProducerState` has this very object."""

    __slots__ = ("bumps_epoch", "lowest_sequence", "producer_epoch", "since_ms")

    def __init__(self, producer_epoch: int, sequence: int, since_ms: int, *, bumps_epoch: bool) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        """The lowest of those that asked; a higher one must not be written before it, or it could never be."""
        self.since_ms = since_ms
        self.bumps_epoch = bumps_epoch
        """Whether each transaction of the client has an epoch of its own (``transaction.version`` 2)."""

    def join(self, producer_epoch: int, sequence: int) -> None:
        """Another batch of the same producer asks the same, or, in a newer epoch, about the next transaction."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
