"""Guards: each checks the rights that one API needs.

Knows nothing of any API: the table names fields and errors. A guard gives the handler a request with the allowed
entries only, and adds the errors of the others to its response.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from barnabas.api_handlers.access import Access
from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import shaped
from barnabas.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
)
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import ZERO_UUID

R = TypeVar("R", bound=Response)

Serve = Callable[[Any], Answer]
"""Calls the handler with a request. An error that the handler raises becomes a response."""

ERROR_OF: dict[ResourceType, type[KafkaError]] = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
    ResourceType.DELEGATION_TOKEN: DelegationTokenAuthorizationFailed,
    ResourceType.USER: DelegationTokenAuthorizationFailed,
}
"""The error of a missing right, by the type of the resource."""


class Guarded(NamedTuple):
    """A request at its guard."""

    request: Any
    context: Context
    access: Access
    serve: Serve

    def refused(
        self, error: type[KafkaError], request: Request | None = None, *, has_message: bool = False
    ) -> Response:
        """Returns the response that has the error for everything in the request.

        :param has_message: whether the response has the error's text, which Apache Kafka mostly leaves out
        """
        version = self.context.api_version
        raised = (
            error(str(error())) if has_message else error()
        )  # an error without arguments counts as one without text
        response: Response = shaped(request or self.request, raised, version)
        if not has_message:
            _silence(response, version)
        return response


def _silence(response: Struct, version: int) -> None:
    """Removes the error messages."""
    for field in response.wire_fields():
        value = getattr(response, field.name)
        if field.name == "error_message":
            response.error_message = None if version in field.nullable else ""  # type: ignore[attr-defined]
        elif field.is_array:
            for each in value or ():
                if isinstance(each, Struct):
                    _silence(each, version)


Guard = Callable[[Guarded], Answer]


def with_entries(request: Request, field: str, entries: Sequence[Any]) -> Any:
    """Returns a copy of the request with other entries in one of its arrays."""
    changed = copy.copy(request)
    setattr(changed, field, list(entries))
    return changed


# ---------------------------------------------------------------- guards


def everybody(guarded: Guarded) -> Answer:
    """Needs no right."""
    return guarded.serve(guarded.request)


def on_cluster(*operations: Operation, has_message: bool = True, inner: Guard = everybody) -> Guard:
    """Needs one of the operations on the cluster, and then what ``inner`` needs."""

    def guard(guarded: Guarded) -> Answer:
        last = operations[-1]
        if any(guarded.access.on_cluster(each, logs_refusal=each is last) for each in operations):
            return inner(guarded)
        return guarded.refused(ClusterAuthorizationFailed, has_message=has_message)

    return guard


def on(
    operation: Operation, kind: ResourceType, field: str, inner: Guard = everybody, *, has_message: bool = False
) -> Guard:
    """Needs the operation on the resource that the field names, and then what ``inner`` needs."""

    def guard(guarded: Guarded) -> Answer:
        if guarded.access.allows(operation, kind, getattr(guarded.request, field)):
            return inner(guarded)
        return guarded.refused(ERROR_OF[kind], has_message=has_message)

    return guard


class Order(Enum):
    """The position of the refused entries in the response."""

    FIRST = "before the others"
    LAST = "after the others"
    REQUEST = "in the order of the request"


@dataclass(frozen=True)
class EachOf:
    """Needs an operation on the resource of each entry. Allowed entries are answered as usual."""

    operation: Operation
    kind: ResourceType
    entries: str  #: the array of the request
    name: str  #: the field of an entry with the resource's name; empty if the entry is the name
    answers: str  #: the array of the response
    order: Order = Order.LAST
    has_message: bool = False  #: whether refusals have the error's text
    refuse: Callable[[Guarded, Any], Response] | None = None
    """Returns the response with the refusals, if it is not the API's error response."""

    def __call__(self, guarded: Guarded) -> Answer:
        entries = getattr(guarded.request, self.entries)
        if entries is None:
            return guarded.serve(guarded.request)
        names = [self.name_of(each, guarded.context) for each in entries]
        known = (name for name in names if name is not None)
        allowed = guarded.access.allowed(self.operation, self.kind, known)
        return split(guarded, self, [name is None or name in allowed for name in names])

    def name_of(self, entry: Any, context: Context) -> str | None:
        """Returns the name of an entry's resource; None for a topic id that does not exist, which hides nothing."""
        name: str = getattr(entry, self.name) if self.name else entry
        return name if name or self.kind is not ResourceType.TOPIC else topic_name(entry, context)


def topic_name(entry: Any, context: Context) -> str | None:
    """Returns the name of a topic that the request names by its id; None if there is no such topic."""
    topic_id = getattr(entry, "topic_id", ZERO_UUID)
    return entry.name if topic_id == ZERO_UUID else context.broker.topic_name(topic_id)


def split(guarded: Guarded, each: EachOf, is_allowed: Iterable[bool]) -> Answer:
    """Calls the handler with the allowed entries, and refuses the others."""
    request = guarded.request
    entries = getattr(request, each.entries)
    verdicts = list(is_allowed)
    if all(verdicts):
        return guarded.serve(request)
    allowed = [entry for entry, verdict in zip(entries, verdicts, strict=True) if verdict]
    hidden = [entry for entry, verdict in zip(entries, verdicts, strict=True) if not verdict]

    def refusals() -> Response:
        rest = with_entries(request, each.entries, hidden)
        if each.refuse is not None:
            return each.refuse(guarded, rest)
        return guarded.refused(ERROR_OF[each.kind], rest, has_message=each.has_message)

    def add_refusals(response: Response) -> Response:
        if getattr(response, "error_code", 0):
            return response  # with an error of the whole request there are no entries
        answered, refused = getattr(response, each.answers) or [], getattr(refusals(), each.answers) or []
        if each.order is Order.REQUEST and len(answered) == len(allowed):
            rest = iter(answered), iter(refused)
            merged = [next(rest[0] if verdict else rest[1]) for verdict in verdicts]
        else:
            merged = [*refused, *answered] if each.order is Order.FIRST else [*answered, *refused]
        setattr(response, each.answers, merged)
        return response

    if not allowed:
        return refusals()
    return then(guarded.serve(with_entries(request, each.entries, allowed)), add_refusals)


def then_showing(guard: Guard, change: Callable[[Guarded, Any], Response]) -> Guard:
    """Returns the guard, whose response is then filtered or completed by the sender's rights."""
    return lambda guarded: then(guard(guarded), lambda response: change(guarded, response))
