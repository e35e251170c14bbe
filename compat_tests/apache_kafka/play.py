"""Plays a scenario of requests against one broker and records the responses.

Knows sockets, frames and steps. Must not know which broker it plays against, nor check a response.
"""

import contextlib
import socket
import struct
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .batches import Records
from .codec import Odd, Raw, decode, encode, message

API_VERSIONS, PATIENCE = 18, 10.0
TRY_AGAIN = {14, 15, 16, 51}
"""A coordinator that loads, is not there yet, moved, or still ends a transaction: every client asks again, and so does
this one."""

NOT_KNOWN_YET = {3}
"""A topic that was just created, at a part of Apache Kafka that hears of it after the others: setup steps ask again."""

UNSETTLED = {"PrepareCommit", "PrepareAbort"}
"""States of a transaction whose markers are not written yet, which takes Apache Kafka a moment."""

CLIENT_ID = "compat"
NO_SUCH_ID = b"\7" * 16
"""The id of a topic that does not exist."""


@dataclass(frozen=True)
class Step:
    """One action. In `body` ``~x`` is the scenario's own name x, ``$x`` a saved value, ``$id ~x`` a topic's id."""

    verb: str
    api: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)
    on: str = "main"
    version: int | None = None
    save: Mapping[str, str] = field(default_factory=dict)
    until: tuple[str, Any] | None = None
    within: float = PATIENCE
    quiet: bool = False
    mine: bool = False
    client_id: str | bytes | None = CLIENT_ID
    correct: Callable[[bytes], bytes] | None = None
    patient: bool = True


class Connection:
    """A socket that sends and receives frames; the end of the stream and a timeout are responses too."""

    def __init__(self, address: tuple[str, int], source: str | None = None) -> None:
        self.socket = socket.create_connection(address, PATIENCE, (source, 0) if source else None)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests: list[tuple[str, int, int]] = []
        self.correlation_id = 0

    def send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a closed connection is noticed when the response is read
            self.socket.sendall(data)

    def receive(self, within: float) -> bytes | str:
        """Returns one frame without its length, or "closed", or "silent"."""
        self.socket.settimeout(within)
        try:
            size = struct.unpack(">i", self.exactly(4))[0]
            return self.exactly(size)
        except TimeoutError:
            return "silent"
        except (EOFError, ConnectionError):
            return "closed"

    def exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def request_frame(step: Step, body: Mapping[str, Any], version: int, correlation_id: int) -> bytes:
    schema = message(f"{step.api}Request")
    flexible = version in schema.flexible
    header = encode(
        message("RequestHeader"),
        {
            "RequestApiKey": schema.api_key,
            "RequestApiVersion": version,
            "CorrelationId": correlation_id,
            "ClientId": step.client_id,
        },
        2 if flexible else 1,
    )
    data = header + encode(schema, body, version)
    if step.correct is not None:
        data = step.correct(data)
    return struct.pack(">i", len(data)) + data


def read_answer(data: bytes | str, api: str, version: int, correlation_id: int) -> Any:
    """Decodes a frame, or describes its error in words."""
    if isinstance(data, str):
        return data
    schema = message(f"{api}Response")
    header = 1 if version in schema.flexible and schema.api_key != API_VERSIONS else 0
    if len(data) < 4 + header or data[:4] != struct.pack(">i", correlation_id) or (header and data[4]):
        return f"a wrong response header: {data[:5].hex()}"
    if schema.api_key == API_VERSIONS and data[4:6] == b"\0\x23":
        version = 0
    try:
        return decode(schema, data[4 + header :], version)
    except (Odd, ValueError) as error:
        return f"not readable: {error}: {data[:200].hex()}"


class Login(NamedTuple):
    """The user of a connection with SASL/PLAIN, and the port."""

    port: int
    user: str
    password: str


def logged_in(host: str, login: Login) -> Connection:
    """Returns a connection that has authenticated."""
    connection = Connection((host, login.port))
    token = f"\0{login.user}\0{login.password}".encode()
    for number, step in enumerate(
        (Step("ask", "SaslHandshake", {"Mechanism": "PLAIN"}), Step("ask", "SaslAuthenticate", {"AuthBytes": token}))
    ):
        connection.send(request_frame(step, step.body, 1, number))
        answer = read_answer(connection.receive(PATIENCE), step.api, 1, number)
        if isinstance(answer, str) or answer["ErrorCode"]:
            raise SetupFailed(f"{step.api}: {answer}")
    return connection


