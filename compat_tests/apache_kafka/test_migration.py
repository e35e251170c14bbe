"""A group that becomes a consumer group and a classic one again: responses and records of both brokers are equal.

Must not read files: the content of ``__consumer_offsets`` is fetched from the running broker. Member ids are the
clients' own, so that hash tables have the same order in both brokers.
"""

from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.messages.group_records import GroupMetadataKey, decode_key, decode_value

from .hand_over import apache_on, barnabas_on, running
from .play import Step
from .scenarios.consumer_groups import beat as consumer_beat
from .scenarios.consumer_groups import enter, leave, listed, shown
from .scenarios.groups import beat, protocols
from .scenarios.groups import leave as classic_leave
from .steps import ask, create, join, published, sync
from .test_consumer_groups import SETTINGS, Client

pytestmark = pytest.mark.xdist_group("hand_over")

PROTOCOLS = ("range", "roundrobin")


def joins(*owned: int, version: int = 1) -> list[Step]:
    """``me`` joins, and syncs an assignment of its own."""
    kind = ConsumerProtocolSubscription.TopicPartition
    has = [kind(topic="t", partitions=list(owned))] if owned else []
    metadata = ConsumerProtocolSubscription(topics=["t"], owned_partitions=has).encode_prefixed(version)
    return [
        join("me", v=3, Protocols=protocols(*((name, metadata) for name in PROTOCOLS))),
        syncs(),
    ]


def syncs() -> Step:
    kind = ConsumerProtocolAssignment.TopicPartition
    everything = ConsumerProtocolAssignment(assigned_partitions=[kind(topic="t", partitions=[0, 1, 2, 3])])
    found = [{"MemberId": "me", "Assignment": everything.encode_prefixed(1)}]
    return sync("$m", v=3, Assignments=found)


STEPS: list[Any] = [
    enter("~c", "~t"),
    joins(),
    consumer_beat("~c", owned={"~t": [0, 1]}),
    joins(),
    beat(v=3),
    # The last member of the consumer protocol leaves, returns, and is removed.
    leave("~c"),
    beat(v=3),
    joins(),
    enter("~c", "~t"),
    beat(v=3),
    joins(0, 1, 2, 3),
    joins(0, 1),
    consumer_beat("~c"),
    shown(),
    classic_leave("~c", v=3),
    joins(),
    # The only classic member leaves while the group has one of the consumer protocol, and then begins the next group.
    enter("~d", "~t"),
    joins(),
    classic_leave("me", v=3),
    consumer_beat("~d"),
    leave("~d"),
    join(v=3),
    listed(),
]


def without_times(records: list[tuple[str, str | None]]) -> list[tuple[str, Any]]:
    """A classic group's record has the time of its last state change."""
    results: list[tuple[str, Any]] = []
    for key, value in records:
        decoded = decode_key(bytes.fromhex(key))
        if isinstance(decoded, GroupMetadataKey) and value is not None:
            group = decode_value(decoded, bytes.fromhex(value))
            results.append((key, str(group).replace(str(group.current_state_timestamp), "a time")))  # type: ignore[attr-defined]
        else:
            results.append((key, value))
    return results


def test_both_write_the_same(kafka_jars: Path, tmp_path: Path) -> None:
    seen = []
    for broker in (apache_on(tmp_path / "theirs", SETTINGS), barnabas_on(tmp_path / "ours", SETTINGS)):
        client = Client()
        with running(broker) as bootstrap:
            coordinator = ask("FindCoordinator", v=4, KeyType=0, CoordinatorKeys=["~g"])
            client.ask(bootstrap, coordinator, create("~t", 4), published())
            answers = client.without_ids(client.ask(bootstrap, *STEPS))
            for answer in answers[-2:]:
                for made_up in ("MemberId", "Leader", "Members"):
                    answer.pop(made_up, None)
            seen.append((answers, [without_times(each) for each in client.records(bootstrap)]))
    (answers, records), (our_answers, our_records) = seen
    assert our_answers == answers
    assert our_records == records
    assert sum(map(len, records)) > 50, "two upgrades and three downgrades are more than that"
