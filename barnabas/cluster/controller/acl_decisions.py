"""Decides on ACLs: which can be created, and which ones filters delete.

Knows nothing of what they allow. Rules of Apache Kafka's ``AclControlManager``.
"""

from barnabas.cluster.controller.commands import CreateAcls, DeleteAcls
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.records import acl_record
from barnabas.errors import InvalidRequest, KafkaError, UnknownServerError
from barnabas.security.acls import CLUSTER_NAME, Acl, Operation, PatternType, Permission, ResourceType
from barnabas.uuids import random_uuid
from barnabas.wire.messages.metadata_records import RemoveAccessControlEntryRecord


def create_acls(command: CreateAcls, image: MetadataImage, around: Surroundings) -> Decision:
    """Creates each ACL by itself. One that exists is created again without a record."""
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
    """Checks an ACL that is to be created.

    :raises InvalidRequest: a code is unknown, a name is empty, the principal has no type, or the cluster is not named
        :data:`CLUSTER_NAME`
    :raises UnknownServerError: a code is one of filters only, as Apache Kafka answers
    """
    codes = (
        (ResourceType, acl.resource_type, (ResourceType.ANY,)),
        (PatternType, acl.pattern_type, (PatternType.ANY, PatternType.MATCH)),
        (Operation, acl.operation, (Operation.ANY,)),
        (Permission, acl.permission, (Permission.ANY,)),
    )
    for kind, code, _ in codes:
        if code not in set(kind) or code == kind(0):
            raise InvalidRequest(f"Invalid {kind.__name__.lower()}")
    if any(code in of_filters for _, code, of_filters in codes):
        raise UnknownServerError
    if not acl.resource_name:
        raise InvalidRequest("Resource name should not be empty")
    if ":" not in acl.principal:
        raise InvalidRequest(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    is_named = acl.pattern_type == PatternType.LITERAL and acl.resource_name == CLUSTER_NAME
    is_prefix = acl.pattern_type == PatternType.PREFIXED and CLUSTER_NAME.startswith(acl.resource_name)
    if acl.resource_type == ResourceType.CLUSTER and not is_named and not is_prefix:
        raise InvalidRequest(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")


def delete_acls(command: DeleteAcls, image: MetadataImage, around: Surroundings) -> Decision:
    """Deletes the ACLs that match the filters. One that matches several filters is in the result of each."""
    results = [[acl for acl in image.acl_ids if each.matches(acl)] for each in command.filters]
    matched = dict.fromkeys(acl for acls in results for acl in acls)
    return Decision([RemoveAccessControlEntryRecord(id=image.acl_ids[acl]) for acl in matched], results)
