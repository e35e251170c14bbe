"""Changes of access: ACLs, users with SCRAM credentials, and quotas are set, and removed after a confirmation.

Knows nothing of how they are listed.
"""

from enum import IntEnum
from typing import Final, TypeVar

from barnabas.cli import acls
from barnabas.cli.acl_options import OPERATIONS, as_filter
from barnabas.cli.client_entities import TYPES, Changes, Entity, alter
from barnabas.console.page import Answer, Moved, PageRequest, Route, Routes, Shown
from barnabas.console.reading import Missing
from barnabas.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from barnabas.security.quotas.entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from barnabas.security.sasl.scram import CODES, MIN_ITERATIONS

QUOTAS: Final = (
    PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE, CONNECTION_CREATION_RATE,
)  # fmt: skip

DEFAULT: Final = "<default>"
"""The name of the default entity in forms, which no user or client can have in quotas."""

CHOICES: Final = {
    "resource_types": [each.name for each in OPERATIONS],
    "operations": [each.name for each in Operation if each > Operation.ANY],
    "pattern_types": [PatternType.LITERAL.name, PatternType.PREFIXED.name],
    "permissions": [Permission.ALLOW.name, Permission.DENY.name],
    "mechanisms": list(CODES),
    "quotas": QUOTAS,
    "iterations": MIN_ITERATIONS,
}
"""The choices of the forms."""

E = TypeVar("E", bound=IntEnum)


def _question(what: str, loses: str, address: str, fields: dict[str, str], button: str) -> Answer:
    values = {"what": what, "loses": loses, "address": address, "fields": fields, "button": button}
    return Shown("ask_removal.html", values)


# ---------------------------------------------------------------- ACLs


def _code(kind: type[E], request: PageRequest, name: str) -> E:
    text = request.text(name)
    if text not in kind.__members__:
        raise ValueError(f"{name} is {text!r}, but must be one of {', '.join(kind.__members__)}.")
    return kind[text]


def _acl(request: PageRequest) -> Acl:
    """Parses the ACL of a form or an address. :raises ValueError: it is not valid"""
    resource_type = _code(ResourceType, request, "resource_type")
    if resource_type not in OPERATIONS:
        raise ValueError(f"resource_type must be one of {', '.join(each.name for each in OPERATIONS)}.")
    name = request.text("resource_name") or (CLUSTER_NAME if resource_type == ResourceType.CLUSTER else "")
    principal = request.text("principal")
    if not name:
        raise ValueError("An ACL needs the name of its resource: * is all.")
    if not principal.partition(":")[2]:
        raise ValueError(f"principal is {principal!r}, but must be like User:alice; User:* is everybody.")
    return Acl(
        resource_type, name, _code(PatternType, request, "pattern_type"), principal, request.text("host") or "*",
        _code(Operation, request, "operation"), _code(Permission, request, "permission"),
    )  # fmt: skip


def _in_words(acl: Acl) -> str:
    kind, pattern = ResourceType(acl.resource_type).name, PatternType(acl.pattern_type).name
    what = f"{Permission(acl.permission).name} {Operation(acl.operation).name}"
    return f"{what} on {kind} {acl.resource_name} ({pattern}) to {acl.principal} from {acl.host}"


def add_acl(request: PageRequest) -> Answer:
    wanted = _acl(request)
    of_type = OPERATIONS[ResourceType(wanted.resource_type)]
    if wanted.operation != Operation.ALL and wanted.operation not in of_type:
        names = ", ".join(each.name for each in of_type)
        raise ValueError(f"There is no operation {request.text('operation')} on that resource, but ALL, {names}.")
    with request.sources.client.admin() as admin:
        acls.add(admin, [wanted])
    return Moved("/access")


def ask_remove_acl(request: PageRequest) -> Answer:
    acl = _acl(request)
    loses = "the right that it gives" if acl.permission == Permission.ALLOW else "the denial: others may allow it then"
    fields = {name: request.text(name) for name in acls.COLUMNS}
    return _question(f"the ACL {_in_words(acl)}", loses, "/access/acls/remove", fields, "Remove this ACL")


