"""Creates transactions that are not ended: a hanging one, as a late produce request causes it, and one that stays open
for long.

Knows only the broker's protocol, and sends requests that no client would send. The broker must accept transactional
batches without verification (``transaction.partition.verification.enable=false``), as brokers before 3.6 did.
"""

from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.owner import HOUR_MS, Owner, produce
from tests.raw import Client


def leave_transactions(port: int) -> None:
    """Makes the how-to's transactions: one of ``checkout`` that hangs in orders, one of ``invoicing``."""
    topics = [
        CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        for name in ("orders", "invoices")
    ]
    with Client(port) as client:
        client.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 4)
        checkout, invoicing = Owner(client, "checkout"), Owner(client, "invoicing")
        produce(client, "orders", 0, b"tea", HOUR_MS)
        checkout.write("orders", 0, b"coffee", HOUR_MS)
        produce(client, "orders", 0, b"cake")
        invoicing.begin("invoices", [0])
        invoicing.write("invoices", 0, b"for tea")
