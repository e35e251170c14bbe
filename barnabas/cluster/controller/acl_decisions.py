"""Decides on ACLs: which ones can be created, and which ones are deleted by filters.

Knows nothing of what ACLs allow. The rules are those of Apache Kafka's ``AclControlManager``.
"""

from barnabas.cluster.controller.commands.acls import CreateAcls, DeleteAcls
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.records import acl_record
from barnabas.errors import InvalidRequest, KafkaError, UnknownServerError
from barnabas.security.acls import CLUSTER_NAME, Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from barnabas.uuids import random_uuid
from barnabas.wire.messages.metadata_records import RemoveAccessControlEntryRecord

NAMES = {
    ResourceType: "resourceType",
    PatternType: "patternType",
    Operation: "operation",
    Permission: "permissionType",
}
"""The codes of an ACL, with their names in Apache Kafka's error messages."""


def create_acls(command: CreateAcls, image: MetadataImage, around: Surroundings) -> Decision:
    """Creates each ACL independently. An ACL that exists succeeds without a record."""
    new: dict[Acl, None] = {}
    results: list[KafkaError | None] = []
    for acl in command.acls:
        try:
            check_acl(acl)
        except KafkaError as error:
            results.append(error)
        else:
            results.append(None)
            if acl not in image.acl_ids:
                new[acl] = None
    return Decision([acl_record(random_uuid(around.random.randbytes), acl) for acl in new], results)


def check_acl(acl: Acl) -> None:
    """Checks a new ACL.

    :raises InvalidRequest: a code is unknown, a name is empty, the principal has no type, or the resource is the
        cluster with another name than :data:`CLUSTER_NAME`
    :raises UnknownServerError: a code is valid only in filters, as in Apache Kafka
    """
    codes = (
        (ResourceType, acl.resource_type, (ResourceType.ANY,)),
        (PatternType, acl.pattern_type, (PatternType.ANY, PatternType.MATCH)),
        (Operation, acl.operation, (Operation.ANY,)),
        (Permission, acl.permission, (Permission.ANY,)),
    )
    for kind, code, _ in codes:
        if code not in set(kind):
            raise InvalidRequest(f"Invalid {NAMES[kind]} UNKNOWN")
    if any(code in of_filters for _, code, of_filters in codes):
        raise UnknownServerError
    if acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        raise InvalidRequest("Invalid empty resource name")
    if ":" not in acl.principal:
        raise InvalidRequest(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )


def delete_acls(command: DeleteAcls, image: MetadataImage, around: Surroundings) -> Decision:
    """Deletes the ACLs that match the filters. An ACL that matches several filters is in the result of each of them."""
    results: list[list[Acl] | KafkaError] = []
    matched: dict[Acl, None] = {}
    for each in command.filters:
        try:
            check_filter(each)
        except InvalidRequest as error:
            results.append(error)
        else:
            found = [acl for acl in image.acl_ids if each.matches(acl)]
            results.append(found)
            matched |= dict.fromkeys(found)
    return Decision([RemoveAccessControlEntryRecord(id=image.acl_ids[acl]) for acl in matched], results)


def check_filter(wanted: AclFilter) -> None:
    """Checks a filter.

    :raises InvalidRequest: a code is unknown
    """
    if wanted.resource_type not in set(ResourceType) or wanted.pattern_type not in set(PatternType):
        raise InvalidRequest("Unknown patternFilter.")
    if wanted.operation not in set(Operation) or wanted.permission not in set(Permission):
        raise InvalidRequest("Unknown entryFilter.")
