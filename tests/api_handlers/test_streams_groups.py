"""The APIs of streams groups: requests, responses and errors.

The expected responses are Apache Kafka 4.3.1's, except for fields that only 4.4 has.
"""

import pytest

from barnabas.config import BrokerConfig
from barnabas.errors import (
    NONE,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    NotCoordinator,
    StreamsInvalidTopology,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from barnabas.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)

Request = StreamsGroupHeartbeatRequest
Update = StreamsGroupTopologyDescriptionUpdateRequest
Subtopology = Request.Topology.Subtopology

ALL_OF_A_GROUP = 3400
NOT_STORED, AVAILABLE = 1, 3


def subtopology(source="t", keep=(), sinks=()):
    return Subtopology(
        subtopology_id="0",
        source_topics=[source],
        source_topic_regex=[],
        state_changelog_topics=[
            Request.TopicInfo(name=each, partitions=0, replication_factor=0, topic_configs=[]) for each in keep
        ],
        repartition_sink_topics=list(sinks),
        repartition_source_topics=[],
        copartition_groups=[],
    )


def beat(node, epoch=0, *subtopologies, version=0, **fields):
    joining = {}
    if epoch == 0:
        joining = {
            "rebalance_timeout_ms": 60_000,
            "topology": Request.Topology(epoch=0, subtopologies=list(subtopologies or [subtopology()])),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": "p",
            "client_tags": [Request.KeyValue(key="zone", value="z")],
        }
    names = {"group_id": "g", "member_id": "m", "member_epoch": epoch, "endpoint_information_epoch": 0}
    return node.call(Request(**(names | joining | fields)), version)


def describe(node, *group_ids, version=1, **fields):
    fields = {"include_authorized_operations": False, "group_ids": list(group_ids)} | fields
    return node.call(StreamsGroupDescribeRequest(**fields), version).groups


@pytest.fixture
def streams_node(group_node, monkeypatch):
    """A node whose streams groups get their tasks immediately."""
    delays = {f"group.streams.{name}": "0" for name in ("initial.rebalance.delay.ms", "assignment.interval.ms")}
    config = BrokerConfig.from_properties({**group_node.broker.config.originals, **delays})
    monkeypatch.setattr(group_node.broker, "config", config)
    return group_node


def tasks(outcomes):
    return None if outcomes is None else {each.subtopology_id: each.partitions for each in outcomes}


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_hears_what_to_run(streams_node, version):
    answer = beat(streams_node, version=version)
    assert (answer.error_code, answer.error_message, answer.member_id) == (NONE, None, "m")
    assert (answer.member_epoch, answer.heartbeat_interval_ms, answer.task_offset_interval_ms) == (2, 5000, 0)
    assert tasks(answer.active_tasks) == {"0": [0, 1, 2]}
    assert (answer.standby_tasks, answer.warmup_tasks, answer.status) == ([], [], [])
    answer = beat(streams_node, 2, version=version)
    assert (answer.member_epoch, answer.active_tasks) == (2, None)


def test_internal_topics_are_made(streams_node):
    answer = beat(streams_node, 0, subtopology(keep=["c"]))
    assert [each.status_code for each in answer.status] == [3]
    assert len(streams_node.broker.image.topics_by_name["c"].partitions) == 3
    answer = beat(streams_node, answer.member_epoch)
    assert (answer.status, tasks(answer.active_tasks)) == ([], {"0": [0, 1, 2]})


def test_internal_topics_that_cannot_be_made(streams_node):
    broken = subtopology(keep=["c"])
    broken.state_changelog_topics[0].topic_configs = [Request.KeyValue(key="no.such", value="config")]
    (first,) = beat(streams_node, 0, broken).status
    assert first.status_detail == "Internal topics are missing: c"
    (second,) = beat(streams_node, 0, broken).status
    failed = "Creation failed: c (Unknown topic config name: no.such)"
    assert second.status_detail == f"Internal topics are missing: c; {failed}."
    assert "c" not in streams_node.broker.image.topics_by_name


@pytest.mark.parametrize("name", ["__consumer_offsets", "no/name", ""])
def test_topics_that_there_cannot_be(streams_node, name):
    for each in (subtopology(name), subtopology(keep=[name]), subtopology(sinks=[name])):
        assert beat(streams_node, 0, each).error_code == StreamsInvalidTopology.code


