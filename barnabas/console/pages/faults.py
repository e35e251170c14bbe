"""The page of features that only a Barnabas broker for tests has: faults, and recorded requests.

Knows nothing of how rules work: the broker's admin API does.
"""

import json
from typing import Any, Final
from urllib.parse import urlencode

from barnabas.console.admin_api import Refused, ask
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Missing

REQUESTS_SHOWN: Final = 100
NOT_RECORDED: Final = 409


def _ask(request: PageRequest, method: str, path: str, body: str | None = None) -> Any:
    if request.sources.admin_api is None:
        raise Missing("No admin API is known.", "Start the broker with --dev, or name its admin API by --admin-api.")
    return ask(request.sources.admin_api, request.sources.admin_token, method, path, body)


def faults(request: PageRequest) -> Answer:
    api, client = request.text("api"), request.text("client_id")
    wanted = {name: text for name, text in (("api", api), ("client_id", client)) if text}
    rules, report = _ask(request, "GET", "/faults"), _ask(request, "GET", "/faults/report")
    seen = _seen(request, wanted)
    for each in seen or ():
        each["detail"] = json.dumps({"request": each.get("request"), "answer": each.get("answer")}, indent=2)
    return Shown("faults.html", {"rules": rules, "report": report, "seen": seen, "api": api, "client_id": client})


def _seen(request: PageRequest, wanted: dict[str, str]) -> list[dict[str, Any]] | None:
    """Returns the newest requests; None if the broker does not record any."""
    try:
        found: list[dict[str, Any]] = _ask(request, "GET", f"/requests?{urlencode(wanted)}")
    except Refused as error:
        if error.status == NOT_RECORDED:
            return None
        raise
    return found[: -REQUESTS_SHOWN - 1 : -1]


def change(request: PageRequest) -> Answer:
    """Sets the rules of a script, removes one or all, or starts or stops the recording of requests."""
    action = request.text("action")
    if action == "set":
        _ask(request, "POST", "/faults", request.form.get("script", ""))
    elif action == "lift":
        _ask(request, "DELETE", f"/faults/{request.whole('id')}")
    elif action in _PLAIN:
        _ask(request, *_PLAIN[action])
    else:
        raise ValueError(f"There is no action {action!r}.")
    return Moved("/faults")


_PLAIN: Final = {
    "lift-all": ("DELETE", "/faults"), "record": ("POST", "/requests"), "stop": ("DELETE", "/requests"),
}  # fmt: skip

ROUTES: Final[Routes] = (Route("/faults", faults), Route("/faults", change, "POST"))
