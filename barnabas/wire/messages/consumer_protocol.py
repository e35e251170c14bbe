"""The consumer protocol: the opaque bytes in JoinGroup and SyncGroup if protocol_type is "consumer".

v1 owned_partitions, for cooperative rebalances (KIP-429) · v2 generation_id (KIP-792) · v3 rack_id (KIP-881)

On the wire, an int16 with the version precedes it. A broker reads it only to know which topics a group consumes.
"""

import struct
from typing import Self

from barnabas.errors import MalformedMessage
from barnabas.wire.message import Message
from barnabas.wire.schema import Struct, field
from barnabas.wire.types import Buffer, int32, string


class ConsumerProtocol(Message):
    """A message with its version before it."""

    def encode_prefixed(self, version: int) -> bytes:
        """Encodes the version, then the message."""
        return struct.pack(">h", version) + self.encode(version=version)

    @classmethod
    def decode_prefixed(cls, data: Buffer) -> Self:
        """Decodes a version and a message; an unknown newer version is read as the newest known one, as by consumers.

        :raises MalformedMessage: ``data`` cannot be decoded
        """
        if len(data) < 2:
            raise MalformedMessage(f"{cls.__name__} without a version")
        (version,) = struct.unpack_from(">h", data)
        return cls.decode(data, version=min(version, cls.versions.last), at=2)


class ConsumerProtocolSubscription(ConsumerProtocol, versions="0-3", flexible="none"):
    class TopicPartition(Struct):
        topic: string
        partitions: list[int32]

    topics: list[string]
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field("1+", default=())
    generation_id: int32 = field("2+", default=-1)
    rack_id: string | None = field("3+", default=None)


class ConsumerProtocolAssignment(ConsumerProtocol, versions="0-3", flexible="none"):
    class TopicPartition(Struct):
        topic: string
        partitions: list[int32]

    assigned_partitions: list[TopicPartition]
    user_data: bytes | None = None
