"""The formats of values and their options, by name or as objects.

Imports nothing of Spark, Arrow and the formats' libraries, as the command line imports it.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from barnabas.pipelines.values.registry import Registry


@dataclass(frozen=True)
class Raw:
    """Bytes as they are."""


@dataclass(frozen=True)
class Utf8:
    """Text."""


@dataclass(frozen=True, kw_only=True)
class _Described:
    """A format with a schema: ``schema`` is the schema, or ``@`` and the name of its file. By default it is the newest
    of ``subject`` in the registry for reading, and is derived from the column for writing.

    ``framed``: whether values have the five-byte header of a schema registry; by default they have it if there is a
    registry.
    """

    schema: str | None = None
    registry: Registry | None = None
    subject: str | None = None
    framed: bool | None = None

    @property
    def is_framed(self) -> bool:
        return self.registry is not None if self.framed is None else self.framed

    def text(self) -> str | None:
        """Returns the schema's text, from its file if it is in one."""
        if self.schema is None or not self.schema.startswith("@"):
            return self.schema
        return _file(self.schema).read_text(encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Json(_Described):
    """JSON; ``schema`` is DDL (``id BIGINT, at TIMESTAMP``), a type in Spark's own JSON, or a JSON Schema document."""


@dataclass(frozen=True, kw_only=True)
class Avro(_Described):
    """Avro's binary encoding; ``schema`` is JSON. For reading it is the reader's schema. The writer's schema is found
    in the registry by the id in each value's header, or is the same without a registry.
    """


@dataclass(frozen=True, kw_only=True)
class Protobuf(_Described):
    """Protobuf; ``schema`` is .proto text, or ``@`` and the name of a .proto file or of a descriptor set.

    ``message``: the name of the message; by default the first in the file.
    """

    message: str | None = None

    def file(self) -> Path | None:
        """The schema's file, if it is in one."""
        return _file(self.schema) if self.schema is not None and self.schema.startswith("@") else None


Format = Raw | Utf8 | Json | Avro | Protobuf

FORMATS: Mapping[str, type[Format]] = {"raw": Raw, "utf8": Utf8, "json": Json, "avro": Avro, "protobuf": Protobuf}

OPTIONS: Mapping[str, str] = {
    "schema": "the schema, or `@` and its file; by default the newest of the subject in the registry",
    "message": "Protobuf: the message of the schema; by default the first",
    "registry": "the URL of a schema registry; values then have its five-byte header",
    "registry.*": "settings of the registry's client, by confluent-kafka's names: `registry.basic.auth.user.info`, "
    "`registry.bearer.auth.token`, `registry.ssl.ca.location` ...",
    "subject": "the subject in the registry; by default the topic's name with `-value` or `-key`",
    "framed": "`true`: values have the registry's header, which is skipped without a request to the registry; "
    "`false`: they have none, even with a registry",
}
"""The options of formats."""


class BadFormat(ValueError):
    """A format, or an option of one, is unknown; the message names it."""


def format_named(name: str, options: Mapping[str, str] | None = None, *, subject: str | None = None) -> Format:
    """Returns the format with this name (``json``) and these options.

    :param subject: the default subject.
    :raises BadFormat: the format or an option is unknown.
    """
    if name not in FORMATS:
        raise BadFormat(f"the format {name!r} is unknown; known are {', '.join(FORMATS)}")
    kind = FORMATS[name]
    takes = {field.name for field in fields(kind)}
    given: dict[str, Any] = {}
    settings: dict[str, str] = {}
    for option, value in (options or {}).items():
        if option.startswith("registry.") and "registry" in takes:
            settings[option.removeprefix("registry.")] = value
        elif option in takes:
            given[option] = value
        else:
            near = difflib.get_close_matches(option, takes, n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; its options are {', '.join(sorted(takes)) or 'none'}"
            raise BadFormat(f"{name} has no option {option!r}{hint}")
    if settings and "registry" not in given:
        raise BadFormat(f"registry.{next(iter(settings))} is given, but not registry, the URL")
    if "registry" in given:
        given["registry"] = Registry.at(given["registry"], settings)
        given.setdefault("subject", subject)
    if "framed" in given:
        given["framed"] = _flag(given["framed"])
    return kind(**given)


def parse_format(text: str, *, subject: str | None = None) -> Format:
    """Parses ``json,schema=id BIGINT, name STRING``: a name and its options. A comma within a value needs no quotes."""
    name, options = parse_options(text, {"format", *OPTIONS}, first="format")
    return format_named(options.pop("format", name), options, subject=subject)


def parse_options(text: str, known: set[str], *, first: str) -> tuple[str, dict[str, str]]:
    """Parses ``orders,format=json,schema=a INT, b INT``: a head and options.

    An option begins where a known name is between a comma and an equals sign; ``x.*`` stands for all names with that
    prefix.

    :raises BadFormat: the text is something else.
    """
    names = "|".join(re.escape(name).replace(r"\*", r"[\w.]+") for name in sorted(known, key=len, reverse=True))
    parts = re.split(rf"(?:^|,)\s*({names})=", text)
    options: dict[str, str] = {}
    for name, value in zip(parts[1::2], parts[2::2], strict=True):
        if name in options:
            raise BadFormat(f"{name} is given twice in {text!r}")
        options[name] = value.strip()
    head = parts[0].strip()
    stray = re.search(r",\s*([\w.]+)=", f",{head}") or re.search(r",(.*)", head)
    if stray:
        near = difflib.get_close_matches(stray[1], known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        raise BadFormat(f"{stray[1].strip()!r} in {text!r} is not an option of it; {hint}")
    if head and first in options:
        raise BadFormat(f"{first} is given twice in {text!r}")
    return head, options


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise BadFormat(f"framed is {text!r}, but must be true or false")
    return text.lower() == "true"


def _file(schema: str) -> Path:
    path = Path(schema[1:])
    if not path.is_file():
        raise BadFormat(f"the schema's file {path} does not exist")
    return path
