"""The page on access: ACLs, users with SCRAM credentials, quotas.

Knows nothing of how they are checked.
"""

from collections.abc import Callable
from typing import Any, Final

import click

from barnabas.cli import acls
from barnabas.cli.client import error_text
from barnabas.cli.client_entities import describe, display_name
from barnabas.console.page import Answer, PageRequest, Route, Routes, Shown
from barnabas.console.pages.rights import CHOICES, DEFAULT
from barnabas.console.reading import Page
from barnabas.security.acls import AclFilter

ON_A_PAGE: Final = 200
ENTITIES: Final = ((("users", None),), (("clients", None),), (("users", None), ("clients", None)), (("ips", None),))


def access(request: PageRequest) -> Answer:
    """Shows ACLs, credentials and quotas, or why they cannot be shown."""
    search = request.text("search").lower()
    with request.sources.client.admin() as admin:
        rules, why_no_rules = _rows_or_error(lambda: acls.listed(admin, [AclFilter()]))
        entities, why_no_entities = _rows_or_error(lambda: _entities(admin))
    rules = [each for each in rules if search in " ".join(map(str, each.values())).lower()]
    values = {**CHOICES, "acls": Page.of(rules, request.whole("page", 1), ON_A_PAGE), "columns": acls.COLUMNS}
    return Shown(
        "access.html",
        {**values, "why_no_acls": why_no_rules, "entities": entities, "why_no_entities": why_no_entities,
         "search": request.text("search")},
    )  # fmt: skip


def _rows_or_error(ask: Callable[[], list[dict[str, Any]]]) -> tuple[list[dict[str, Any]], str]:
    from kafka.errors import IncompatibleBrokerVersion, KafkaError

    try:
        return ask(), ""
    except click.ClickException as error:
        return [], error.format_message()
    except IncompatibleBrokerVersion:
        return [], "This version of Kafka does not tell."
    except KafkaError as error:
        return [], error_text(error)


def _entities(admin: Any) -> list[dict[str, Any]]:
    found = [each for entity in ENTITIES for each in describe(admin, entity)]
    return [
        {
            "name": display_name(each["entity"]),
            "configs": each["configs"],
            "fields": {kind: DEFAULT if name is None else name for kind, name in each["entity"].items()},
        }
        for each in found
    ]


ROUTES: Final[Routes] = (Route("/access", access),)
