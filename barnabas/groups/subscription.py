"""The topics in the subscription of a consumer of the classic protocol.

Knows nothing of groups. It reads the fields that all versions have in common, so that those of newer clients can be
read, too.
"""

import struct

from barnabas.errors import MalformedMessage

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers."""

_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """Returns the topics of a ``ConsumerProtocolSubscription``.

    :raises MalformedMessage: it cannot be decoded

    >>> sorted(subscribed_topics(bytes.fromhex("0003 00000002 0001 61 0002 6262 00000000")))
    ['a', 'bb']
    """
    try:
        (version,), (count,) = _INT16(metadata, 0), _INT32(metadata, 2)
        if version < 0 or count < 0 or count > len(metadata):
            raise MalformedMessage(f"a subscription of version {version} to {count} topics")
        topics, at = [], 6
        for _ in range(count):
            (size,) = _INT16(metadata, at)
            at += 2 + size
            if size < 0 or at > len(metadata):
                raise MalformedMessage("a subscription that ends inside a topic's name")
            topics.append(metadata[at - size : at].decode())
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedMessage("a subscription is truncated, or the name of a topic is not UTF-8") from error
    return frozenset(topics)
