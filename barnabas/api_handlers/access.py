"""The rights of the sender of one request.

Knows nothing of the request but the name of its API. Apache Kafka's ``AuthHelper``.
"""

import logging
from collections import Counter
from collections.abc import Iterable

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import bits
from barnabas.security.acls import CLUSTER_NAME, Operation, Resource, ResourceType
from barnabas.security.authorizer import Requester, logger

SUPPORTED = {
    ResourceType.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE, Operation.ALTER, Operation.DESCRIBE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS, Operation.IDEMPOTENT_WRITE,
    ),
}  # fmt: skip
"""The operations on a type of resource that responses name (``AclEntry.supportedOperations``)."""


class Access:
    """The rights of the sender of one request. Only for a broker with an authorizer."""

    __slots__ = ("_authorizer", "_request", "_requester")

    def __init__(self, context: Context, request: str) -> None:
        """:param request: the name of the API, for the log"""
        session = context.session
        authorizer = context.broker.authorizer
        assert authorizer is not None
        self._authorizer = authorizer
        self._requester = Requester(str(session.principal), session.client_host)
        self._request = request

    def allows(
        self, operation: Operation, kind: ResourceType, name: str, *, count: int = 1, logs_refusal: bool = True
    ) -> bool:
        """Returns whether the operation is allowed, and logs the decision.

        :param count: how often the request names the resource
        :param logs_refusal: False where a refusal only hides the resource, or where another right is enough
        """
        resource = Resource(kind, name)
        allowed = self._authorizer.allows(self._requester, operation, resource)
        if logger.isEnabledFor(logging.DEBUG) if allowed else logs_refusal:
            self._authorizer.audit(self._requester, operation, resource, self._request, count)
        return allowed

    def on_cluster(self, operation: Operation, *, logs_refusal: bool = True) -> bool:
        """Returns whether the operation on the cluster is allowed."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME, logs_refusal=logs_refusal)

    def allowed(
        self, operation: Operation, kind: ResourceType, names: Iterable[str], *, logs_refusal: bool = True
    ) -> frozenset[str]:
        """Returns the names of the resources on which the operation is allowed. Each name is checked once."""
        return frozenset(
            name
            for name, count in Counter(names).items()
            if self.allows(operation, kind, name, count=count, logs_refusal=logs_refusal)
        )

    def on_some(self, operation: Operation, kind: ResourceType) -> bool:
        """Returns whether the operation is allowed on some resource of the type."""
        return self._authorizer.allows_some(self._requester, operation, kind)

    def operations(self, kind: ResourceType, name: str) -> int:
        """Returns the allowed operations on a resource, as a bit field of a response."""
        return bits(*(each for each in SUPPORTED[kind] if self.allows(each, kind, name, logs_refusal=False)))

    def cluster_operations(self) -> int:
        """Returns the allowed operations on the cluster, as a bit field of a response."""
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME)


def access_to(context: Context, request: str) -> Access | None:
    """Returns the rights of the sender; None if there is no authorizer, and everything is allowed.

    :param request: the name of the API, for the log
    """
    return None if context.broker.authorizer is None else Access(context, request)
