"""The page that writes records, one or many.

Knows nothing of how records are shown.
"""

import contextlib
from typing import Any, Final

from barnabas.console.filters import part
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown
from barnabas.console.reading import existing

SENT_S: Final = 30


def form(request: PageRequest) -> Answer:
    with request.sources.client.admin() as admin:
        found = existing(admin, request.path["topic"])
    partitions = sorted(each["partition_index"] for each in found["partitions"])
    return Shown("produce.html", {"topic": request.path["topic"], "partitions": partitions})


def produce(request: PageRequest) -> Answer:
    """Writes the value, or each of its lines, as a record, and shows the records."""
    from kafka import KafkaProducer

    name, value = request.path["topic"], request.form.get("value", "")
    values: list[bytes | None] = [value.encode()]
    if "null" in request.form:
        values = [None]
    elif "lines" in request.form:
        values = [line.encode() for line in value.splitlines() if line.strip()]
        if not values:
            raise ValueError("There are no lines to write: type one in the value.")
    key = request.form.get("key", "").encode() or None
    partition = request.whole("partition") if request.text("partition") else None
    client = request.sources.client
    with client.admin() as admin:
        existing(admin, name)
    settings = client.settings(KafkaProducer.DEFAULT_CONFIG, max_block_ms=SENT_S * 1000)
    with contextlib.closing(KafkaProducer(**settings)) as producer:
        waiting = [
            producer.send(name, value=each, key=key, headers=_headers(request.text("headers")), partition=partition)
            for each in values
        ]
        sent: list[Any] = [each.get(timeout=SENT_S) for each in waiting]
    first = sent[0]
    if len(sent) == 1:
        return Moved(f"/topics/{part(name)}/records/{first.partition}/{first.offset}")
    return Moved(f"/topics/{part(name)}/records?partition={first.partition}&offset={first.offset}")


def _headers(text: str) -> list[tuple[str, bytes]]:
    """Parses headers from lines of ``name: value``. :raises ValueError: a line has another form"""
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    if any(not colon or not name.strip() for name, colon, _ in lines):
        raise ValueError("Each line of the headers has to be name: value.")
    return [(name.strip(), value.strip().encode()) for name, _, value in lines]


ROUTES: Final[Routes] = (
    Route("/topics/{topic}/produce", form),
    Route("/topics/{topic}/produce", produce, "POST"),
)
