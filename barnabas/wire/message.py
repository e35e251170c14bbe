"""Requests, responses and stored data: structures with versions; each response belongs to a request.

Knows nothing of sockets: a frame is a list of buffers.
"""

import struct
from typing import ClassVar, Self

from barnabas.errors import MalformedMessage
from barnabas.wire import compiler
from barnabas.wire.schema import Struct, Versions
from barnabas.wire.types import Buffer

API_VERSIONS = 18
#: By response header version: the struct of size and correlation id, and the header's part of the size.
_HEADERS = ((struct.Struct(">ii").pack, 4), (struct.Struct(">iix").pack, 5))


class Message(Struct):
    """A structure with valid ``versions``, some of which are ``flexible``."""

    _readers: ClassVar[dict[int, compiler.Read]]
    _writers: ClassVar[dict[int, compiler.Write]]

    def __init_subclass__(cls, *, versions: str = "none", flexible: str = "none") -> None:
        cls.versions, cls.flexible = Versions.parse(versions), Versions.parse(flexible)
        cls._readers, cls._writers = {}, {}

    @classmethod
    def _writer(cls, version: int) -> compiler.Write:
        if version not in cls.versions:
            raise ValueError(f"{cls.__qualname__} has no version {version}, only {cls.versions}")
        write = cls._writers[version] = compiler.writer(cls, version, version in cls.flexible)
        return write

    @classmethod
    def _reader(cls, version: int) -> compiler.Read:
        if version not in cls.versions:
            raise MalformedMessage(f"{cls.__qualname__} has no version {version}, only {cls.versions}")
        read = cls._readers[version] = compiler.reader(cls, version, version in cls.flexible)
        return read

    def encode(self, *, version: int, flexible: bool | None = None) -> bytes:
        """Encodes the message in a version. :raises ValueError: the version is not valid"""
        if flexible is not None:
            return super().encode(version=version, flexible=flexible)
        parts: list[Buffer] = []
        (self._writers.get(version) or self._writer(version))(self, parts, [])
        return b"".join(parts)

    def encode_parts(self, version: int) -> list[Buffer]:
        """Encodes the message in pieces; large record batches are pieces without a copy.

        The first piece is never such a batch.
        """
        parts: list[Buffer] = []
        cuts: list[int] = []
        (self._writers.get(version) or self._writer(version))(self, parts, cuts)
        if not cuts:
            return [b"".join(parts)]
        pieces: list[Buffer] = []
        start = 0
        for cut in cuts:
            pieces.append(b"".join(parts[start:cut]))
            pieces.append(parts[cut])
            start = cut + 1
        pieces.append(b"".join(parts[start:]))
        return pieces

    @classmethod
    def decode(cls, data: Buffer, *, version: int, flexible: bool | None = None, at: int = 0) -> Self:
        """Decodes the message at ``data[at]``. :raises MalformedMessage: it cannot be decoded"""
        if flexible is not None:
            return super().decode(data, version=version, flexible=flexible, at=at)
        read = cls._readers.get(version) or cls._reader(version)
        try:  # the same as decode_from(), without a further call for each request
            value: Self = read(data, at)[0]
        except compiler.UNREADABLE as error:
            raise compiler.malformed_message(cls, version, error) from error
        return value

    @classmethod
    def decode_from(cls, data: Buffer, at: int, *, version: int, flexible: bool | None = None) -> tuple[Self, int]:
        """Decodes the message at ``data[at]``, and returns it with its end. See :meth:`decode`."""
        if flexible is not None:
            return super().decode_from(data, at, version=version, flexible=flexible)
        read = cls._readers.get(version) or cls._reader(version)
        try:
            found: tuple[Self, int] = read(data, at)
        except compiler.UNREADABLE as error:
            raise compiler.malformed_message(cls, version, error) from error
        return found


class Request(Message):
    """A request, with its API key."""

    api_key: ClassVar[int]
    response: ClassVar[type["Response"]]
    #: The imported requests by API key.
    by_key: ClassVar[dict[int, type["Request"]]] = {}

    def __init_subclass__(cls, *, api_key: int, versions: str, flexible: str) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        assert api_key not in Request.by_key, f"{cls.__name__} has the key of {Request.by_key[api_key]}"
        cls.api_key = api_key
        Request.by_key[api_key] = cls


class Response(Message):
    """A response, with the versions of its request."""

    request: ClassVar[type[Request]]

    def __init_subclass__(cls, *, to: type[Request]) -> None:
        cls.request, to.response = to, cls
        cls.versions, cls.flexible = to.versions, to.flexible
        cls._readers, cls._writers = {}, {}

    @classmethod
    def header_version(cls, version: int) -> int:
        """Returns the version of the response header: 1 in flexible versions, except of ApiVersions (KIP-511)."""
        return int(version >= cls.flexible.first and cls.request.api_key != API_VERSIONS)

    def encode_frame(self, correlation_id: int, version: int) -> list[Buffer]:
        """Encodes size, response header and body, in pieces as :meth:`encode_parts` returns them."""
        pieces = self.encode_parts(version)
        pack, size = _HEADERS[version >= self.flexible.first and self.request.api_key != API_VERSIONS]
        for piece in pieces:
            size += len(piece)
        pieces[0] = pack(size, correlation_id) + pieces[0]
        return pieces
