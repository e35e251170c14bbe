"""The transaction coordinator: who holds which transactional id, what its transaction is in, and how it ends.

Does no I/O and knows no requests: commands come as calls, answers go to callbacks (or are returned, where nothing has
to be waited for), records and markers go out through one function each, and records come back through
:meth:`TransactionCoordinator.load`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from barnabas.clock import Clock, Scheduler
from barnabas.errors import KafkaError
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.messages import (
    DescribedTransaction,
    EndReply,
    ErrorReply,
    InitProducer,
    InitReply,
    Listing,
    Record,
    SendMarkers,
    TopicPartition,
    Write,
)


class TransactionCoordinator:
    """All transactional ids whose coordinator this node is (Kafka's class of that name)."""

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        scheduler: Scheduler,
        *,
        write: Write,
        send_markers: SendMarkers,
        next_producer_id: Callable[[], int],
        coordinator_epoch: Callable[[str], int] = lambda transactional_id: 0,
        is_coordinator: Callable[[str], bool] = lambda transactional_id: True,
        transaction_version: Callable[[], int] = lambda: 2,
    ) -> None:
        raise NotImplementedError

    def init_producer_id(self, ask: InitProducer, reply: InitReply) -> None:
        raise NotImplementedError

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        reply: ErrorReply,
        *,
        client_version: int = 0,
    ) -> None:
        raise NotImplementedError

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, type[KafkaError] | None]:
        raise NotImplementedError

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        is_commit: bool,
        reply: EndReply,
        *,
        client_version: int = 0,
    ) -> None:
        raise NotImplementedError

    def describe(self, transactional_id: str) -> DescribedTransaction:
        raise NotImplementedError

    def list_transactions(
        self,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> Listing:
        raise NotImplementedError

    def load(self, records: Iterable[Record]) -> None:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def resign(self) -> None:
        raise NotImplementedError

    def resign_lost(self) -> None:
        raise NotImplementedError

    def topics_deleted(self, topics: Iterable[str]) -> None:
        raise NotImplementedError
