"""``barnabas explain``: prints the fields of a message, a frame, the meaning of an error code, or a config.

It uses the declarations only, and knows nothing of any broker.
"""

import difflib
from collections.abc import Iterator
from typing import Any

import click

from barnabas.cli.explaining import explain_frames
from barnabas.cli.output import json_option, show_json
from barnabas.config import definitions
from barnabas.config.definition import ConfigDef, text_of
from barnabas.errors import KafkaError
from barnabas.wire import compiler, types
from barnabas.wire.message import Message, Request, Response
from barnabas.wire.messages import declared
from barnabas.wire.schema import Field, Struct


@click.command()
@click.argument("what", required=False)
@click.argument("version", required=False, type=int)
@click.option("--hex", "frames", metavar="HEX", help="Decode this frame, or those of standard input if it is -.")
@click.option("--api", help="The API of the request to which the frame is the response.")
@click.option("--version", "of_version", type=int, help="The version of that request.")
@click.option("--show-secrets", is_flag=True, help="Print tokens, credentials and passwords in a frame.")
@json_option
def explain(
    what: str | None,
    version: int | None,
    frames: str | None,
    api: str | None,
    of_version: int | None,
    show_secrets: bool,
    as_json: bool,
) -> None:
    """Explain a message, an error by its code or name, a config, or a frame in hexadecimal digits.

    With a version, prints the fields of the message in that version and the functions that write and read them.
    Without, prints the fields of all versions.

    \b
    barnabas explain ProduceRequest 9
    barnabas explain 22
    barnabas explain retention.ms

    A frame is a request, with or without its size before it. With --api and --version, it is the response to such a
    request.

    \b
    barnabas explain --hex 0000001000120000000000010006636c69656e74
    barnabas explain --hex 00000001001b --api Heartbeat --version 0
    """
    if (what is None) == (frames is None):
        raise click.UsageError("Say what to explain: a name, or a frame with --hex.")
    if frames is not None:
        explain_frames(frames, api, of_version, show_secrets=show_secrets, as_json=as_json)
        return
    assert what is not None
    found = error_of(what) or config_of(what)
    if found is not None:
        if as_json:
            show_json(found)
        else:
            _print_facts(found)
        return
    classes = list(messages_called(what))
    if not classes:
        raise click.ClickException(f"There is no message, error code or config {what}{suggestion(what)}")
    for each in classes:
        if as_json:
            show_json(described(each, version))
        else:
            _print_message(each, version)


# ---------------------------------------------------------------- errors and configs


def error_of(what: str) -> dict[str, Any] | None:
    """Returns the error with that code, or with that name in any spelling."""
    for code, error in KafkaError.by_code.items():
        if what == str(code) or _plain(what) in (_plain(error.__name__), _plain(error.__name__) + "error"):
            words = error.message
            return {"error": error.__name__, "code": code, "retriable": error.retriable, "meaning": words.strip()}
    if what == "0":
        return {"error": "None", "code": 0, "retriable": False, "meaning": "No error."}
    return None


def config_of(what: str) -> dict[str, Any] | None:
    """Returns the config of that name, of brokers, topics, groups or client metrics."""
    for resource, table in _configs():
        if what in table:
            return config_facts(resource, table[what])
    return None


def config_facts(resource: str, config: ConfigDef) -> dict[str, Any]:
    """Returns the declaration of a config."""
    topic = definitions.topic_name_of(config.name) if resource == "broker" else None
    return {
        "config": config.name,
        "of": resource,
        "meaning": config.doc,
        "type": config.type.name.lower(),
        "default": text_of(config.type, config.default),
        "must be": config.validator.rule if config.validator is not None else None,
        "importance": config.importance,
        "can be changed": config.scope,
        "falls back to": [synonym.name for synonym in config.synonyms] or None,
        "topic's config": topic,
        "has an effect": config.in_effect if resource == "broker" else None,
    }


