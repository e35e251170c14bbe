"""Pages on groups of each type: members, assignment, lag over time, and resets of offsets with a preview.

Knows nothing of how a type of group is described.
"""

from typing import Any, Final

from barnabas.cli.group_offsets import reset_offsets
from barnabas.cli.group_tables import Table, member_tables, offset_tables
from barnabas.cli.group_views import CLASSIC, GroupView, describe_one, types_of
from barnabas.clock import SystemClock
from barnabas.console.filters import part
from barnabas.console.lags import chart
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Missing, Page

GROUPS_ON_A_PAGE: Final = 100

TARGETS: Final = {
    "earliest": "the earliest offset", "latest": "the latest offset", "current": "the current offset",
    "to_offset": "this offset:", "shift_by": "shifted by:", "to_datetime": "the first record from this time (UTC):",
    "by_duration": "the first record of the last (PT1H):",
}  # fmt: skip
WITH_VALUE: Final = ("to_offset", "shift_by", "to_datetime", "by_duration")


def groups(request: PageRequest) -> Answer:
    search = request.text("search")
    with request.sources.client.admin() as admin:
        found = sorted(admin.list_groups(), key=lambda each: str(each["group_id"]))
    found = [each for each in found if search.lower() in each["group_id"].lower()]
    return Shown("groups.html", {"page": Page.of(found, request.whole("page", 1), GROUPS_ON_A_PAGE), "search": search})


def _described(admin: Any, name: str) -> tuple[GroupView, list[Table], list[Table]]:
    """Returns a group, its offsets and its members. :raises Missing: the group does not exist"""
    kind = types_of(admin).get(name)
    if kind is None:
        raise Missing(f"There is no group {name}.")
    view = describe_one(admin, name, kind)
    return view, offset_tables(admin, [view]), member_tables(admin, [view])


def _lag(offsets: list[Table]) -> int:
    return sum(max(0, each["lag"] or 0) for table in offsets for each in table.rows)


def group(request: PageRequest) -> Answer:
    with request.sources.client.admin() as admin:
        view, offsets, members = _described(admin, request.path["group"])
    tables = [("Offsets and lag", offsets), ("Members", members)]
    return Shown("group.html", {"group": view, "tables": tables, "verbose": True, "lag": _lag(offsets)})


def lag(request: PageRequest) -> Answer:
    """Records the group's lag, and shows the lags since the page was opened."""
    name = request.path["group"]
    with request.sources.client.admin() as admin:
        view, offsets, _ = _described(admin, name)
    now = _lag(offsets)
    picture = chart(request.sources.lags.note(name, SystemClock().time_ms(), now))
    return Shown("lag.html", {"group": view, "chart": picture, "lag": now})


def _wanted(request: PageRequest, *, execute: bool) -> dict[str, Any]:
    """Returns the arguments of ``reset_offsets``. :raises ValueError: the target is unknown, or lacks a number"""
    target, value, topic = request.text("target") or "earliest", request.text("value"), request.text("topic")
    if target not in TARGETS:
        raise ValueError(f"There is no offset {target!r} to reset to; there are {', '.join(TARGETS)}.")
    given: dict[str, Any] = dict.fromkeys(("target", "from_file", *WITH_VALUE))
    if target not in WITH_VALUE:
        given["target"] = target
    elif not value:
        raise ValueError(f"Say what is meant by “{TARGETS[target]}”.")
    else:
        given[target] = int(value) if target in ("to_offset", "shift_by") else value
    return {**given, "topics": (topic,) if topic else (), "all_topics": not topic, "execute": execute}


def ask_reset(request: PageRequest) -> Answer:
    """Shows the offsets before and after a reset, without changing anything."""
    name = request.path["group"]
    rows: list[dict[str, Any]] = []
    with request.sources.client.admin() as admin:
        view, offsets, _ = _described(admin, name)
        before = [row for table in offsets for row in table.rows]
        if request.text("target"):
            current = {(row["topic"], row["partition"]): _offset_of(row) for row in before}
            rows = reset_offsets(admin, name, view.type, _wanted(request, execute=False))
            rows = [{**row, "before": current.get((row["topic"], row["partition"]))} for row in rows]
    topics = sorted({row["topic"] for row in before})
    fields = {each: request.text(each) for each in ("topic", "target", "value")}
    return Shown("reset.html", {"group": view, "rows": rows, "topics": topics, "targets": TARGETS, **fields})


def _offset_of(row: dict[str, Any]) -> Any:
    return row.get("current_offset", row.get("start_offset"))


def reset(request: PageRequest) -> Answer:
    name = request.path["group"]
    with request.sources.client.admin() as admin:
        rows = reset_offsets(admin, name, types_of(admin).get(name, CLASSIC), _wanted(request, execute=True))
    failed = [row for row in rows if row["error"]]
    if failed:
        raise ValueError(f"{len(failed)} of {len(rows)} partitions were not reset: {failed[0]['error']}")
    return Moved(f"/groups/{part(name)}")


def ask_delete(request: PageRequest) -> Answer:
    with request.sources.client.admin() as admin:
        view, offsets, _ = _described(admin, request.path["group"])
    count = sum(len(table.rows) for table in offsets)
    return Shown("delete_group.html", {"group": view, "offsets": count, "is_wrong": False})


def delete(request: PageRequest) -> Answer:
    name = request.path["group"]
    with request.sources.client.admin() as admin:
        view, offsets, _ = _described(admin, name)
        if request.form.get("name", "").strip() != name:
            count = sum(len(table.rows) for table in offsets)
            return Shown("delete_group.html", {"group": view, "offsets": count, "is_wrong": True}, 400)
        result = admin.delete_groups([name])[name]
    if result != "OK":
        raise ValueError(f"Group {name} was not deleted: {result}")
    return Moved("/groups")


ROUTES: Final[Routes] = (
    Route("/groups", groups),
    Route("/groups/{group:path}/lag", lag),
    Route("/groups/{group:path}/reset", ask_reset),
    Route("/groups/{group:path}/reset", reset, "POST"),
    Route("/groups/{group:path}/delete", ask_delete),
    Route("/groups/{group:path}/delete", delete, "POST"),
    Route("/groups/{group:path}", group),
)
