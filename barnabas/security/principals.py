"""Principals: the identities of clients.

Knows nothing of how a client authenticates. Follows Apache Kafka's ``KafkaPrincipal``.
"""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """The identity of a client, in Kafka's notation: ``User:alice``."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


USER: Final = "User"
"""The type of every principal that a broker creates."""

ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""A client that has not authenticated (``KafkaPrincipal.ANONYMOUS``)."""
