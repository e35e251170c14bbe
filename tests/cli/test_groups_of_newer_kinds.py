"""``barnabas groups`` on consumer, share and streams groups."""

import pytest
from kafka import KafkaAdminClient

from barnabas.cli.requests import send_to_coordinator
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

Topology = StreamsGroupHeartbeatRequest.Topology


def consumer(epoch):
    first = epoch == 0
    return ConsumerGroupHeartbeatRequest(
        group_id="consumers",
        member_id="me",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if first else -1,
        subscribed_topic_names=["t"] if first else None,
        topic_partitions=[] if first else None,
    )


def share(epoch):
    return ShareGroupHeartbeatRequest(
        group_id="sharers", member_id="me", member_epoch=epoch, subscribed_topic_names=["t"] if epoch == 0 else None
    )


def streams(epoch):
    first = epoch == 0
    subtopology = Topology.Subtopology(
        subtopology_id="0",
        source_topics=["t"],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    return StreamsGroupHeartbeatRequest(
        group_id="streamers",
        member_id="me",
        member_epoch=epoch,
        endpoint_information_epoch=0,
        instance_id=None,
        rack_id=None,
        rebalance_timeout_ms=60_000 if first else -1,
        topology=Topology(epoch=0, subtopologies=[subtopology]) if first else None,
        active_tasks=[] if first else None,
        standby_tasks=[] if first else None,
        warmup_tasks=[] if first else None,
        process_id="app" if first else None,
        user_endpoint=None,
        client_tags=[] if first else None,
        task_offsets=None,
        task_end_offsets=None,
        shutdown_application=False,
    )


BEATS = {"consumers": consumer, "sharers": share, "streamers": streams}


@pytest.fixture
def admin(broker):
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    yield client
    client.close()


@pytest.fixture
def join(admin, broker):
    """Joins a group, and returns the member's epoch, once it has an assignment."""
    broker.create_topic("t", partitions=2)

    def joined(group):
        epoch = 0
        for _ in range(100):
            answer = send_to_coordinator(admin, group, BEATS[group](epoch))
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch
            if group == "streamers":
                if answer.active_tasks:
                    break
            elif answer.assignment is not None and answer.assignment.topic_partitions:
                break
        return epoch

    return joined


@pytest.fixture
def leave(admin):
    def left(group):
        assert send_to_coordinator(admin, group, BEATS[group](-1)).error_code == 0

    return left


def test_list(barnabas, join):
    for group in BEATS:
        join(group)
    assert barnabas("groups", "--list").lines == ["consumers", "sharers", "streamers"]
    rows = [line.split() for line in barnabas("groups", "--list", "--type", "--state").lines]
    assert rows[0] == ["GROUP", "TYPE", "STATE"]
    assert rows[2:] == [
        ["consumers", "consumer", "Stable"],
        ["sharers", "share", "Stable"],
        ["streamers", "streams", "Stable"],
    ]
    for option, group in (("--consumer", "consumers"), ("--share", "sharers"), ("--streams", "streamers")):
        assert barnabas("groups", "--list", option).lines == [group]
    assert [row["group"] for row in barnabas("groups", "--list", "--type", "Share,classic", "--json").json] == [
        "sharers"
    ]


@pytest.mark.parametrize(
    ("group", "type_"), [("consumers", "consumer"), ("sharers", "share"), ("streamers", "streams")]
)
def test_state(barnabas, join, group, type_):
    epoch = join(group)
    (row,) = barnabas("groups", "--describe", "--group", group, "--state", "--json").json
    assert (row["group"], row["type"], row["members"], row["epoch"]) == (group, type_, 1, epoch)
    table = barnabas("groups", "--describe", "--group", group, "--state", "--verbose").lines
    assert table[0].split()[-3:] == ["EPOCH", "ASSIGNMENT", "EPOCH"]
    assert table[-1].split()[-1] == str(epoch)


def test_members_of_a_consumer_group(barnabas, join):
    epoch = join("consumers")
    (row,) = barnabas("groups", "--describe", "--group", "consumers", "--members", "--json").json
    assert (row["consumer_id"], row["epoch"], row["upgraded"]) == ("me", epoch, True)
    assert row["partitions"] == row["target_partitions"] == ["t-0", "t-1"]


def test_members_of_a_share_group(barnabas, join):
    epoch = join("sharers")
    (row,) = barnabas("groups", "--describe", "--group", "sharers", "--members", "--json").json
    assert (row["consumer_id"], row["epoch"], row["partitions"]) == ("me", epoch, ["t-0", "t-1"])


def test_members_of_a_streams_group(barnabas, join):
    join("streamers")
    (row,) = barnabas("groups", "--describe", "--group", "streamers", "--members", "--json").json
    assert (row["consumer_id"], row["process_id"]) == ("me", "app")
    assert (row["active_tasks"], row["standby_tasks"]) == (["0_0", "0_1"], [])
    assert row["partitions"] == ["t-0", "t-1"]


@pytest.mark.parametrize("group", ["consumers", "streamers"])
def test_offsets_are_reset_when_nobody_is_there(barnabas, join, leave, group):
    barnabas("produce", "--topic", "t", stdin=b"a\nb\nc\n")
    join(group)
    reset = ("groups", "--reset-offsets", "--group", group, "--topic", "t", "--to-latest", "--execute")
    assert "has members" in barnabas(*reset).err
    leave(group)
    assert barnabas(*reset).code == 0
    rows = barnabas("groups", "--describe", "--group", group, "--json").json
    assert sum(row["current_offset"] for row in rows) == 3
    assert {row["lag"] for row in rows} == {0}
    assert barnabas("groups", "--delete-offsets", "--group", group, "--topic", "t:0").code == 0
    assert len(barnabas("groups", "--describe", "--group", group, "--json").json) == 1
    assert barnabas("groups", "--delete", "--group", group).lines == [f"Deleted group {group}"]


def test_a_member_that_reads_is_told_beside_its_partitions(barnabas, join):
    join("consumers")
    rows = barnabas("groups", "--describe", "--group", "consumers", "--json").json
    assert [(row["partition"], row["consumer_id"], row["current_offset"]) for row in rows] == [
        (0, "me", None),
        (1, "me", None),
    ]


def test_where_share_groups_start(barnabas, join, leave):
    barnabas("produce", "--topic", "t", stdin=b"a\nb\nc\n")
    join("sharers")
    assert (
        "has members"
        in barnabas("groups", "--reset-offsets", "--group", "sharers", "--topic", "t", "--to-earliest", "--execute").err
    )
    leave("sharers")

    def starts():
        rows = barnabas("groups", "--describe", "--group", "sharers", "--json").json
        return {row["partition"]: row["start_offset"] for row in rows}

    for target, offset in (("--to-earliest", 0), ("--to-latest", 3)):
        reset = barnabas("groups", "--reset-offsets", "--group", "sharers", "--topic", "t", target, "--execute")
        assert reset.code == 0, reset
        assert sum(starts().values()) == offset
    table = barnabas("groups", "--describe", "--group", "sharers").lines
    assert table[0].split() == ["GROUP", "TOPIC", "PARTITION", "START", "OFFSET", "LAG"]
    assert barnabas("groups", "--delete-offsets", "--group", "sharers", "--topic", "t").code == 0
    assert starts() == {}
    assert barnabas("groups", "--delete", "--group", "sharers").code == 0


@pytest.mark.parametrize(
    "target", [["--to-offset", "1"], ["--to-current"], ["--shift-by", "1"], ["--by-duration", "P1D"]]
)
def test_what_share_groups_cannot_be_reset_to(barnabas, join, target):
    join("sharers")
    found = barnabas("groups", "--reset-offsets", "--group", "sharers", "--topic", "t", *target)
    assert (found.code, found.out) == (2, "")
    assert "--to-datetime" in found.err


def test_a_share_groups_offsets_are_deleted_by_topic(barnabas, join):
    join("sharers")
    found = barnabas("groups", "--delete-offsets", "--group", "sharers", "--topic", "t:0")
    assert (found.code, "deleted by topic" in found.err) == (2, True)
