"""The registry: registers, finds, compares and deletes schemas, and keeps levels and modes.

Knows nothing of HTTP, and of the log only that records are appended and then applied. Rules of Confluent's
``KafkaSchemaRegistry``.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from barnabas.registry import compatibility, formats
from barnabas.registry.errors import error
from barnabas.registry.store import (
    CONFIG,
    DELETE_SUBJECT,
    MODE,
    Content,
    Record,
    Store,
    Version,
    record,
)
from barnabas.registry.subjects import context_of, is_valid, qualified, split, within

READWRITE: Final = "READWRITE"
IMPORT: Final = "IMPORT"
MODES: Final = (READWRITE, "READONLY", "READONLY_OVERRIDE", "FORWARD", IMPORT)
LATEST: Final = "latest"
DEFAULT_CONFIG: Final = {"compatibilityLevel": compatibility.DEFAULT_LEVEL}
CACHED: Final = 1000


Resolved = tuple[tuple[str, str], ...]
"""Name and text of each schema that another one refers to."""


class Log(Protocol):
    """The log of the registry's records."""

    store: Store

    @property
    def cluster_id(self) -> str:
        """The id of the Kafka cluster that has the log."""

    async def catch_up(self) -> None: ...

    async def append(self, records: Sequence[Record]) -> None: ...


class Wanted(NamedTuple):
    """A schema to be registered."""

    content: Content
    id: int = -1  #: -1 is the next one; only a registry or subject in mode IMPORT takes others
    version: int = 0  #: 0 is the next one


