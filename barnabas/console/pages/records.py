"""Pages on records: browsed by offset and time, single ones with their batch, and as JSON for programs.

Knows nothing of how bytes are decoded. A page fetches about as many records as it shows.
"""

import shlex
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from barnabas.console.decoding import KEY, KINDS, SHOWN_CHARACTERS, VALUE, decoded, framed
from barnabas.console.fetching import Found, Topic
from barnabas.console.page import Answer, Data, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Missing, existing
from barnabas.console.searching import WHERES

RECORDS_ON_A_PAGE: Final = 50
MOST_AS_JSON: Final = 1000
MOST_MERGED: Final = 50
"""The maximum number of partitions whose records are shown on one page."""
WHOLE_CHARACTERS: Final = 1 << 20
"""The maximum length of a key or value on the page of one record, in characters."""


def kind_of(request: PageRequest) -> str:
    """Returns the kind of decoding. :raises ValueError: it is unknown"""
    kind = request.text("as") or "auto"
    if kind not in KINDS:
        raise ValueError(f"There is no way to decode {kind!r}; there are {', '.join(KINDS)}.")
    return kind


def row(found: Found, kind: str, registry: str | None, limit: int = SHOWN_CHARACTERS) -> dict[str, Any]:
    """Returns a record for templates."""
    record, control = found.record, found.control
    key = framed(record.key, record.headers, KEY, registry)
    value = framed(record.value, record.headers, VALUE, registry)
    return {
        "partition": found.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "control": control,
        "key": decoded(key, "hex" if control else "auto", registry, limit),
        "value": decoded(value, "hex" if control else kind, registry, limit),
        "headers": [(name, decoded(value, limit=limit)) for name, value in record.headers],
    }


def moment_ms(text: str) -> int:
    """Returns a date as milliseconds since 1970; without a zone it is UTC. :raises ValueError: it is not a date"""
    if text.isascii() and text.isdecimal():
        return int(text[:15])
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"The time is {text!r}, but must be like 2026-11-21T15:00 (UTC), or milliseconds.") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def browse(request: PageRequest) -> Answer:
    """Shows the records of a partition from an offset or a time on, by default the last ones; or those of all
    partitions; or starts a search.
    """
    name, kind = request.path["topic"], kind_of(request)
    values: dict[str, Any] = {
        "topic": name, "kind": kind, "kinds": KINDS, "wheres": WHERES, "search": request.text("search"),
        "where": request.text("where") or "any", "time": request.text("time"), "size": RECORDS_ON_A_PAGE,
        "most_merged": MOST_MERGED,
    }  # fmt: skip
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        values["partitions"] = list(topic.leaders)
        if request.text("search"):
            return Shown("search.html", {**values, "partition": request.text("partition"), "query": _query(request)})
        at = moment_ms(values["time"]) if values["time"] else None
        if _is_of_all(request, topic):
            rows = [row(each, kind, request.sources.registry) for each in _of_all(topic, at)]
            return Shown("records_of_all.html", {**values, "rows": rows})
        partition = request.whole("partition")
        topic.check(partition)
        beginning, end, start = topic.bounds([partition], at).get(partition, (0, 0, 0))
        if request.text("offset"):
            start = request.whole("offset")
        elif at is None:
            start = end - RECORDS_ON_A_PAGE
        start = min(max(start, beginning), end)
        found = list(islice(topic.records(partition, start, end), RECORDS_ON_A_PAGE))
    rows = [row(each, kind, request.sources.registry) for each in found]
    place = {"partition": partition, "rows": rows, "beginning": beginning, "end": end, "start": start}
    return Shown("records.html", {**values, **place})


def _is_of_all(request: PageRequest, topic: Topic) -> bool:
    """Returns whether all partitions are wanted. :raises ValueError: they are, and the topic has too many"""
    wanted, count = request.text("partition"), len(topic.leaders)
    if wanted == "all" and count > MOST_MERGED:
        raise ValueError(
            f"{topic.name} has {count} partitions: choose one of them. Of all of them there is a search, and Live."
        )
    return wanted == "all" or (not wanted and not request.text("offset") and 1 < count <= MOST_MERGED)


