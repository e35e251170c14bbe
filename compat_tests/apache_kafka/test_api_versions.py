"""The response of ApiVersions, beside Apache Kafka's: the additional APIs and versions, by name."""

from typing import Any

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from tests.raw import Client

OLDER = {
    1: 4,
    2: 1,
    8: 2,
    9: 1,
    19: 2,
    20: 1,
    23: 2,
    29: 1,
    30: 1,
    31: 1,
    32: 1,
    34: 1,
    35: 1,
    38: 1,
    39: 1,
    40: 1,
    41: 1,
}
"""First versions of Apache Kafka 4 where ours is 0, for clients from before 4."""

NEWER = {28: (5, 6), 42: (2, 3), 88: (0, 1), 89: (0, 1), 93: (None, 0)}
"""Last versions that were added in 4.4: Apache Kafka 4.3's, and ours."""

Listed = dict[int, tuple[int, int]]


def listed(port: int) -> Listed:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with Client(port) as client:
        answer: Any = client.ask(request, 3)
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


def test_the_list_is_apache_kafkas_but_for_what_is_named_here(apache_kafka: Any, beside: Any) -> None:
    theirs, ours = listed(apache_kafka.port), listed(beside.port)
    wanted: Listed = {}
    for key, (first, last) in theirs.items():
        assert key not in OLDER or first == OLDER[key]
        assert key not in NEWER or last == NEWER[key][0]
        wanted[key] = (0 if key in OLDER else first, NEWER[key][1] if key in NEWER else last)
    wanted |= {key: (0, ours_last) for key, (theirs_last, ours_last) in NEWER.items() if theirs_last is None}
    assert ours == wanted