class Registry:
    """A registry on the node that writes."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._writing = asyncio.Lock()
        self._parsed: dict[tuple[Content, Resolved], formats.Schema] = {}

    @property
    def store(self) -> Store:
        return self._log.store

    @property
    def cluster_id(self) -> str:
        return self._log.cluster_id

    async def catch_up(self) -> None:
        await self._log.catch_up()

    # ------------------------------------------------------------ parsing

    def parse(self, subject: str, content: Content) -> formats.Schema:
        """Returns a schema with the schemas that it refers to. :raises RegistryError: it is not valid"""
        resolved = tuple(self._resolved(context_of(subject), content).items())
        found = self._parsed.get((content, resolved))
        if found is None:
            found = formats.parse(content.kind, content.schema, resolved)
            if len(self._parsed) >= CACHED:
                self._parsed.clear()
            self._parsed[content, resolved] = found
        return found

    def _resolved(self, context: str, content: Content, depth: int = 0) -> dict[str, str]:
        """Returns name and text of the schemas that a schema refers to, directly or not, each after those that it
        needs.
        """
        found: dict[str, str] = {}
        for name, subject, number in content.references:
            subject = within(subject, context)
            version = self._version_or_none(subject, str(number), deleted=True)
            if version is None:
                raise error(
                    "invalid_schema",
                    f"the reference {name} is to the version {number} of the subject {subject}, which does not exist",
                )
            for inner, text in self._resolved(context_of(subject), version.content, depth + 1).items():
                found.setdefault(inner, text)
            found.setdefault(name, version.content.schema)
        return found

    def _canonical(self, subject: str, content: Content, *, normalize: bool) -> Content:
        content = self._pinned(subject, content)
        schema = self.parse(subject, content)
        return content._replace(schema=schema.normalized if normalize else schema.canonical)

    def _pinned(self, subject: str, content: Content) -> Content:
        """Returns a schema whose references to the latest version (-1) name the one that is the latest now.

        An id would stand for different schemas at different times otherwise.
        """
        context = context_of(subject)
        latest = {
            each: self.store.versions(within(each, context)) for _, each, number in content.references if number == -1
        }
        references = tuple(
            (name, each, latest[each][-1].version) if number == -1 and latest[each] else (name, each, number)
            for name, each, number in content.references
        )
        return content._replace(references=references)

    # ------------------------------------------------------------ finding

    def number(self, text: str) -> int:
        """Returns the number of a version; -1 for the latest. :raises RegistryError: it is none"""
        if text in (LATEST, "-1"):
            return -1
        if not text.isdecimal() or not 0 < int(text) < 1 << 31:
            raise error("invalid_version", text)
        return int(text)

    def _version_or_none(self, subject: str, text: str, *, deleted: bool = False) -> Version | None:
        number = self.number(text)
        if number == -1:
            versions = self.store.versions(subject, deleted=deleted)
            return versions[-1] if versions else None
        return self.store.version(subject, number, deleted=deleted)

    def subject(self, subject: str) -> str:
        """Returns a subject, or the one that it is an alias of."""
        alias = self.store.configs.get(subject, {}).get("alias")
        return within(alias, context_of(subject)) if alias else subject

    def version(self, subject: str, text: str, *, deleted: bool = False) -> Version:
        """Returns a version of a subject. :raises RegistryError: there is none"""
        subject = self.subject(subject)
        found = self._version_or_none(subject, text, deleted=deleted)
        if found is not None:
            return found
        if not self.store.versions(subject, deleted=deleted):
            raise error("subject_not_found", subject)
        raise error("version_not_found", text)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Returns the versions of a subject. :raises RegistryError: there are none"""
        found = self.store.versions(self.subject(subject), deleted=deleted)
        if not found:
            raise error("subject_not_found", subject)
        return found

    def with_id(self, schema_id: int, subject: str = "") -> list[Version]:
        """Returns the versions with an id, in the context of a subject if one is given.

        Where the default context has no such id, and a subject is given without a context, the one that has the id
        under that subject counts (``KafkaSchemaRegistry.findSchemaId``). :raises RegistryError: there is none
        """
        context, name = split(subject)
        found = self.store.with_id(context, schema_id)
        if not found and name and not subject.startswith(":."):
            for other in self.store.contexts():
                if any(split(each.subject)[1] == name for each in self.store.with_id(other, schema_id)):
                    found = self.store.with_id(other, schema_id)
                    break
        if not found:
            raise error("schema_not_found", f"{schema_id} ")
        return found

    def lookup(self, subject: str, content: Content, *, normalize: bool, deleted: bool) -> Version:
        """Returns the version of a subject that is this schema. :raises RegistryError: none is"""
        subject = self.subject(subject)
        versions = self.store.versions(subject, deleted=deleted)
        if not versions:
            raise error("subject_not_found", subject)
        normalize = normalize or bool(self._config(subject).get("normalize"))
        wanted = self._canonical(subject, content, normalize=normalize)
        for each in reversed(versions):
            if each.content == wanted or (
                normalize
                and each.content.kind == wanted.kind
                and self._canonical(subject, each.content, normalize=True) == wanted
            ):
                return each
        raise error("schema_not_found", "")

    # ------------------------------------------------------------ registering

    async def register(self, subject: str, wanted: Wanted, *, normalize: bool) -> Version:
        """Returns the version that a schema has, once it is registered.

        :raises RegistryError: it is not valid or not compatible, or nothing may be registered
        """
        async with self._writing:
            await self._log.catch_up()
            subject = self.subject(subject)
            if not is_valid(subject):
                raise error("invalid_subject", subject)
            normalize = normalize or bool(self._config(subject).get("normalize"))
            content = self._canonical(subject, wanted.content, normalize=normalize)
            versions = self.store.versions(subject)
            for each in versions:
                if each.content == content and wanted.id in (-1, each.id) and wanted.version in (0, each.version):
                    return each
            mode = self.mode_of(subject)
            self._check_writable(subject, mode)
            if mode == IMPORT or wanted.id != -1:
                made = self._imported(subject, content, wanted, mode)
            else:
                self._check_compatible(subject, content, versions, self.level_of(subject))
                made = self._next(subject, content, wanted.version)
            await self._log.append([made.to_record()])
            return made

    def _next(self, subject: str, content: Content, number: int) -> Version:
        context = context_of(subject)
        every = self.store.versions(subject, deleted=True)
        following = every[-1].version + 1 if every else 1
        if number not in (0, following):
            raise error("invalid_schema", f"the version {number} is not the next one of {subject}, {following}")
        schema_id = self.store.id_of(context, content) or self.store.max_id(context) + 1
        return Version(subject, following, schema_id, content)

    def _imported(self, subject: str, content: Content, wanted: Wanted, mode: str) -> Version:
        if mode != IMPORT:
            raise error("not_permitted", f"Subject {subject} is not in import mode")
        made = self._next(subject, content, 0)
        made = made._replace(id=made.id if wanted.id == -1 else wanted.id, version=wanted.version or made.version)
        same = self.store.with_id(context_of(subject), made.id)
        if any(each.content.schema != content.schema for each in same):
            raise error("not_permitted", f"Overwrite new schema with id {made.id} is not permitted.")
        return made

    def _check_writable(self, subject: str, mode: str) -> None:
        if mode.startswith("READONLY"):
            raise error("not_permitted", f"Subject {subject} in context {context_of(subject)} is in read-only mode")

    def _check_compatible(self, subject: str, content: Content, versions: list[Version], level: str) -> None:
        if found := self._messages(subject, content, versions, level):
            raise error(
                "incompatible",
                f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
                f"[{', '.join(found)}]",
            )

    def _messages(self, subject: str, content: Content, versions: list[Version], level: str) -> list[str]:
        group = self._config(subject).get("compatibilityGroup")
        if group is not None:
            own = self._group(content, group)
            versions = [each for each in versions if self._group(each.content, group) == own]
        older = [
            compatibility.Older(each.version, each.content.schema, partial(self.parse, each.subject, each.content))
            for each in versions
        ]
        return compatibility.messages(self.parse(subject, content), older, level)

    @staticmethod
    def _group(content: Content, name: str) -> Any:
        metadata = json.loads(content.metadata) if content.metadata else {}
        return (metadata.get("properties") or {}).get(name)

    def check(self, subject: str, content: Content, text: str | None, *, normalize: bool) -> list[str]:
        """Returns why a schema is incompatible with a version of a subject, or with all of them; an empty list if it is
        compatible.
        """
        subject = self.subject(subject)
        normalize = normalize or bool(self._config(subject).get("normalize"))
        content = self._canonical(subject, content, normalize=normalize)
        versions = self.store.versions(subject)
        level = self.level_of(subject)
        if text is not None:
            if versions or text != LATEST:
                versions = [self.version(subject, text)]
            # One version is compared, and that one at every level.
            return self._messages(subject, content, versions, level.removesuffix("_TRANSITIVE"))
        return self._messages(subject, content, versions, level)

    # ------------------------------------------------------------ deleting

    async def delete_version(self, subject: str, text: str, *, permanent: bool) -> int:
        """Deletes a version, softly at first. Returns its number. :raises RegistryError: it may not be deleted"""
        async with self._writing:
            await self._log.catch_up()
            self._check_writable(subject, self.mode_of(subject))
            number = self.number(text)
            if not self.store.versions(subject, deleted=True):
                raise error("subject_not_found", subject)
            found = self._version_or_none(subject, text, deleted=permanent and number != -1)
            if found is None:
                if self._version_or_none(subject, text, deleted=True) is not None:
                    raise error("version_soft_deleted", subject, text)
                raise error("version_not_found", text)
            if permanent and not found.deleted:
                raise error("version_not_soft_deleted", subject, text)
            self._check_unreferenced(found)
            records = [found.tombstone()] if permanent else [found._replace(deleted=True).to_record()]
            left = [each for each in self.store.versions(subject) if each != found]
            if not permanent and not left:
                records += self._settings_gone(subject)
            await self._log.append(records)
            return found.version

    async def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Deletes all versions of a subject. Returns their numbers. :raises RegistryError: they may not be deleted"""
        async with self._writing:
            await self._log.catch_up()
            self._check_writable(subject, self.mode_of(subject))
            every, left = self.store.versions(subject, deleted=True), self.store.versions(subject)
            if not every:
                raise error("subject_not_found", subject)
            if permanent and left:
                raise error("subject_not_soft_deleted", subject)
            if not permanent and not left:
                raise error("subject_soft_deleted", subject)
            gone = every if permanent else left
            for each in gone:
                self._check_unreferenced(each)
            if permanent:
                await self._log.append([each.tombstone() for each in gone])
            else:
                last = gone[-1].version
                deletion = record(DELETE_SUBJECT, {"subject": subject, "version": last}, subject=subject)
                await self._log.append([deletion, *self._settings_gone(subject)])
            return [each.version for each in gone]

    def _settings_gone(self, subject: str) -> list[Record]:
        tables = ((MODE, self.store.modes), (CONFIG, self.store.configs))
        return [record(keytype, None, subject=subject) for keytype, table in tables if subject in table]

    def _check_unreferenced(self, version: Version) -> None:
        if self.referrers(version):
            raise error("reference_exists", f"subject={version.subject},version={version.version}")

    def referrers(self, version: Version) -> list[Version]:
        """Returns the versions that refer to a version."""
        context, name = split(version.subject)
        found = {*self.store.referrers(version.subject, version.version)}
        found |= {each for each in self.store.referrers(name, version.version) if context_of(each.subject) == context}
        return sorted(found, key=lambda each: each.id)

    # ------------------------------------------------------------ levels and modes

    def _config(self, subject: str | None) -> dict[str, Any]:
        """Returns the effective config of a subject."""
        found = dict(DEFAULT_CONFIG)
        for name in self._places(subject):
            found |= {key: value for key, value in self.store.configs.get(name, {}).items() if value is not None}
        return found

    def _places(self, subject: str | None) -> list[str | None]:
        """Returns the places at which a setting of a subject may be set, by ascending precedence."""
        if subject is None:
            return [None]
        context, _ = split(subject)
        return [None, *([qualified(context, "")] if context != "." else []), subject]

    def level_of(self, subject: str | None) -> str:
        level: str = self._config(subject)["compatibilityLevel"]
        return level

    def config(self, subject: str | None, *, with_global: bool) -> dict[str, Any]:
        """Returns the config of a subject. :raises RegistryError: it has none of its own"""
        if subject is None or with_global:
            return self._config(subject)
        if subject not in self.store.configs:
            raise error("no_subject_compatibility", subject)
        return self.store.configs[subject]

    async def set_config(self, subject: str | None, given: dict[str, Any]) -> None:
        """Sets configs, and removes those that are null; others stay. :raises RegistryError: a level is none"""
        fields = dict(given)
        if "compatibility" in fields:
            level = fields.pop("compatibility")
            fields["compatibilityLevel"] = level if level is None else str(level).upper()
            if level is not None and fields["compatibilityLevel"] not in compatibility.LEVELS:
                raise error("invalid_level")
        async with self._writing:
            await self._log.catch_up()
            self._check_writable(subject or "", self.mode_of(subject))
            value = {**self.store.configs.get(subject, {}), **fields}
            kept = {name: each for name, each in value.items() if each is not None}
            if subject is None:
                kept = {**DEFAULT_CONFIG, **kept}
            await self._log.append([record(CONFIG, kept or None, subject=subject)])

    async def delete_config(self, subject: str | None) -> dict[str, Any]:
        """Returns the deleted config. :raises RegistryError: there is none"""
        async with self._writing:
            await self._log.catch_up()
            if subject is not None and subject not in self.store.configs:
                raise error("subject_not_found", subject)
            before = self.store.configs.get(subject, DEFAULT_CONFIG)
            await self._log.append([record(CONFIG, None, subject=subject)])
            return before

    def mode_of(self, subject: str | None) -> str:
        """Returns the effective mode of a subject; a global READONLY_OVERRIDE overrides all others."""
        if self.store.modes.get(None) == "READONLY_OVERRIDE":
            return "READONLY_OVERRIDE"
        found = [self.store.modes[each] for each in self._places(subject) if each in self.store.modes]
        return found[-1] if found else READWRITE

    def mode(self, subject: str | None, *, with_global: bool) -> str:
        """Returns the mode of a subject. :raises RegistryError: it has none of its own"""
        if subject is None or with_global:
            return self.mode_of(subject)
        if subject not in self.store.modes:
            raise error("no_subject_mode", subject)
        return self.store.modes[subject]

    async def set_mode(self, subject: str | None, given: object, *, force: bool) -> str:
        """Sets a mode. :raises RegistryError: it is invalid, or there are schemas that an import may overwrite"""
        mode = str(given).upper()
        if mode not in MODES:
            raise error("invalid_mode")
        async with self._writing:
            await self._log.catch_up()
            if mode == IMPORT and self.mode_of(subject) != IMPORT and not force and self._has_schemas(subject):
                raise error("not_permitted", "Cannot import since found existing subjects")
            await self._log.append([record(MODE, {"mode": mode}, subject=subject)])
            return mode

    def _has_schemas(self, subject: str | None) -> bool:
        if subject is None or not split(subject)[1]:
            context = context_of(subject or "")
            return any(context_of(each) == context for each in self.store.subjects())
        return bool(self.store.versions(subject))

    async def delete_mode(self, subject: str | None) -> str:
        """Returns the deleted mode. :raises RegistryError: there is none"""
        async with self._writing:
            await self._log.catch_up()
            if subject is not None and subject not in self.store.modes:
                raise error("subject_not_found", subject)
            before = self.store.modes.get(subject, READWRITE)
            await self._log.append([record(MODE, None, subject=subject)])
            return before

    def check_context_empty(self, context: str) -> None:
        """Checks that a context has no subjects, and thereby no longer exists. :raises RegistryError: it has some"""
        if any(context_of(each) == context for each in self.store.subjects(deleted=True)):
            raise error("context_not_empty", context)
