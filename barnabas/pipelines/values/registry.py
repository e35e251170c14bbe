"""A schema registry: reads schemas by id and by subject, with those they refer to, and registers schemas.

Knows nothing of what schemas contain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from barnabas.pipelines.values.framing import Undecodable

if TYPE_CHECKING:
    from barnabas.pipelines.values.registry_client import RegistryClient

NOT_FOUND = (40401, 40402, 40403)
"""The registry's error codes for an unknown subject, version and schema."""

JAVA_NAMES = {"schema.registry.url": "url", "schema.registry.basic.auth.user.info": "basic.auth.user.info"}
SECRET = ("user.info", "password", "secret", "token")


class RegistryFailed(Exception):
    """The registry does not respond, or refuses a request; the message names the registry and the request."""


class Reference(NamedTuple):
    """A schema that another one uses: its name there, and where the registry keeps it."""

    name: str
    subject: str
    version: int


class Found(NamedTuple):
    """A schema of the registry.

    `texts` are pairs of name and text: first the schemas that it refers to, by the names it uses, last its own.
    """

    schema_id: int
    texts: tuple[tuple[str, str], ...]
    kind: str  #: AVRO, JSON or PROTOBUF

    @property
    def text(self) -> str:
        return self.texts[-1][1]


@dataclass(frozen=True)
class Registry:
    """A registry's URL and the settings of its client, by the names of confluent-kafka's client: ``url``,
    ``basic.auth.user.info``, ``bearer.auth.token``, ``ssl.ca.location`` ... Can be compared, hashed and pickled.
    """

    settings: tuple[tuple[str, str], ...]

    @classmethod
    def at(cls, url: str, settings: Mapping[str, str] | None = None) -> "Registry":
        """Returns the registry at this URL, or at several URLs separated by commas.

        :raises ValueError: a setting is unknown or wrong.
        """
        given = {JAVA_NAMES.get(name, name): value for name, value in (settings or {}).items()}
        registry = cls(tuple(sorted({"url": url, **given}.items())))
        registry.client()
        return registry

    def __repr__(self) -> str:
        plain = {name: _without_user(value) if "://" in value else value for name, value in self.settings}
        shown = {name: "..." if name.endswith(SECRET) else value for name, value in plain.items()}
        return f"Registry({shown | {'url': self.url}})"

    @property
    def url(self) -> str:
        """The URLs, without the user and password that they may contain."""
        return ",".join(_without_user(url.strip()) for url in dict(self.settings)["url"].split(","))

    def client(self) -> "RegistryClient":
        """Returns this process's client.

        :raises ValueError: a setting is unknown or wrong.
        """
        return _client(self.settings)

    def by_id(self, schema_id: int, *, serialized: bool = False) -> Found:
        """Returns the schema with this id.

        :param serialized: request Protobuf as a descriptor in base64 instead of text, which not all registries support.
        :raises Undecodable: there is no such schema.
        :raises RegistryFailed: the registry does not respond, or refuses the request.
        """
        form = "serialized" if serialized else None
        path = _path("schemas", "ids", str(schema_id), format=form)
        try:
            schema = self._ask("schema", schema_id, lambda client: client.get_immutable(path))
        except _NotThere as error:
            raise Undecodable(f"schema {schema_id} is not in the registry {self.url}") from error
        return self._with_references(schema_id, schema, form)

    def latest(self, subject: str, *, serialized: bool = False) -> Found:
        """Returns the newest schema of the subject.

        :raises ValueError: the subject has none.
        :raises RegistryFailed: the registry does not respond, or refuses the request.
        """
        form = "serialized" if serialized else None
        path = _path("subjects", _encoded(subject), "versions", "latest", format=form)
        try:
            schema = self._ask("subject", subject, lambda client: client.get_latest(path))
        except _NotThere as error:
            raise ValueError(f"subject {subject!r} is not in the registry {self.url}: give a schema") from error
        return self._with_references(int(schema["id"]), schema, form)

    def register(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """Registers a schema under the subject, unless it is there; returns its id."""
        path, body = _path("subjects", _encoded(subject), "versions"), _schema(text, kind, references)
        return int(self._ask("subject", subject, lambda client: client.post(path, body))["id"])

    def version_of(self, subject: str, text: str, kind: str, references: Sequence[Reference] = ()) -> int:
        """Returns the version of a schema that is registered under the subject."""
        path, body = _path("subjects", _encoded(subject)), _schema(text, kind, references)
        return int(self._ask("subject", subject, lambda client: client.post(path, body))["version"])

    def _with_references(self, schema_id: int, schema: Any, form: str | None) -> Found:
        texts: dict[str, str] = {}

        def add(name: str, each: Any) -> None:
            for reference in each.get("references") or ():
                if reference["name"] in texts:
                    continue
                subject, version = reference["subject"], str(reference["version"])
                path = _path("subjects", _encoded(subject), "versions", version, deleted="true", format=form)
                add(reference["name"], self._ask("subject", subject, _getter(path)))
            texts[name] = each["schema"]

        add("", schema)
        return Found(schema_id, tuple(texts.items()), (schema.get("schemaType") or "AVRO").upper())

    def _ask(self, what: str, name: object, call: Callable[["RegistryClient"], Any]) -> Any:
        from barnabas.pipelines.values.registry_client import Refused, Unreachable

        try:
            return call(self.client())
        except Refused as error:
            if error.code in NOT_FOUND or error.status == 404:
                raise _NotThere from error
            raise RegistryFailed(f"the schema registry {self.url} refuses {what} {name}: {error}") from error
        except Unreachable as error:
            raise RegistryFailed(
                f"the schema registry {self.url} does not answer about {what} {name}: {error}"
            ) from error


class _NotThere(Exception):
    """The registry does not have the subject, version or schema."""


def _encoded(name: str) -> str:
    """Returns a subject as one part of a path."""
    return quote(name, safe="")


def _path(*parts: str, **query: str | None) -> str:
    """Returns a path of these parts, with those parameters that are not None."""
    given = {name: value for name, value in query.items() if value is not None}
    return "/".join(parts) + (f"?{urlencode(given)}" if given else "")


def _getter(path: str) -> Callable[["RegistryClient"], Any]:
    return lambda client: client.get_immutable(path)


def _schema(text: str, kind: str, references: Sequence[Reference]) -> dict[str, Any]:
    """Returns a schema for the registry. Old registries only know Avro, and no ``schemaType``."""
    body: dict[str, Any] = {"schema": text}
    if kind != "AVRO":
        body["schemaType"] = kind
    if references:
        body["references"] = [each._asdict() for each in references]
    return body


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@lru_cache(maxsize=32)
def _client(settings: tuple[tuple[str, str], ...]) -> "RegistryClient":
    from barnabas.pipelines.values.registry_client import RegistryClient

    try:
        return RegistryClient(dict(settings))
    except ValueError as error:
        raise ValueError(f"the schema registry's settings are wrong: {error}") from error
