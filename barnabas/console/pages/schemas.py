"""Pages on a schema registry: subjects, versions, and differences between versions.

Knows nothing of Kafka.
"""

import difflib
from typing import Final
from urllib.parse import quote

from barnabas.cli.schemas import Client, pretty
from barnabas.console.page import Answer, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Missing, Page

SUBJECTS_ON_A_PAGE: Final = 100


def _client(request: PageRequest) -> Client:
    if request.sources.registry is None:
        raise Missing("No schema registry is known.", "Start the broker with --schema-registry, or name one.")
    return Client(request.sources.registry)


def subjects(request: PageRequest) -> Answer:
    search = request.text("search")
    found = [each for each in _client(request)("GET", "/subjects") if search.lower() in each.lower()]
    page = Page.of(sorted(found), request.whole("page", 1), SUBJECTS_ON_A_PAGE)
    return Shown("subjects.html", {"page": page, "search": search})


def subject(request: PageRequest) -> Answer:
    """Shows a version of a subject, by default the latest, and its difference from another version."""
    client, name = _client(request), request.path["subject"]
    if name not in client("GET", "/subjects"):
        raise Missing(f"There is no subject {name}.")
    path = f"/subjects/{quote(name, safe='')}"
    versions = client("GET", f"{path}/versions")
    version, before = request.whole("version") or versions[-1], request.whole("before")
    if unknown := {version, before} - {0, *versions}:
        raise Missing(f"{name} has no version {min(unknown)}.")
    found = client("GET", f"{path}/versions/{version}")
    text = pretty(found)
    lines: list[str] = []
    if before:
        old = pretty(client("GET", f"{path}/versions/{before}"))
        names = f"version {before}", f"version {version}"
        lines = list(difflib.unified_diff(old.splitlines(), text.splitlines(), *names, lineterm=""))
    level = client("GET", f"/config/{quote(name, safe='')}?defaultToGlobal=true").get("compatibilityLevel")
    return Shown(
        "subject.html",
        {"subject": name, "versions": versions, "version": version, "before": before, "schema": found, "text": text,
         "lines": lines, "level": level},
    )  # fmt: skip


ROUTES: Final[Routes] = (Route("/schemas", subjects), Route("/schemas/{subject:path}", subject))
