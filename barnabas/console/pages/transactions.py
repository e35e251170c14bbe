"""Pages on transactions: open ones, hanging ones, and the abort of a hanging one.

Knows nothing of how coordinators work.
"""

from typing import Any, Final

from barnabas.cli.hanging import Hanging, describe_transaction, find_hanging, transaction_at
from barnabas.clock import SystemClock
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Page, existing

ON_A_PAGE: Final = 50
LONG_MS: Final = 15 * 60_000
"""The default maximum timeout of a transaction."""


def transactions(request: PageRequest) -> Answer:
    """Lists transactional ids, those with an open transaction first, and describes those of this page."""
    search, topic = request.text("search"), request.text("topic")
    hanging: list[Hanging] | None = None
    with request.sources.client.admin() as admin:
        listed = [each for found in admin.list_transactions().values() for each in found]
        listed = [each for each in listed if search.lower() in each.transactional_id.lower()]
        listed.sort(key=lambda each: (each.state.value != "Ongoing", each.transactional_id))
        page = Page.of(listed, request.whole("page", 1), ON_A_PAGE)
        page = page._replace(items=[_described(admin, each.transactional_id) for each in page.items])
        if topic:
            existing(admin, topic)
            hanging = find_hanging(admin, topic, None, None, longer_than_ms=_minutes(request), clock=SystemClock())
    values = {"page": page, "search": search, "topic": topic, "hanging": hanging, "minutes": request.text("minutes")}
    return Shown("transactions.html", values)


def _minutes(request: PageRequest) -> int:
    return request.whole("minutes") * 60_000 if request.text("minutes") else LONG_MS


def _described(admin: Any, name: str) -> dict[str, Any]:
    found = describe_transaction(admin, name, clock=SystemClock())
    start = found.transaction_start_time_ms
    return {
        "name": name,
        "state": found.state.value,
        "coordinator": found.coordinator_id,
        "producer": f"{found.producer_id}, epoch {found.producer_epoch}",
        "timeout_ms": found.transaction_timeout_ms,
        "start": start if start >= 0 else None,
        "partitions": [f"{topic}-{partition}" for topic, partition in sorted(found.topic_partitions)],
    }


def abort(request: PageRequest) -> Answer:
    """Aborts the transaction that is open on a partition since an offset."""
    from kafka import TopicPartition
    from kafka.admin import AbortTransactionSpec

    where = TopicPartition(request.text("topic"), request.whole("partition"))
    with request.sources.client.admin() as admin:
        existing(admin, where.topic)
        producer, epoch, coordinator = transaction_at(admin, where, request.whole("start_offset"))
        admin.abort_transaction(AbortTransactionSpec(where, producer, epoch, max(0, coordinator)))
    return Moved("/transactions")


ROUTES: Final[Routes] = (Route("/transactions", transactions), Route("/transactions/abort", abort, "POST"))
