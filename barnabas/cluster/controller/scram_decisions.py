"""Decides on SCRAM credentials: which ones can be set, and which ones can be removed.

Knows nothing of how clients authenticate. The rules are those of Apache Kafka's ``ScramControlManager`` (KIP-554).
"""

from typing import Final

from barnabas.cluster.controller.commands.scram import (
    AlteredCredentials,
    AlterUserScramCredentials,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import (
    DuplicateResource,
    KafkaError,
    ResourceNotFound,
    UnacceptableCredential,
    UnknownServerError,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from barnabas.security.sasl.scram import CODES, MAX_ITERATIONS, MIN_ITERATIONS, keys_of
from barnabas.wire.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord

Record = UserScramCredentialRecord | RemoveUserScramCredentialRecord

NAMES: Final = {code: name for name, code in CODES.items()}
"""The mechanisms by their codes."""

SINCE: Final = 11
"""The first metadata.version with SCRAM credentials (``MetadataVersion.isScramSupported``)."""


def alter_user_scram_credentials(
    command: AlterUserScramCredentials, image: MetadataImage, around: Surroundings
) -> Decision:
    """Sets and removes the credential of each user independently. A duplicate user is refused."""
    changes: list[ScramDeletion | ScramUpsertion] = [*command.deletions, *command.upsertions]
    if image.metadata_version < SINCE:
        error = UnsupportedVersion("The current metadata.version does not support SCRAM")
        return Decision([], [AlteredCredentials(user, error) for user in dict.fromkeys(each.user for each in changes)])
    records: dict[str, Record] = {}
    errors: dict[str, KafkaError] = {}
    for each in changes:
        user = each.user
        if user in errors:
            continue
        if user in records:
            del records[user]
            errors[user] = DuplicateResource("A user credential cannot be altered twice in the same request")
            continue
        try:
            records[user] = upserted(each) if isinstance(each, ScramUpsertion) else deleted(each, image)
        except KafkaError as error:
            errors[user] = error
    results = [AlteredCredentials(user) for user in records]
    results += [AlteredCredentials(user, error) for user, error in errors.items()]
    return Decision(list(records.values()), results)


def upserted(change: ScramUpsertion) -> UserScramCredentialRecord:
    """Returns the record of the new credential.

    :raises UnacceptableCredential: the name is empty, or the iterations are out of range
    :raises UnsupportedSaslMechanism: the mechanism is unknown
    :raises UnknownServerError: the salted password is empty, as in Apache Kafka
    """
    mechanism = mechanism_of(change)
    if change.iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")
    if not change.salted_password:
        raise UnknownServerError
    stored_key, server_key = keys_of(mechanism, change.salted_password)
    return UserScramCredentialRecord(
        name=change.user,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=change.iterations,
    )


def deleted(change: ScramDeletion, image: MetadataImage) -> RemoveUserScramCredentialRecord:
    """Returns the record that removes the credential.

    :raises UnacceptableCredential: the name is empty
    :raises UnsupportedSaslMechanism: the mechanism is unknown
    :raises ResourceNotFound: there is no such credential
    """
    mechanism_of(change)
    if (change.user, change.mechanism) not in image.credentials:
        raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=change.user, mechanism=change.mechanism)


def mechanism_of(change: ScramUpsertion | ScramDeletion) -> str:
    if not change.user:
        raise UnacceptableCredential("Username must not be empty")
    mechanism = NAMES.get(change.mechanism)
    if mechanism is None:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    return mechanism