def _of_all(topic: Topic, at: int | None) -> list[Found]:
    """Returns the newest records of all partitions, the newest first; or the first ones from a time on, the oldest
    first.
    """
    ranges = {
        partition: (max(beginning, end - RECORDS_ON_A_PAGE), end)
        if at is None
        else (start, min(start + RECORDS_ON_A_PAGE, end))
        for partition, (beginning, end, start) in topic.bounds(list(topic.leaders), at).items()
    }
    found = sorted(
        topic.records_of_several(ranges),
        key=lambda each: (each.record.timestamp, each.partition, each.record.offset),
        reverse=at is None,
    )
    return found[:RECORDS_ON_A_PAGE]


def _query(request: PageRequest) -> str:
    from urllib.parse import urlencode

    return urlencode({name: request.text(name) for name in ("partition", "search", "where", "as", "time")})


def one(request: PageRequest) -> Answer:
    """Shows a whole record, its batch, and how to read it with other programs."""
    name, kind = request.path["topic"], kind_of(request)
    partition, offset = int(request.path["partition"]), int(request.path["offset"])
    found = _one(request, name, partition, offset)
    values = row(found, kind, request.sources.registry, WHOLE_CHARACTERS)
    return Shown(
        "record.html",
        {
            "topic": name,
            "record": values,
            "batch": batch_row(found.batch),
            "kind": kind,
            "kinds": KINDS,
            "copies": copies(request.sources.client.bootstrap_server, name, partition, offset),
        },
    )


def _one(request: PageRequest, name: str, partition: int, offset: int) -> Found:
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        topic.check(partition)
        beginning, end, _ = topic.bounds([partition]).get(partition, (0, 0, 0))
        if beginning <= offset < end:
            for found in topic.records(partition, offset, offset + 1):
                return found
    raise Missing(f"Partition {partition} of {name} has no record at offset {offset}: it has {beginning} to {end}.")


def batch_row(batch: Any) -> dict[str, Any]:
    """Returns the fields of a batch's header."""
    return {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "records": batch.count,
        "size_in_bytes": batch.size_in_bytes,
        "compression": batch.compression.name.lower(),
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "max_timestamp": batch.max_timestamp,
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "crc": f"{batch.crc:#010x}" + ("" if batch.is_intact() else " (wrong)"),
    }


def copies(server: str, topic: str, partition: int, offset: int) -> dict[str, str]:
    """Returns programs that read a record, by their names."""
    quoted = shlex.quote
    kcat = f"kcat -b {quoted(server)} -C -t {quoted(topic)} -p {partition} -o {offset} -c 1"
    python = (
        "from kafka import KafkaConsumer, TopicPartition\n\n"
        f"consumer = KafkaConsumer(bootstrap_servers={server.split(',')!r})\n"
        f"partition = TopicPartition({topic!r}, {partition})\n"
        "consumer.assign([partition])\n"
        f"consumer.seek(partition, {offset})\n"
        "print(next(consumer))"
    )
    return {"kcat": kcat, "Python": python}


def as_json(request: PageRequest) -> Answer:
    """Returns records as JSON, for ``curl`` and other programs."""
    name, partition, kind = request.path["topic"], request.whole("partition"), kind_of(request)
    limit = min(request.whole("limit", RECORDS_ON_A_PAGE), MOST_AS_JSON)
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        topic.check(partition)
        beginning, end, _ = topic.bounds([partition]).get(partition, (0, 0, 0))
        start = max(request.whole("offset", beginning), beginning)
        found = list(islice(topic.records(partition, start, end), limit))
    rows = [row(each, kind, request.sources.registry, WHOLE_CHARACTERS) for each in found]
    return Data([_for_programs(each) for each in rows])


def _for_programs(each: dict[str, Any]) -> dict[str, Any]:
    headers = [[name, _text(value)] for name, value in each["headers"]]
    return {**each, "key": _text(each["key"]), "value": _text(each["value"]), "headers": headers}


def _text(shown: dict[str, Any]) -> str | None:
    return None if shown["kind"] == "null" else shown["text"]


ROUTES: Final[Routes] = (
    Route("/topics/{topic}/records", browse),
    Route("/topics/{topic}/records.json", as_json),
    Route("/topics/{topic}/records/{partition:int}/{offset:int}", one),
)
