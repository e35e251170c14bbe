"""Formats requests and responses as lines of text or of JSON.

Knows nothing of where the lines go. Hides secrets.
"""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from barnabas.diagnosis import Address
from barnabas.errors import KafkaError, MalformedMessage
from barnabas.faults.naming import error_name
from barnabas.faults.seen import first_error
from barnabas.faults.subjects import Subjects, TopicName, subjects_of
from barnabas.proxy.observing import Exchange
from barnabas.wire.plain import plain
from barnabas.wire.secrets import is_secret

MOST_TOPICS = 4
"""The most topics of a request that its line of text names."""


class Printer:
    """Writes a line for each request that is answered, or that has no response."""

    def __init__(self, write: Callable[[str], object], topic_name: TopicName, *, as_json: bool) -> None:
        self._write = write
        self._topic_name = topic_name
        self._as_json = as_json
        self._nodes: dict[int, Address] = {}

    def opened(self, connection: int, node: Address, client: tuple[str, int], at: float) -> None:
        self._nodes[connection] = node

    def closed(self, connection: int, at: float) -> None:
        self._nodes.pop(connection, None)

    def requested(self, exchange: Exchange) -> None:
        """Does nothing: the line is written with the response."""

    def answered(self, exchange: Exchange) -> None:
        node = self._nodes.get(exchange.connection)
        row = told_exchange(exchange, str(node))
        self._write(json.dumps(row, ensure_ascii=False) if self._as_json else text_of(row, self._subjects(exchange)))

    def _subjects(self, exchange: Exchange) -> str:
        try:
            return " ".join(_named(subjects_of(exchange.request().request, self._topic_name)))
        except MalformedMessage:
            return ""


def told_exchange(exchange: Exchange, node: str) -> dict[str, Any]:
    """Returns a request and its response as plain values."""
    row: dict[str, Any] = {
        "time_ms": exchange.time_ms,
        "connection": exchange.connection,
        "node": node,
        "client_id": exchange.client_id,
        "api": exchange.api,
        "version": exchange.version,
        "size": len(exchange.frame),
        "answer_size": len(exchange.answer),
        "took_ms": round((exchange.answered_at - exchange.at) * 1000, 3),
        "error": None,
    }
    try:
        request = exchange.request()
        row["request"] = plain(request.request, request.version, is_secret)
        if exchange.answer:
            answer = exchange.response()
            code = first_error(answer.response)
            row["error"] = error_name(KafkaError.by_code[code]) if code in KafkaError.by_code else code or None
            row["answer"] = plain(answer.response, answer.version, is_secret)
    except MalformedMessage as error:
        row["undecoded"] = str(error)
    return row


def text_of(row: dict[str, Any], subjects: str) -> str:
    """Returns a line of text for a request and its response."""
    at = datetime.fromtimestamp(row["time_ms"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    answer = f"{row['answer_size']} B in {row['took_ms']:.1f} ms" if row["answer_size"] else "no answer"
    words = [
        f"{at} #{row['connection']} {row['client_id'] or '-'} to {row['node']}: {row['api']} {row['version']}",
        subjects,
        f"{row['size']} B, {answer}",
        row["error"] or "",
    ]
    return " ".join(filter(None, map(str, words)))


def _named(subjects: Subjects) -> Iterator[str]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(subjects.topics, key=lambda each: (each[0], each[1] or 0)):
        topics.setdefault(topic, []).extend(() if partition is None else (partition,))
    for topic in list(topics)[:MOST_TOPICS]:
        yield topic + (f"[{','.join(map(str, topics[topic]))}]" if topics[topic] else "")
    if len(topics) > MOST_TOPICS:
        yield f"and {len(topics) - MOST_TOPICS} topics"
    yield from (f"group={group}" for group in sorted(subjects.groups) if group)
    yield from (f"transactional_id={each}" for each in sorted(subjects.transactional_ids))