def test_offsets_of_tasks_are_taken_by_the_newer_version_alone(streams_node):
    offsets = [Request.TaskOffset(subtopology_id="0", partition=0, offset=7)]
    assert beat(streams_node, task_offsets=offsets).error_code == InvalidRequest.code
    assert beat(streams_node, task_end_offsets=offsets).error_code == InvalidRequest.code
    assert beat(streams_node, version=1, task_offsets=offsets, task_end_offsets=offsets).error_code == NONE


def test_members_are_described(streams_node):
    endpoint = Request.Endpoint(host="h", port=80)
    beat(streams_node, rack_id="r", user_endpoint=endpoint)
    (group,) = describe(streams_node, "g", include_authorized_operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.authorized_operations, group.assignor_name) == (ALL_OF_A_GROUP, "sticky")
    assert [each.source_topics for each in group.topology.subtopologies] == [["t"]]
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.process_id, member.rack_id) == ("m", 2, "p", "r")
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 80)
    assert [(each.key, each.value) for each in member.client_tags] == [("zone", "z")]
    assert tasks(member.assignment.active_tasks) == tasks(member.target_assignment.active_tasks) == {"0": [0, 1, 2]}


def test_groups_that_are_none(streams_node):
    streams_node.stable("classic")
    answers = describe(streams_node, "nobody", "", "classic")
    codes = {each.group_id: (each.error_code, each.error_message is not None) for each in answers}
    assert codes == {
        "nobody": (GroupIdNotFound.code, True),
        "": (InvalidGroupId.code, False),
        "classic": (GroupIdNotFound.code, True),
    }


def test_nobody_is_the_coordinator(quiet_group_node):
    assert beat(quiet_group_node).error_code == NotCoordinator.code
    assert beat(quiet_group_node, 3).error_code == NotCoordinator.code
    assert [each.error_code for each in describe(quiet_group_node, "g")] == [NotCoordinator.code]


def update(node, member="m", epoch=0, group="g"):
    source = Update.TopologyDescriptionNode(name="s", node_type=0, source_topics=["t"], stores=[], successors=["e"])
    end = Update.TopologyDescriptionNode(
        name="e", node_type=1, source_topics=[], sink_topic=None, stores=["counts"], successors=[]
    )
    description = Update.TopologyDescription(
        subtopologies=[Update.TopologyDescriptionSubtopology(subtopology_id="0", nodes=[source, end])],
        global_stores=[Update.TopologyDescriptionGlobalStore(source=source, processor=end)],
    )
    request = Update(group_id=group, member_id=member, topology_epoch=epoch, topology_description=description)
    return node.call(request, 0)


def test_a_topology_is_described_by_a_member_when_its_heartbeat_requires_it(streams_node):
    beat(streams_node)
    assert beat(streams_node, 2, version=1).topology_description_required
    (group,) = describe(streams_node, "g", include_topology_description=True)
    assert (group.topology_description_status, group.topology_description) == (NOT_STORED, None)

    assert update(streams_node).error_code == NONE
    assert not beat(streams_node, 2, version=1).topology_description_required
    (group,) = describe(streams_node, "g", include_topology_description=True)
    assert group.topology_description_status == AVAILABLE
    (found,) = group.topology_description.subtopologies
    assert [(each.name, each.successors, each.stores) for each in found.nodes] == [
        ("s", ["e"], []),
        ("e", [], ["counts"]),
    ]
    assert group.topology_description.global_stores[0].source.source_topics == ["t"]
    (group,) = describe(streams_node, "g")
    assert (group.topology_description_status, group.topology_description) == (0, None)


def test_descriptions_that_are_refused(streams_node):
    beat(streams_node)
    assert update(streams_node, group="nobody").error_code == GroupIdNotFound.code
    assert update(streams_node, member="nobody").error_code == UnknownMemberId.code
    assert update(streams_node, epoch=1).error_code == InvalidRequest.code


def test_where_such_groups_are_not_served(streams_node, monkeypatch):
    config = BrokerConfig.from_properties(
        {**streams_node.broker.config.originals, "group.coordinator.rebalance.protocols": "classic,consumer"}
    )
    monkeypatch.setattr(streams_node.broker, "config", config)
    assert beat(streams_node).error_code == UnsupportedVersion.code
    assert [each.error_code for each in describe(streams_node, "g")] == [UnsupportedVersion.code]
    assert update(streams_node).error_code == UnsupportedVersion.code