class SetupFailed(Exception):
    """A setup step of a scenario failed, so the following steps would be meaningless."""


class Play:
    """One run of a scenario against one broker; `transcript` has (label, API, answer) of all steps but quiet ones.

    `sources` are the source addresses of connections, or their logins, by name.
    """

    def __init__(
        self,
        address: tuple[str, int],
        prefix: str,
        versions: Mapping[str, int],
        sources: Mapping[str, str | Login] | None = None,
    ) -> None:
        self.address, self.prefix, self.versions = address, prefix, versions
        self.sources = sources or {}
        self.saved: dict[str, Any] = {}
        self.connections: dict[str, Connection] = {}
        self.transcript: list[tuple[str, str, Any]] = []

    def run(self, steps: Sequence[Step]) -> None:
        try:
            for number, step in enumerate(steps):
                self.number = number
                getattr(self, step.verb)(step)
        except SetupFailed as failed:
            self.transcript.append((f"{self.number} setup", "", f"failed: {failed}"))
        finally:
            for connection in self.connections.values():
                connection.socket.close()

    # ------------------------------------------------------------ verbs

    def ask(self, step: Step) -> None:
        """Sends a request, and waits for the response."""
        deadline = time.monotonic() + max(PATIENCE, step.within)
        passing = TRY_AGAIN | NOT_KNOWN_YET if step.quiet else TRY_AGAIN
        while True:
            self.send(step)
            answer = self.take(step)
            again = step.patient and bool(error_codes(answer) & passing or states(answer) & UNSETTLED)
            if step.until is not None:
                path, wanted = step.until
                again = again or look_up(answer, path) != self.resolve(wanted)
            if not again or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        self.record(step, answer)

    def send(self, step: Step) -> None:
        """Sends a request without waiting."""
        connection = self.connection(step.on)
        connection.correlation_id += 1
        version = self.versions[step.api] if step.version is None else step.version
        body = self.resolve(step.body)
        connection.send(request_frame(step, body, version, connection.correlation_id))
        connection.requests.append((step.api, version, connection.correlation_id))

    def receive(self, step: Step) -> None:
        """Receives the response to the oldest pending request on this connection."""
        api = self.connection(step.on).requests[0][0]
        self.record(replace(step, api=api), self.take(step))

    def raw(self, step: Step) -> None:
        """Sends bytes unchanged, including their length; the response is decoded as one of `api`, or kept in hex."""
        connection = self.connection(step.on)
        connection.send(self.resolve(step.body["bytes"]))
        answer: Any = connection.receive(step.within)
        if isinstance(answer, bytes):
            answer = answer.hex() if not step.api else read_answer(answer, step.api, step.version or 0, 1)
        self.record(step, answer)

    def unanswered(self, step: Step) -> None:
        """Notes whether the oldest request has no response: that to a later one comes first, or the connection ends."""
        connection = self.connection(step.on)
        connection.requests.pop(0)
        connection.correlation_id += 1
        probe = Step("ask", "ApiVersions")
        connection.send(request_frame(probe, {}, 0, connection.correlation_id))
        data = connection.receive(step.within)
        if isinstance(data, bytes):
            data = "unanswered" if data[:4] == struct.pack(">i", connection.correlation_id) else "answered"
        self.record(step, data)

    def pause(self, step: Step) -> None:
        time.sleep(step.within)

    def published(self, step: Step) -> None:
        """Returns once every part of the broker has applied the changes that were made before.

        Apache Kafka tells its parts of an image of the metadata one after the other, first the one that describes
        quotas, and then begins with the next image. When the second of two changes is described, all have the first.
        """
        name = f"published-{uuid.uuid4()}"
        entity = [{"EntityType": "client-id", "EntityName": name}]
        component = {"EntityType": "client-id", "MatchType": 0, "Match": name}
        for removed, described in ((False, ("Entries.0.Entity", entity)), (True, ("Entries", []))):
            op = {"Key": "producer_byte_rate", "Value": 1e15, "Remove": removed}
            changes = {"Entries": [{"Entity": entity, "Ops": [op]}], "ValidateOnly": False}
            shown = {"Components": [component], "Strict": True}
            self.ask(replace(step, api="AlterClientQuotas", version=1, body=changes))
            self.ask(replace(step, api="DescribeClientQuotas", version=1, body=shown, until=described))

    def hang_up(self, step: Step) -> None:
        self.connections.pop(step.on).socket.close()

    # ------------------------------------------------------------ parts

    def connection(self, name: str) -> Connection:
        if name not in self.connections:
            source = self.sources.get(name)
            self.connections[name] = (
                logged_in(self.address[0], source) if isinstance(source, Login) else Connection(self.address, source)
            )
        return self.connections[name]

    def take(self, step: Step) -> Any:
        connection = self.connection(step.on)
        api, version, correlation_id = connection.requests.pop(0)
        answer = read_answer(connection.receive(step.within), api, version, correlation_id)
        if isinstance(answer, str):
            self.connections.pop(step.on).socket.close()  # the next step opens a new one
        return answer

    def record(self, step: Step, answer: Any) -> None:
        for name, path in step.save.items():
            self.saved[name] = look_up(answer, path)
        if step.quiet:
            if isinstance(answer, str) or error_codes(answer) - {0}:
                raise SetupFailed(f"{step.api}: {answer}")
            return
        if step.mine:
            answer = only(answer, self.prefix)
        self.transcript.append((f"{self.number} {step.verb} {step.api}", step.api, answer))

    def resolve(self, value: Any) -> Any:
        """Returns a body with the names of this run and the saved values."""
        if isinstance(value, Raw | bytes):
            return value
        if isinstance(value, Records):
            return value.with_saved(self.resolve)
        if isinstance(value, str):
            if value.startswith("$id "):
                return self.saved.get(value, NO_SUCH_ID)
            return self.saved[value] if value.startswith("$") else value.replace("~", self.prefix)
        if isinstance(value, Mapping):
            return {name: self.resolve(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [each if isinstance(each, tuple) and name_of_tag(each) else self.resolve(each) for each in value]
        return value


def name_of_tag(value: tuple[Any, ...]) -> bool:
    """Returns whether this is a (tag, bytes) pair and not a list."""
    return len(value) == 2 and isinstance(value[0], int) and isinstance(value[1], bytes)


def look_up(answer: Any, path: str) -> Any:
    """Returns the value at a path such as ``Topics.0.TopicId``; None if there is none."""
    for part in path.split("."):
        try:
            answer = answer[int(part)] if part.lstrip("-").isdigit() else answer[part]
        except (KeyError, IndexError, TypeError):
            return None
    return answer


def error_codes(answer: Any) -> set[int]:
    """Returns every error code in a response, at any depth."""
    if isinstance(answer, list):
        return set().union(*map(error_codes, answer))
    if not isinstance(answer, dict):
        return set()
    own = {value for name, value in answer.items() if name in ("ErrorCode", "PartitionErrorCode")}
    return own.union(*map(error_codes, answer.values()))


def states(answer: Any) -> set[str]:
    """Returns the states of the transactions in a response."""
    described = answer.get("TransactionStates", ()) if isinstance(answer, dict) else ()
    return {each["TransactionState"] for each in described}


def only(answer: Any, prefix: str) -> Any:
    """Returns the response without the topics, groups and resources of other scenarios."""
    if isinstance(answer, list):
        kept = [each for each in answer if not isinstance(each, dict) or is_mine(each, prefix)]
        return [only(each, prefix) for each in kept]
    if isinstance(answer, dict):
        return {name: only(value, prefix) for name, value in answer.items()}
    return answer


def is_mine(entry: Mapping[str, Any], prefix: str) -> bool:
    named = [
        entry[key]
        for key in ("Name", "GroupId", "ResourceName", "Topic", "TopicName", "TransactionalId")
        if isinstance(entry.get(key), str)
    ]
    return not named or any(name.startswith(prefix) for name in named)
