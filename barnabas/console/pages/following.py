"""Pages that continue by themselves: the steps of a search, and records as they arrive.

Knows nothing of HTTP. Each step contains the start of the next one, so that no state is kept between them.
"""

from typing import Any, Final
from urllib.parse import urlencode

from barnabas.console.decoding import KINDS
from barnabas.console.fetching import Found, Topic
from barnabas.console.filters import part
from barnabas.console.page import Answer, PageRequest, Route, Routes, Shown
from barnabas.console.pages.records import kind_of, moment_ms, row
from barnabas.console.reading import existing
from barnabas.console.searching import BATCH_S, FIRST_S, MOST_FOUND, WHERES, Cursor, matching, step
from barnabas.records.record import records_of

MOST_FOLLOWED: Final = 100
"""The maximum number of partitions that are shown live."""

MOST_NEW: Final = 100
WAIT_MS: Final = 500


def search(request: PageRequest) -> Answer:
    """Reads for half a second, and shows the found records and the progress."""
    name, where = request.path["topic"], request.text("where") or "any"
    if where not in WHERES:
        raise ValueError(f"A search is by one of {', '.join(WHERES)}, not by {where!r}.")
    kind, registry = kind_of(request), request.sources.registry
    matches = matching(where, request.text("search"), registry)
    found_before = request.whole("found")
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        which = list(topic.leaders)
        if request.text("partition") != "all":
            which = [request.whole("partition")]
            topic.check(which[0])
        at = moment_ms(request.text("time")) if request.text("time") else None
        bounds = {
            index: (first if at is None else begin, end)
            for index, (first, end, begin) in topic.bounds(which, at).items()
        }
        cursor = Cursor.parse(request.text("cursor")) if request.text("cursor") else Cursor(0, 0)
        seconds = BATCH_S if request.text("cursor") else FIRST_S
        done = step(topic, bounds, cursor, matches, MOST_FOUND - found_before, seconds)
    count = found_before + len(done.found)
    is_full = count >= MOST_FOUND
    query = {**{each: request.text(each) for each in ("partition", "search", "where", "as", "time")}, "found": count}
    following = None
    if done.cursor is not None and not is_full:
        following = f"/topics/{part(name)}/search?{urlencode({**query, 'cursor': str(done.cursor)})}"
    rows = [row(each, kind, registry) for each in done.found]
    values = {"done": done.done, "total": done.total, "count": count, "is_full": is_full, "most": MOST_FOUND}
    return Shown("search_step.html", {"topic": name, "rows": rows, "following": following, **values})


def tail(request: PageRequest) -> Answer:
    """Shows records of a topic as they arrive, from now on."""
    name, kind = request.path["topic"], kind_of(request)
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        which = list(topic.leaders)
        if request.text("partition") not in ("", "all"):
            topic.check(request.whole("partition"))
            which = [request.whole("partition")]
        ends = {index: end for index, (_, end, _) in topic.bounds(which[:MOST_FOLLOWED]).items()}
    values = {"topic": name, "kind": kind, "kinds": KINDS, "partition": request.text("partition") or "all"}
    left_out = max(0, len(which) - MOST_FOLLOWED)
    partitions = list(topic.leaders)
    following = _following(name, ends, kind)
    return Shown("tail.html", {**values, "partitions": partitions, "following": following, "left_out": left_out})


def _following(name: str, offsets: dict[int, int], kind: str) -> str:
    at = ",".join(f"{partition}:{offset}" for partition, offset in offsets.items())
    return f"/topics/{part(name)}/tail/step?{urlencode({'at': at, 'as': kind})}"


def tail_step(request: PageRequest) -> Answer:
    """Shows the records since the offsets in the address."""
    name, kind = request.path["topic"], kind_of(request)
    cursors = [Cursor.parse(each) for each in request.text("at").split(",") if each][:MOST_FOLLOWED]
    offsets = {each.partition: each.offset for each in cursors}
    new: list[Found] = []
    with request.sources.client.admin() as admin:
        topic = Topic(admin, existing(admin, name))
        for index, fetched in topic.fetch(offsets, size=64 << 10, max_wait_ms=WAIT_MS).items():
            for batch in fetched.batches:
                records = [each for each in records_of(batch) if each.offset >= offsets[index]]
                new.extend(Found(index, each, batch) for each in records if not batch.is_control)
                offsets[index] = max(offsets[index], batch.next_offset)
    new.sort(key=lambda each: (each.record.timestamp, each.partition, each.record.offset), reverse=True)
    rows: list[dict[str, Any]] = [row(each, kind, request.sources.registry) for each in new[:MOST_NEW]]
    left_out = max(0, len(new) - MOST_NEW)
    values = {"topic": name, "rows": rows, "left_out": left_out, "following": _following(name, offsets, kind)}
    return Shown("tail_step.html", values)


ROUTES: Final[Routes] = (
    Route("/topics/{topic}/search", search),
    Route("/topics/{topic}/tail", tail),
    Route("/topics/{topic}/tail/step", tail_step),
)
