"""A schema registry in this process, over HTTP: the part of Confluent's API that serializers and deserializers use.

Knows nothing of the content of schemas, except how to convert Protobuf's texts and descriptors.
"""

import base64
import contextlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from google.protobuf import descriptor_pb2


class Stored(NamedTuple):
    """A registered schema: its text, kind, and references."""

    text: str
    kind: str
    references: tuple[tuple[str, str, int], ...]


class SchemaRegistry:
    """The registered schemas, and the requests; ``user`` is the required ``user:password``."""

    def __init__(self, url: str, user: str | None) -> None:
        self.url, self.user = url, user
        self.schemas: list[Stored] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.serialized = True  #: whether a request may ask for Protobuf as descriptors, as with Confluent's registry
        self._lock = threading.Lock()

    def register(self, subject: str, stored: Stored) -> int:
        """Returns the id of the schema; the same schema gets the same id."""
        with self._lock:
            if stored not in self.schemas:
                self.schemas.append(stored)
            schema_id = self.schemas.index(stored) + 1
            versions = self.subjects.setdefault(subject, [])
            if schema_id not in versions:
                versions.append(schema_id)
            return schema_id

    def answer(self, method: str, url: str, body: Any) -> tuple[int, Any]:
        """Returns the status and the JSON of the response."""
        parts = urlsplit(url)
        self.requests.append(f"{method} {url}")
        for verb, pattern, handler in ROUTES:
            found = re.fullmatch(pattern, parts.path)
            if found and verb == method:
                form = parse_qs(parts.query).get("format", [""])[0]
                return handler(self, *map(unquote, found.groups()), body=body, form=form)
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def _by_id(self, schema_id: str, *, body: Any, form: str) -> tuple[int, Any]:
        if not 0 < int(schema_id) <= len(self.schemas):
            return 404, {"error_code": 40403, "message": "Schema not found"}
        return 200, self._shown(int(schema_id), form)

    def _version(self, subject: str, version: str, *, body: Any, form: str) -> tuple[int, Any]:
        versions = self.subjects.get(subject, [])
        if not versions:
            return 404, {"error_code": 40401, "message": f"Subject '{subject}' not found."}
        number = len(versions) if version == "latest" else int(version)
        schema_id = versions[number - 1]
        return 200, {"subject": subject, "version": number, "id": schema_id, **self._shown(schema_id, form)}

    def _register(self, subject: str, *, body: Any, form: str) -> tuple[int, Any]:
        return 200, {"id": self.register(subject, _stored(body))}

    def _look_up(self, subject: str, *, body: Any, form: str) -> tuple[int, Any]:
        schema_id = self.register(subject, _stored(body))
        version = self.subjects[subject].index(schema_id) + 1
        return 200, {"subject": subject, "version": version, "id": schema_id, **self._shown(schema_id, "serialized")}

    def _shown(self, schema_id: int, form: str) -> dict[str, Any]:
        text, kind, references = self.schemas[schema_id - 1]
        if kind == "PROTOBUF" and form == "serialized" and self.serialized:
            text = _as_descriptor(text)
        shown: dict[str, Any] = {"schema": text, "schemaType": kind}
        if references:
            shown["references"] = [
                {"name": name, "subject": subject, "version": version} for name, subject, version in references
            ]
        return shown


ROUTES: Any = [
    ("GET", r"/schemas/ids/(\d+)", SchemaRegistry._by_id),
    ("GET", r"/subjects/([^/]+)/versions/(latest|\d+)", SchemaRegistry._version),
    ("POST", r"/subjects/([^/]+)/versions", SchemaRegistry._register),
    ("POST", r"/subjects/([^/]+)", SchemaRegistry._look_up),
]


@contextlib.contextmanager
def schema_registry(user: str | None = None) -> Iterator[SchemaRegistry]:
    """Yields a registry that listens until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
            wanted = None if user is None else "Basic " + base64.b64encode(user.encode()).decode()
            if wanted is not None and self.headers.get("Authorization") != wanted:
                status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, answer = registry.answer(self.command, self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing: `requests` has the messages."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry = SchemaRegistry(f"http://127.0.0.1:{server.server_port}", user)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _stored(body: Any) -> Stored:
    references = tuple((each["name"], each["subject"], each["version"]) for each in body.get("references") or ())
    return Stored(body["schema"], body.get("schemaType") or "AVRO", references)


def _as_descriptor(text: str) -> str:
    """Compiles the text, as the real registry does; a schema registered as a descriptor is unchanged."""
    try:
        descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        return text
    except ValueError:
        from barnabas.pipelines.values.protobuf_schemas import from_text

        files = descriptor_pb2.FileDescriptorSet.FromString(from_text(text))
        return base64.b64encode(files.file[-1].SerializeToString()).decode()
