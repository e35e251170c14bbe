"""The topics in the subscription of a consumer."""

import pytest

from barnabas.errors import MalformedMessage
from barnabas.groups.subscription import subscribed_topics
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

GOOD = b"\0\0" + b"\0\0\0\2" + b"\0\1a" + b"\0\2bb"


@pytest.mark.parametrize("version", range(4))
def test_every_version(version):
    subscription = ConsumerProtocolSubscription(topics=["songs", "é"], owned_partitions=[]) if version else None
    if subscription is None:
        subscription = ConsumerProtocolSubscription(topics=["songs", "é"])
    data = version.to_bytes(2, "big") + subscription.encode(version=version)
    assert subscribed_topics(data) == {"songs", "é"}


def test_a_version_that_is_yet_to_come():
    assert subscribed_topics(b"\x7f\xff" + GOOD[2:] + b"whatever") == {"a", "bb"}


@pytest.mark.parametrize("end", range(len(GOOD)))
def test_cut_short(end):
    with pytest.raises(MalformedMessage):
        subscribed_topics(GOOD[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff" + GOOD[2:],
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_nonsense(data):
    with pytest.raises(MalformedMessage):
        subscribed_topics(data)
