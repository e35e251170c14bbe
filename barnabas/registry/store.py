"""The state of the registry: the result of applying the records of ``_schemas`` in order.

Knows nothing of logs and HTTP, nor of what is in a schema. The records are those of Confluent's registry
(``SchemaRegistryKeyType``), which Karapace uses as well; records of an unknown type are ignored.
"""

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.registry.subjects import context_of

SCHEMA: Final = "SCHEMA"
CONFIG: Final = "CONFIG"
MODE: Final = "MODE"
DELETE_SUBJECT: Final = "DELETE_SUBJECT"
CLEAR_SUBJECT: Final = "CLEAR_SUBJECT"
CONTEXT: Final = "CONTEXT"
NOOP: Final = "NOOP"

MAGIC: Final = {SCHEMA: 1}
"""The version of a key by its type, if it is not 0."""

Value = Mapping[str, Any]
Record = tuple[bytes, bytes | None]


def record(keytype: str, value: Value | None, **names: Any) -> Record:
    """Returns key and value of a record. The fields of the key are in the order in which Confluent's writes them."""
    key = {"keytype": keytype, **names, "magic": MAGIC.get(keytype, 0)}
    return _json(key), None if value is None else _json(value)


def _json(value: Value) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class Content(NamedTuple):
    """The content of a schema, independent of its subjects."""

    schema: str
    kind: str = "AVRO"
    references: tuple[tuple[str, str, int], ...] = ()  #: name, subject, version
    metadata: str = ""  #: as JSON
    rule_set: str = ""  #: as JSON

    @property
    def md5(self) -> bytes:
        digest = hashlib.md5(self.schema.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(f"{name}{subject}{version}".encode())
        digest.update(f"{self.metadata}{self.rule_set}".encode())
        return digest.digest()

    @property
    def guid(self) -> str:
        return str(uuid.UUID(bytes=self.md5))

    def as_json(self) -> dict[str, Any]:
        """Returns the fields that are the same in ``_schemas`` and in responses; the type is left out for Avro."""
        fields: dict[str, Any] = {}
        if self.kind != "AVRO":
            fields["schemaType"] = self.kind
        if self.references:
            names = ("name", "subject", "version")
            fields["references"] = [dict(zip(names, each, strict=True)) for each in self.references]
        if self.metadata:
            fields["metadata"] = json.loads(self.metadata)
        if self.rule_set:
            fields["ruleSet"] = json.loads(self.rule_set)
        return {**fields, "schema": self.schema}

    @classmethod
    def of(cls, fields: Value) -> "Content":
        """Returns the content of a record, or of a request. :raises ValueError, TypeError, KeyError: it is not valid"""
        references = tuple(
            (str(each["name"]), str(each["subject"]), int(each["version"])) for each in fields.get("references") or ()
        )
        metadata, rule_set = (_sorted(fields.get(name)) for name in ("metadata", "ruleSet"))
        schema = fields["schema"]
        if not isinstance(schema, str):
            raise TypeError("a schema is a string")
        return cls(schema, fields.get("schemaType") or "AVRO", references, metadata, rule_set)


def _sorted(value: Any) -> str:
    return "" if value is None else json.dumps(value, sort_keys=True, separators=(",", ":"))


class Version(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    content: Content
    deleted: bool = False  #: softly

    def to_record(self) -> Record:
        value = {"subject": self.subject, "version": self.version, "id": self.id, **self.content.as_json()}
        value["deleted"] = self.deleted
        return record(SCHEMA, value, subject=self.subject, version=self.version)

    def tombstone(self) -> Record:
        return record(SCHEMA, None, subject=self.subject, version=self.version)


class Store:
    """The state."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, Version]] = {}
        self._by_id: dict[tuple[str, int], dict[tuple[str, int], Version]] = defaultdict(dict)
        self._ids: dict[tuple[str, Content], int] = {}
        self._max_id: dict[str, int] = defaultdict(int)
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = defaultdict(set)
        self.configs: dict[str | None, dict[str, Any]] = {}  #: by subject; None is the global one
        self.modes: dict[str | None, str] = {}
        self.leader_url: str | None = None  #: of the registry that writes, as announced by it

    # ------------------------------------------------------------ applying

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Applies a record of ``_schemas``. :raises ValueError: it is not a record of a registry"""
        if key is None:
            return
        fields, content = json.loads(key), None if value is None else json.loads(value)
        keytype, subject = fields.get("keytype"), fields.get("subject")
        match keytype:
            case "SCHEMA":
                self._put(subject, fields["version"], content)
            case "CONFIG":
                _set(self.configs, subject, content)
            case "MODE":
                _set(self.modes, subject, content and content.get("mode"))
            case "DELETE_SUBJECT" if content is not None:
                self._delete_up_to(subject, content["version"])
            case "CLEAR_SUBJECT":
                for version in [each for each in self.versions(subject, deleted=True) if each.deleted]:
                    self._forget(version)
            case "NOOP" if content is not None:
                self.leader_url = content.get("leader")

    def _put(self, subject: str, number: int, fields: Value | None) -> None:
        before = self._versions.get(subject, {}).get(number)
        if before is not None:
            self._forget(before)
        if fields is None:
            return
        version = Version(subject, number, fields["id"], Content.of(fields), bool(fields.get("deleted")))
        context = context_of(subject)
        self._versions.setdefault(subject, {})[number] = version
        self._by_id[context, version.id][subject, number] = version
        self._ids.setdefault((context, version.content), version.id)
        self._max_id[context] = max(self._max_id[context], version.id)
        if not version.deleted:
            for _, name, at in version.content.references:
                self._referrers[name, at].add((subject, number))

    def _forget(self, version: Version) -> None:
        place, context = (version.subject, version.version), context_of(version.subject)
        of_subject = self._versions[version.subject]
        del of_subject[version.version]
        if not of_subject:
            del self._versions[version.subject]
        same = self._by_id[context, version.id]
        same.pop(place, None)
        if not same:
            del self._by_id[context, version.id]
            if self._ids.get((context, version.content)) == version.id:
                del self._ids[context, version.content]
        for _, name, at in version.content.references:
            self._referrers[name, at].discard(place)

    def _delete_up_to(self, subject: str, last: int) -> None:
        for version in self.versions(subject):
            if version.version <= last:
                self._put(
                    subject,
                    version.version,
                    {"id": version.id, **version.content.as_json(), "deleted": True},
                )

    # ------------------------------------------------------------ reading

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Returns the subjects that have versions; with ``deleted`` also those whose versions are all deleted."""
        return sorted(
            name for name, of in self._versions.items() if deleted or any(not each.deleted for each in of.values())
        )

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Returns the versions of a subject, the oldest first."""
        found = self._versions.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].deleted]

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        found = self._versions.get(subject, {}).get(number)
        return found if found is not None and (deleted or not found.deleted) else None

    def with_id(self, context: str, schema_id: int) -> list[Version]:
        """Returns the versions that have an id, deleted ones included, by subject and version."""
        found = self._by_id.get((context, schema_id), {})
        return [found[place] for place in sorted(found)]

    def with_guid(self, guid: str) -> list[tuple[str, Version]]:
        """Returns a version for each context in which a schema is."""
        found = []
        for (context, _), versions in sorted(self._by_id.items()):
            first = next(iter(versions.values()))
            if first.content.guid == guid:
                found.append((context, first))
        return found

    def id_of(self, context: str, content: Content) -> int | None:
        """Returns the id that a schema has in a context."""
        return self._ids.get((context, content))

    def max_id(self, context: str) -> int:
        return self._max_id[context]

    def contexts(self) -> list[str]:
        return sorted({".", *(context_of(each) for each in self._versions)})

    def referrers(self, subject: str, number: int) -> Sequence[Version]:
        """Returns the versions that refer to a version, and are not deleted."""
        found = (self.version(*place) for place in sorted(self._referrers.get((subject, number), ())))
        return [each for each in found if each is not None]

    def all_versions(self, *, deleted: bool = False) -> Iterator[Version]:
        for subject in self.subjects(deleted=deleted):
            yield from self.versions(subject, deleted=deleted)


def _set(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
