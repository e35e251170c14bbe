"""``barnabas schemas``: manages the schemas of a registry, Barnabas's or any other with Confluent's API.

Knows nothing of the registry's internals; it uses the REST API.
"""

import difflib
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.verbs import Verbs

TYPE: Final = "application/vnd.schemaregistry.v1+json"
TIMEOUT_S: Final = 30
TYPES_OF_FILES: Final = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
KINDS: Final = tuple(TYPES_OF_FILES.values())

registry_option = click.option(
    "--registry",
    metavar="URL",
    default="http://localhost:8081",
    show_default=True,
    envvar="SCHEMA_REGISTRY_URL",
    help="The schema registry; the variable SCHEMA_REGISTRY_URL is another way to name it.",
)


class Client:
    """A client of a registry."""

    def __init__(self, url: str) -> None:
        self._url = url if "://" in url else f"http://{url}"

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Returns the response. :raises ClickException: it is an error, or there is none"""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url.rstrip("/") + path, data, {"Content-Type": TYPE}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise click.ClickException(_message(error)) from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise click.ClickException(f"Cannot ask the schema registry at {self._url}: {reason}") from None
        return json.loads(text) if text else None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        body = json.loads(error.read())
        return f"{body['message']} ({body['error_code']})"
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"


@click.group(cls=Verbs)
def schemas() -> None:
    """List, show, register, check, compare and delete schemas of a schema registry.

    \b
    barnabas schemas list
    barnabas schemas register orders-value order.avsc
    barnabas schemas check orders-value order.avsc
    barnabas schemas diff orders-value 1 2
    """


def file_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the arguments and options that select a schema."""
    reference = click.option(
        "--reference",
        "references",
        multiple=True,
        metavar="NAME=SUBJECT:VERSION",
        help="A schema that this one refers to by that name; may be repeated.",
    )
    kind = click.option("--type", "kind", type=click.Choice(list(KINDS)), help="Default: by the name of the file.")
    path = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
    arguments = click.argument("subject")(click.argument("file", type=path)(function))
    return registry_option(reference(kind(arguments)))


def _body(file: Path, kind: str | None, references: tuple[str, ...]) -> dict[str, Any]:
    text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    found: list[dict[str, Any]] = []
    for each in references:
        name, equals, place = each.partition("=")
        subject, colon, version = place.rpartition(":")
        if not (equals and colon and version.isdecimal()):
            raise click.BadParameter(f"{each} is not like NAME=SUBJECT:VERSION", param_hint="--reference")
        found.append({"name": name, "subject": subject, "version": int(version)})
    return {"schema": text, "schemaType": kind or TYPES_OF_FILES.get(file.suffix, "AVRO"), "references": found}


def _path(subject: str, version: str | None = None) -> str:
    path = f"/subjects/{quote(subject, safe='')}"
    return path if version is None else f"{path}/versions/{quote(version, safe='')}"


def pretty(schema: dict[str, Any]) -> str:
    """Returns the text of a schema, indented if it is JSON."""
    text: str = schema["schema"]
    if schema.get("schemaType", "AVRO") == "PROTOBUF":
        return text
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)


@schemas.command("list")
@registry_option
@click.option("--deleted", is_flag=True, help="Include soft-deleted ones.")
@json_option
def list_schemas(registry: str, deleted: bool, as_json: bool) -> None:
    """List subjects with their newest version."""
    found = Client(registry)("GET", f"/schemas?latestOnly=true&deleted={str(deleted).lower()}")
    rows = [
        {
            "subject": each["subject"],
            "version": each["version"],
            "id": each["id"],
            "type": each.get("schemaType", "AVRO"),
            **({"deleted": bool(each.get("deleted"))} if deleted else {}),
        }
        for each in found
    ]
    columns = ["subject", "version", "id", "type", *(["deleted"] if deleted else [])]
    if as_json:
        show_json(rows)
    else:
        show_table(rows, columns, empty="No schemas")


@schemas.command("show")
@registry_option
@click.argument("subject")
@click.argument("version", default="latest")
@json_option
def show(registry: str, subject: str, version: str, as_json: bool) -> None:
    """Show a version of a subject, the latest by default."""
    found = Client(registry)("GET", _path(subject, version))
    if as_json:
        show_json(found)
    else:
        click.echo(pretty(found).rstrip("\n"))


@schemas.command("register")
@file_options
@click.option("--normalize", is_flag=True, help="Register the normal form.")
def register(
    registry: str, subject: str, file: Path, kind: str | None, references: tuple[str, ...], normalize: bool
) -> None:
    """Register the schema of a file; - is standard input."""
    path = f"{_path(subject)}/versions?normalize={str(normalize).lower()}"
    client, body = Client(registry), _body(file, kind, references)
    made = client("POST", path, body)
    version = made.get("version") or client("POST", _path(subject), body)["version"]
    click.echo(f"{subject} has this schema as version {version}, id {made['id']}")


@schemas.command("check")
@file_options
@click.option(
    "--version",
    help="Check against this version only. Default: the versions that the subject's compatibility level requires.",
)
def check(
    registry: str, subject: str, file: Path, kind: str | None, references: tuple[str, ...], version: str | None
) -> None:
    """Check whether the schema of a file is compatible with those of a subject. If not, show why."""
    path = f"/compatibility{_path(subject, version)}" if version else f"/compatibility{_path(subject)}/versions"
    found = Client(registry)("POST", f"{path}?verbose=true", _body(file, kind, references))
    if found["is_compatible"]:
        click.echo(f"The schema is compatible with {subject}")
        return
    for each in found.get("messages") or ():
        click.echo(each)
    raise click.ClickException(f"The schema is not compatible with {subject}")


@schemas.command("diff")
@registry_option
@click.argument("subject")
@click.argument("first")
@click.argument("second", default="latest")
def diff(registry: str, subject: str, first: str, second: str) -> None:
    """Show how two versions of a subject differ; the second is the latest by default."""
    client = Client(registry)
    found = [client("GET", _path(subject, each)) for each in (first, second)]
    names = [f"{subject} version {each['version']}" for each in found]
    before, after = (pretty(each).splitlines() for each in found)
    difference = list(difflib.unified_diff(before, after, names[0], names[1], lineterm=""))
    click.echo("\n".join(difference) if difference else f"{names[0]} and {names[1]} are the same")


@schemas.command("delete")
@registry_option
@click.argument("subject")
@click.argument("version", required=False)
@click.option("--permanent", is_flag=True, help="Delete soft-deleted versions permanently.")
def delete(registry: str, subject: str, version: str | None, permanent: bool) -> None:
    """Delete a version of a subject, or all of them; softly unless --permanent is given."""
    found = Client(registry)("DELETE", f"{_path(subject, version)}?permanent={str(permanent).lower()}")
    numbers = ", ".join(map(str, found if isinstance(found, list) else [found]))
    click.echo(f"{subject}: deleted{' permanently' if permanent else ''}: {numbers}")