def remove_acl(request: PageRequest) -> Answer:
    acl = _acl(request)
    with request.sources.client.admin() as admin:
        if not acls.remove(admin, [as_filter(acl)]):
            raise Missing(f"There is no ACL {_in_words(acl)}.")
    return Moved("/access")


# ---------------------------------------------------------------- users


def _mechanism(request: PageRequest) -> str:
    mechanism = request.text("mechanism")
    if mechanism not in CODES:
        raise ValueError(f"mechanism is {mechanism!r}, but must be one of {', '.join(CODES)}.")
    return mechanism


def _change_credential(request: PageRequest, value: str | None) -> Answer:
    user, mechanism = request.text("user"), _mechanism(request)
    if not user:
        raise ValueError("A credential needs the name of its user.")
    with request.sources.client.admin() as admin:
        alter(admin, (("users", user),), Changes({mechanism: value}, {}))
    return Moved("/access")


def set_password(request: PageRequest) -> Answer:
    """Sets a user's SCRAM credential; the password itself is not sent to the broker."""
    password = request.form.get("password", "")
    if not password:
        raise ValueError("A credential needs a password.")
    iterations = request.whole("iterations", MIN_ITERATIONS)
    return _change_credential(request, f"iterations={iterations},password={password}")


def ask_delete_credential(request: PageRequest) -> Answer:
    fields = {"user": request.text("user"), "mechanism": _mechanism(request)}
    what = f"the {fields['mechanism']} credential of user {fields['user']}"
    loses = "the password: the user cannot log in by this mechanism any more"
    return _question(what, loses, "/access/users/delete", fields, f"Delete the credential of {fields['user']}")


def delete_credential(request: PageRequest) -> Answer:
    return _change_credential(request, None)


# ---------------------------------------------------------------- quotas


def _entity(request: PageRequest) -> Entity:
    """Parses the entity of a form or an address. :raises ValueError: it is not valid"""
    named = [(kind, request.text(field)) for kind, field in TYPES.items() if request.text(field)]
    if not named or (len(named) > 1 and "ips" in dict(named)):
        raise ValueError("A quota is on a user, a client id, both of them, or an IP address.")
    return [(kind, "" if name == DEFAULT else name) for kind, name in named]


def _quota(request: PageRequest) -> str:
    quota = request.text("quota")
    if quota not in QUOTAS:
        raise ValueError(f"quota is {quota!r}, but must be one of {', '.join(QUOTAS)}.")
    return quota


def _change_quota(request: PageRequest, value: float | None) -> Answer:
    entity, quota = _entity(request), _quota(request)
    with request.sources.client.admin() as admin:
        alter(admin, entity, Changes({}, {quota: value}))
    return Moved("/access")


def set_quota(request: PageRequest) -> Answer:
    text = request.text("value")
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"A quota must be a number, not {text!r}.") from None
    return _change_quota(request, value)


def ask_remove_quota(request: PageRequest) -> Answer:
    entity, quota = _entity(request), _quota(request)
    name = ", ".join(f"{TYPES[kind]} {name or DEFAULT}" for kind, name in entity)
    fields = {TYPES[kind]: name or DEFAULT for kind, name in entity} | {"quota": quota}
    loses = "the limit: a quota of another entity holds, or none"
    return _question(f"the quota {quota} of {name}", loses, "/access/quotas/remove", fields, f"Remove {quota}")


def remove_quota(request: PageRequest) -> Answer:
    return _change_quota(request, None)


ROUTES: Final[Routes] = (
    Route("/access/acls", add_acl, "POST"),
    Route("/access/acls/remove", ask_remove_acl),
    Route("/access/acls/remove", remove_acl, "POST"),
    Route("/access/users", set_password, "POST"),
    Route("/access/users/delete", ask_delete_credential),
    Route("/access/users/delete", delete_credential, "POST"),
    Route("/access/quotas", set_quota, "POST"),
    Route("/access/quotas/remove", ask_remove_quota),
    Route("/access/quotas/remove", remove_quota, "POST"),
)
