"""The entities of quotas, and which of several quotas applies to a client.

Knows nothing of usage. Follows Kafka's ``ClientQuotaEntity`` and ``DefaultQuotaCallback``.
"""

from collections.abc import Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

Entity = tuple[tuple[str, bool, str], ...]
"""Sorted parts of an entity, as in the image: its type, whether it has a name (False: the default), and the name."""

Limits = Mapping[Entity, float]
"""The values of one quota, by entity."""


class Limit(NamedTuple):
    """The quota that applies to a client. Clients with the same ``user`` and ``client_id`` share it."""

    bound: float
    user: str  #: empty: the quota applies to all users
    client_id: str  #: empty: the quota applies to all client ids


def limit_of(limits: Limits, user: str, client_id: str) -> Limit | None:
    """Returns the most specific quota for the client; None if there is none.

    >>> limits = {((USER, False, ""),): 10.0, ((CLIENT_ID, True, "app"),): 20.0}
    >>> limit_of(limits, "alice", "app")
    Limit(bound=10.0, user='alice', client_id='')
    """
    of_user, any_user = (USER, True, user), (USER, False, "")
    of_id, any_id = (CLIENT_ID, True, client_id), (CLIENT_ID, False, "")
    by_precedence: tuple[tuple[Entity, str, str], ...] = (
        ((of_id, of_user), user, client_id),
        ((any_id, of_user), user, client_id),
        ((of_user,), user, ""),
        ((of_id, any_user), user, client_id),
        ((any_id, any_user), user, client_id),
        ((any_user,), user, ""),
        ((of_id,), "", client_id),
        ((any_id,), "", client_id),
    )
    for entity, of, by in by_precedence:
        bound = limits.get(entity)
        if bound is not None:
            return Limit(bound, of, by)
    return None


def ip_limit_of(limits: Limits, address: str) -> float | None:
    """Returns the quota of an address, or else the default for addresses; None if there is none."""
    return limits.get(((IP, True, address),), limits.get(((IP, False, ""),)))
