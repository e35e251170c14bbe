"""What the leader of one partition has appended, since somebody last read it.

Knows nothing of logs, nor of the readers. Apache Kafka's ``BrokerTopicMetrics``, which counts by topic.
"""


class Traffic:
    """The counts of one partition. The partition increments them itself, since a call for each batch costs more."""

    __slots__ = ("batches", "bytes_in", "messages_in")

    def __init__(self) -> None:
        self.batches = 0
        self.bytes_in = 0  #: bytes of the batches
        self.messages_in = 0  #: records, as offsets count them; a control batch has one
