"""A small service: it takes orders over, charges them in one transaction, and puts aside what it cannot read.

Orders come in the topic ``orders``, one JSON object each:
``{"id": "1", "customer": "ann", "item": "tea", "cents": 290}``. For each, an invoice goes to ``invoices``; what is no
order goes to ``orders.failed``. Each order is charged once, whatever happens in between.
"""

import json
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

ORDERS, INVOICES, FAILED = "orders", "invoices", "orders.failed"


class BadOrder(ValueError):
    """What came is no order."""


def read_order(value: bytes | None) -> dict[str, Any]:
    """Returns the order. :raises BadOrder: it is none"""
    try:
        order = json.loads(value or b"")
    except ValueError:
        raise BadOrder("no JSON") from None
    if not isinstance(order, dict) or not {"id", "customer", "item", "cents"} <= order.keys():
        raise BadOrder("fields are missing")
    if not isinstance(order["cents"], int) or order["cents"] < 0:
        raise BadOrder("the price is no amount")
    return order


def invoice_of(order: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the invoice: orders of ten euros and more get a tenth off."""
    cents = order["cents"]
    return {"order": order["id"], "customer": order["customer"], "cents": cents * 9 // 10 if cents >= 1000 else cents}


class Shop:
    """Where customers order."""

    def __init__(self, bootstrap_servers: str, **settings: Any) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers, client_id="shop", acks="all", enable_idempotence=True, **settings
        )

    def order(self, order: Mapping[str, Any]) -> None:
        """Sends an order. :raises KafkaError: it was not taken"""
        key = str(order["customer"]).encode()
        self._producer.send(ORDERS, json.dumps(order).encode(), key=key).get(10)

    def close(self) -> None:
        self._producer.close()


class Cashier:
    """Charges orders: reads them, writes invoices and commits, all in one transaction for each batch."""

    def __init__(self, bootstrap_servers: str, name: str = "cashier-1", **settings: Any) -> None:
        self._consumer = KafkaConsumer(
            ORDERS,
            bootstrap_servers=bootstrap_servers,
            client_id=name,
            group_id="cashiers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
            retry_backoff_ms=10,
        )
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap_servers, client_id=name, transactional_id=name, retry_backoff_ms=10, **settings
        )
        self._producer.init_transactions()

    def charge(self, count: int, *, polls: int = 50) -> int:
        """Charges until that many records were read, or nothing came for so many polls. Returns how many there were."""
        done = 0
        while done < count and polls:
            batch = self._consumer.poll(100)
            if batch:
                self._charge(batch)
                done += sum(map(len, batch.values()))
            else:
                polls -= 1
        return done

    def _charge(self, batch: Mapping[TopicPartition, list[Any]]) -> None:
        self._producer.begin_transaction()
        try:
            for records in batch.values():
                for record in records:
                    self._handle(record)
            offsets = {place: OffsetAndMetadata(found[-1].offset + 1, "", -1) for place, found in batch.items()}
            self._producer.send_offsets_to_transaction(offsets, self._consumer.group_metadata())
            self._producer.commit_transaction()
        except Exception:
            self._producer.abort_transaction()
            raise

    def _handle(self, record: Any) -> None:
        try:
            invoice = invoice_of(read_order(record.value))
        except BadOrder as error:
            why = [("why", str(error).encode())]
            self._producer.send(FAILED, record.value, key=record.key, headers=why)
        else:
            self._producer.send(INVOICES, json.dumps(invoice).encode(), key=record.key)

    def close(self) -> None:
        self._consumer.close()
        self._producer.close()