def _configs() -> Iterator[tuple[str, dict[str, ConfigDef]]]:
    yield "broker", definitions.BROKER
    yield "topic", definitions.TOPIC
    yield "group", definitions.of_groups()
    yield "client metrics", definitions.of_client_metrics()


def _print_facts(facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        if value is not None:
            shown = ", ".join(value) if isinstance(value, list) else "yes" if value is True else value
            click.echo(f"{name + ':':<16}{'no' if value is False else shown}")


# ---------------------------------------------------------------- messages


def messages_called(name: str) -> Iterator[type[Message]]:
    """Yields the messages of that name; a name without ``Request`` or ``Response`` at its end means both."""
    wanted = _plain(name)
    endings = ("", "request", "response")
    found = [each for each in declared().values() if _plain(each.__name__) in [wanted + ending for ending in endings]]
    yield from sorted(found, key=lambda each: each.__name__)


def suggestion(name: str) -> str:
    """Returns a hint with the most similar name, if there is one."""
    names = [each.__name__ for each in declared().values()] + [name for _, table in _configs() for name in table]
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def described(message: type[Message], version: int | None) -> dict[str, Any]:
    """Describes the message and its fields, in one version or in all."""
    if version is not None and version not in message.versions:
        raise click.ClickException(f"{message.__name__} has no version {version}: there are {message.versions}")
    return {
        "message": message.__name__,
        "api_key": api_key_of(message),
        "versions": str(message.versions),
        "flexible": str(message.flexible),
        "version": version,
        "fields": list(_fields(message, version)),
    }


def api_key_of(message: type[Message]) -> int | None:
    """Returns the API key of a request or response."""
    if issubclass(message, Response):
        return message.request.api_key
    return message.api_key if issubclass(message, Request) else getattr(message, "api_key", None)


def _fields(structure: type[Struct], version: int | None) -> Iterator[dict[str, Any]]:
    for field in structure.wire_fields():
        if version is None or version in field.versions:
            yield _field(field, version)


def _field(field: Field, version: int | None) -> dict[str, Any]:
    nullable = str(field.nullable) != "none" if version is None else version in field.nullable
    inner = isinstance(field.kind, type) and issubclass(field.kind, Struct)
    shown: dict[str, Any] = {
        "name": field.name,
        "type": f"{'[]' if field.is_array else ''}{_type_name(field.kind)}",
        "versions": str(field.versions),
        "nullable": nullable,
        "tag": field.tag,
    }
    if inner:
        shown["fields"] = list(_fields(field.kind, version))  # type: ignore[arg-type]
    return shown


def _type_name(kind: Any) -> str:
    if isinstance(kind, type):
        return kind.__name__
    named = {id(each.__metadata__[0]): name for name, each in vars(types).items() if hasattr(each, "__metadata__")}
    named |= {id(each): builtin.__name__ for builtin, each in types.BUILTIN_KINDS.items()}
    return named[id(kind)]


def _print_message(message: type[Message], version: int | None) -> None:
    facts = described(message, version)
    of = "" if facts["api_key"] is None else f", API key {facts['api_key']}"
    which = "" if version is None else f" version {version}"
    click.echo(f"{message.__name__}{which}{of}; versions {facts['versions']}, flexible {facts['flexible']}")
    _print_fields(facts["fields"], "  ", version)
    click.echo()
    if version is not None:
        click.echo(compiler.source(message, version))


def _print_fields(fields: list[dict[str, Any]], indent: str, version: int | None) -> None:
    for field in fields:
        notes = []
        if version is None and field["versions"] != "0+":
            notes.append(field["versions"])
        if field["nullable"]:
            notes.append("or null")
        if field["tag"] is not None:
            notes.append(f"tag {field['tag']}")
        click.echo(f"{indent}{field['name']}: {field['type']}{'  (' + ', '.join(notes) + ')' if notes else ''}")
        _print_fields(field.get("fields", []), indent + "  ", version)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
