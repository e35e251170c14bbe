"""Errors of the registry, each with its HTTP status, its five-digit code, and the text of Confluent's registry.

Knows nothing of HTTP beyond the status (``io.confluent.kafka.schemaregistry.rest.exceptions.Errors``).
"""

from typing import Final


class RegistryError(Exception):
    """An error response of the registry.

    :param code: five digits, of which the first three are the status; or the status alone
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def status(self) -> int:
        return self.code if self.code < 1000 else self.code // 100


INVALID_SCHEMA: Final = 42201

TEXTS: Final = {
    "subject_not_found": (40401, "Subject '{}' not found."),
    "version_not_found": (40402, "Version {} not found."),
    "schema_not_found": (40403, "Schema {}not found"),
    "subject_soft_deleted": (40404, "Subject '{}' was soft deleted. Set permanent=true to delete permanently"),
    "subject_not_soft_deleted": (
        40405,
        "Subject '{}' was not deleted first before being permanently deleted",
    ),
    "version_soft_deleted": (
        40406,
        "Subject '{}' Version {} was soft deleted. Set permanent=true to delete permanently",
    ),
    "version_not_soft_deleted": (
        40407,
        "Subject '{}' Version {} was not deleted first before being permanently deleted",
    ),
    "no_subject_compatibility": (40408, "Subject '{}' does not have subject-level compatibility configured"),
    "no_subject_mode": (40409, "Subject '{}' does not have subject-level mode configured"),
    "invalid_schema": (INVALID_SCHEMA, "Invalid schema: {}"),
    "invalid_version": (
        42202,
        "The specified version '{}' is not a valid version id. Allowed values are between [1, 2^31-1] and the string "
        '"latest"',
    ),
    "invalid_level": (
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    ),
    "invalid_mode": (
        42204,
        "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, FORWARD and IMPORT",
    ),
    "not_permitted": (42205, "{}"),
    "reference_exists": (42206, "One or more references exist to the schema {{magic=1,keytype=SCHEMA,{}}}."),
    "id_mismatch": (42207, "{}"),
    "invalid_subject": (42208, "The specified subject '{}' is not a valid subject."),
    "context_not_empty": (42211, "The specified context '{}' is not empty."),
    "store_error": (50001, "{}"),
    "timed_out": (50002, "{}"),
    "forwarding_failed": (50003, "Error while forwarding the request to the leader: {}"),
    "unknown_leader": (50004, "The leader of the registry is not known."),
    "unprocessable": (422, "{}"),
    "incompatible": (409, "{}"),
}
"""By the name of the error, its code and its text."""


def error(name: str, *values: object) -> RegistryError:
    """Returns the error of that name in :data:`TEXTS`."""
    code, text = TEXTS[name]
    return RegistryError(code, text.format(*values))
