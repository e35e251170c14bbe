"""A schema registry over HTTP, by confluent-kafka's client: schemas by id and by subject, and new ones written to it.

Knows nothing of what the schemas say, but that some refer to others.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from barnabas.pipelines.values.framing import Undecodable

UNKNOWN = (40401, 40402, 40403)
"""The registry's codes for a subject, a version and a schema that it does not have."""

NUMBERS = {
    "cache.capacity": int,
    "cache.latest.ttl.sec": float,
    "max.retries": int,
    "retries.wait.ms": int,
    "retries.max.wait.ms": int,
    "timeout": float,
}
"""Settings of confluent-kafka's client that are no text."""

JAVA_NAMES = {"schema.registry.url": "url", "schema.registry.basic.auth.user.info": "basic.auth.user.info"}
SECRET = ("user.info", "password", "secret", "token")


class RegistryFailed(Exception):
    """The registry could not be asked, or refused; the text names it and what it was asked."""


class Reference(NamedTuple):
    """That a schema uses another: by which name, and where that stands."""

    name: str
    subject: str
    version: int


class Found(NamedTuple):
    """A schema and its id; `texts`: those that it refers to first, by their names there, itself last."""

    schema_id: int
    texts: tuple[tuple[str, str], ...]
    kind: str  #: AVRO, JSON or PROTOBUF

    @property
    def text(self) -> str:
        return self.texts[-1][1]


@dataclass(frozen=True)
class Registry:
    """Where a registry is and how to get in: settings by confluent-kafka's names (``url``, ``basic.auth.user.info``,
    ``bearer.auth.token``, ``ssl.ca.location`` ...); compared, hashed and sent to workers.
    """

    settings: tuple[tuple[str, str], ...]

    @classmethod
    def at(cls, url: str, settings: Mapping[str, str] | None = None) -> "Registry":
        """The registry at this URL (or several, with commas between); raises ValueError for settings that are wrong."""
        given = {JAVA_NAMES.get(name, name): value for name, value in (settings or {}).items()}
        registry = cls(tuple(sorted({"url": url, **given}.items())))
        registry.client()
        return registry

    def __repr__(self) -> str:
        shown = {name: "..." if name.endswith(SECRET) else value for name, value in self.settings}
        return f"Registry({shown})"

    @property
    def url(self) -> str:
        return dict(self.settings)["url"]

    def client(self) -> Any:
        """The client of this process; raises ValueError where a setting is unknown or wrong."""
        return _client(self.settings, os.getpid())

    def by_id(self, schema_id: int, *, serialized: bool = False) -> Found:
        """The schema of this id; raises Undecodable if there is none, RegistryFailed if nobody answers.

        ``serialized``: Protobuf as a descriptor in base64 rather than as text, where the registry can do that.
        """
        fmt = "serialized" if serialized else None
        try:
            schema = self._ask("schema", schema_id, lambda client: client.get_schema(schema_id, fmt=fmt))
        except _NotThere as error:
            raise Undecodable(f"schema {schema_id} is not in the registry {self.url}") from error
        return self._with_references(schema_id, schema, fmt)

    def latest(self, subject: str, *, serialized: bool = False) -> Found:
        """The newest schema of the subject; raises ValueError if there is none."""
        fmt = "serialized" if serialized else None
        try:
            version = self._ask("subject", subject, lambda client: client.get_latest_version(subject, fmt))
        except _NotThere as error:
            raise ValueError(f"subject {subject!r} is not in the registry {self.url}: give a schema") from error
        return self._with_references(version.schema_id, version.schema, fmt)

    def register(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """The id of this schema under the subject, where it is written if it was not there."""
        schema = _schema(text, kind, references)
        return int(self._ask("subject", subject, lambda client: client.register_schema(subject, schema)))

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """The version under the subject of a schema that was registered."""
        schema = _schema(text, kind, references)
        return int(self._ask("subject", subject, lambda client: client.lookup_schema(subject, schema)).version)

    def _with_references(self, schema_id: int, schema: Any, fmt: str | None) -> Found:
        texts: dict[str, str] = {}

        def add(name: str, each: Any) -> None:
            for reference in each.references or ():
                if reference.name in texts:
                    continue
                subject, version = reference.subject, reference.version
                found = self._ask(
                    "subject", subject, lambda client, s=subject, v=version: client.get_version(s, v, True, fmt)
                )
                add(reference.name, found.schema)
            texts[name] = each.schema_str

        add("", schema)
        return Found(schema_id, tuple(texts.items()), (schema.schema_type or "AVRO").upper())

    def _ask(self, what: str, name: object, call: Any) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return call(self.client())
        except SchemaRegistryError as error:
            if error.error_code in UNKNOWN or error.http_status_code == 404:
                raise _NotThere from error
            message = f"{error.error_message} (HTTP {error.http_status_code}, error {error.error_code})"
            raise RegistryFailed(f"the schema registry {self.url} refuses {what} {name}: {message}") from error
        except Exception as error:  # whatever the HTTP library of its choice raises
            raise RegistryFailed(
                f"the schema registry {self.url} does not answer about {what} {name}: {error}"
            ) from error


class _NotThere(Exception):
    pass


def _schema(text: str, kind: str, references: Sequence[Reference]) -> Any:
    from confluent_kafka.schema_registry import Schema, SchemaReference

    return Schema(text, schema_type=kind, references=[SchemaReference(*each) for each in references])


@lru_cache(maxsize=32)
def _client(settings: tuple[tuple[str, str], ...], process: int) -> Any:
    """Connections do not survive a fork, so that each process has its own."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    conf: dict[str, Any] = {}
    for name, value in settings:
        try:
            conf[name] = NUMBERS[name](value) if name in NUMBERS else value
        except ValueError:
            raise ValueError(f"registry.{name} is {value!r}, but must be a number") from None
    try:
        return SchemaRegistryClient(conf)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the schema registry's settings are not right: {error}") from error
