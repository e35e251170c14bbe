"""The pages of the console, in one module for each subject.

Knows nothing of HTTP.
"""

from typing import Final

from barnabas.console.page import Routes
from barnabas.console.pages import (
    faults,
    following,
    groups,
    logs,
    producing,
    records,
    rights,
    schemas,
    security,
    topics,
    transactions,
)

MODULES: Final = (topics, records, following, producing, logs, groups, transactions, security, rights, schemas, faults)


def routes() -> Routes:
    """Returns the addresses of all pages."""
    return [route for module in MODULES for route in module.ROUTES]
