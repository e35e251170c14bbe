"""Validates that values of records name a schema of their topic, for topics with ``barnabas.value.schema.validation``.

Knows nothing of requests, and does not decode values. The formats are those of Confluent's serializers: a zero byte and
the id before the value, or the GUID in a header; the subject is that of ``TopicNameStrategy``.
"""

import uuid
from functools import cached_property
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.batch import RecordBatch
from barnabas.records.record import Record, records_of
from barnabas.records.validation import refused_for
from barnabas.registry.schemas_log import SchemasLog
from barnabas.registry.store import Version

MAGIC: Final = b"\0"
PREFIX_SIZE: Final = 5
HEADER: Final = "__value_schema_id"
HEADER_MAGIC: Final = b"\1"


class ValueCheck:
    """The check of one node, by its copy of ``_schemas``."""

    def __init__(self, log: SchemasLog) -> None:
        self._log = log

    def __call__(self, topic: str, batch: RecordBatch) -> None:
        """Checks a batch. :raises InvalidRecord: a value names no schema of the topic; each such record is named"""
        self._log.read()
        subject = f"{topic}-value"
        known = Known(self._log.store.versions(subject))
        wrong = []
        for index, record in enumerate(records_of(batch)):
            why = _refusal(record, subject, known)
            if why is not None:
                wrong.append((index, why))
        if wrong:
            raise refused_for(wrong, InvalidRecord)


class Known:
    """The schemas of a subject, for all records of a batch."""

    def __init__(self, versions: list[Version]) -> None:
        self._versions = versions

    @cached_property
    def ids(self) -> set[int]:
        return {each.id for each in self._versions}

    @cached_property
    def guids(self) -> set[str]:
        return {each.content.guid for each in self._versions}


def _refusal(record: Record, subject: str, known: Known) -> str | None:
    """Returns the error of the value of a record; None if it is valid. A tombstone needs no schema."""
    value = record.value
    if value is None:
        return None
    named = next((given for name, given in record.headers if name == HEADER), None)
    if named is not None and len(named) == 17 and bytes(named[:1]) == HEADER_MAGIC:
        guid = str(uuid.UUID(bytes=bytes(named[1:])))
        is_known, identity = guid in known.guids, f"the GUID {guid}"
    elif len(value) >= PREFIX_SIZE and bytes(value[:1]) == MAGIC:
        schema_id = int.from_bytes(value[1:PREFIX_SIZE], "big")
        is_known, identity = schema_id in known.ids, f"the id {schema_id}"
    else:
        return "The value does not begin with the id of a schema"
    return None if is_known else f"The subject {subject} has no schema with {identity}"
