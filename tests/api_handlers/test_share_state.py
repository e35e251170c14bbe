"""APIs 83 to 87, on the state of share partitions, with the responses of Apache Kafka 4.3.1."""

import re

import pytest

from barnabas.api_handlers.delete_share_group_state import delete_share_group_state
from barnabas.api_handlers.find_coordinator import find_coordinator
from barnabas.api_handlers.initialize_share_group_state import initialize_share_group_state
from barnabas.api_handlers.read_share_group_state import read_share_group_state
from barnabas.api_handlers.read_share_group_state_summary import read_share_group_state_summary
from barnabas.api_handlers.write_share_group_state import write_share_group_state
from barnabas.errors import FencedLeaderEpoch, FencedStateEpoch, InvalidRequest, NotCoordinator, UnknownTopicOrPartition
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from tests.asking import context_of

SHARE = 2
HANDLERS = {
    InitializeShareGroupStateRequest: initialize_share_group_state,
    ReadShareGroupStateRequest: read_share_group_state,
    WriteShareGroupStateRequest: write_share_group_state,
    DeleteShareGroupStateRequest: delete_share_group_state,
    ReadShareGroupStateSummaryRequest: read_share_group_state_summary,
}
Initialize = InitializeShareGroupStateRequest.InitializeStateData
Read = ReadShareGroupStateRequest.ReadStateData
Write = WriteShareGroupStateRequest.WriteStateData
Delete = DeleteShareGroupStateRequest.DeleteStateData
Summary = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
StateBatch = Write.PartitionData.StateBatch

ONE_OF_EACH = {
    InitializeShareGroupStateRequest: lambda index: Initialize.PartitionData(
        partition=index, state_epoch=0, start_offset=0
    ),
    ReadShareGroupStateRequest: lambda index: Read.PartitionData(partition=index, leader_epoch=0),
    WriteShareGroupStateRequest: lambda index: Write.PartitionData(
        partition=index, state_epoch=0, leader_epoch=0, start_offset=0, state_batches=[]
    ),
    DeleteShareGroupStateRequest: lambda index: Delete.PartitionData(partition=index),
    ReadShareGroupStateSummaryRequest: lambda index: Summary.PartitionData(partition=index, leader_epoch=0),
}
DATA = {
    InitializeShareGroupStateRequest: Initialize,
    ReadShareGroupStateRequest: Read,
    WriteShareGroupStateRequest: Write,
    DeleteShareGroupStateRequest: Delete,
    ReadShareGroupStateSummaryRequest: Summary,
}
EACH = pytest.mark.parametrize("cls", HANDLERS, ids=lambda cls: cls.__name__)


class Node:
    def __init__(self, quiet_node):
        self.node = quiet_node(
            **{
                "share.coordinator.state.topic.replication.factor": "1",
                "share.coordinator.state.topic.min.isr": "1",
                "share.coordinator.state.topic.num.partitions": "2",
            }
        )
        self.node.create_topic("t", 20)
        self.topic_id = self.node.broker.image.topics_by_name["t"].id

    def find(self):
        """Finds the coordinator, which creates its topic."""
        request = FindCoordinatorRequest(key_type=SHARE, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAA:0"])
        (found,) = self.node.ask(find_coordinator, request, 6).coordinators
        return found

    def ask(self, cls, *partitions, group="g", version=None):
        return self.of_topics(cls, [(self.topic_id, partitions)], group, version)

    def of_topics(self, cls, topics, group="g", version=None):
        data = [DATA[cls](topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in topics]
        request = cls(group_id=group, topics=data)
        last = cls.versions.last if version is None else version
        later = HANDLERS[cls](cls.decode(request.encode(version=last), version=last), self.context(last))
        response = getattr(later, "response", later)
        return type(response).decode(response.encode(version=last), version=last).results

    def context(self, version):
        return context_of(self.node.broker, version)

    def one(self, cls, **fields):
        """Returns the response for partition 0, with these fields changed."""
        requested = ONE_OF_EACH[cls](0)
        for name, value in fields.items():
            setattr(requested, name, value)
        ((result,),) = [topic.partitions for topic in self.ask(cls, requested)]
        return result


@pytest.fixture
def node(quiet_node):
    made = Node(quiet_node)
    made.find()
    return made


@EACH
def test_before_anybody_has_looked_for_the_coordinator_it_is_not_here(quiet_node, cls):
    node = Node(quiet_node)
    result = node.one(cls)
    assert result.error_code == NotCoordinator.code
    assert re.fullmatch(
        r"Unable to (initialize|read|write|delete) share group state( summary)?: This is not the correct coordinator\.",
        result.error_message,
    )
    found = node.find()
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "127.0.0.1", 9092)
    assert node.one(cls).error_code != NotCoordinator.code


def test_a_life(node):
    assert node.one(InitializeShareGroupStateRequest, state_epoch=3, start_offset=5).error_code == 0
    result = node.one(ReadShareGroupStateRequest, leader_epoch=4)
    assert (result.error_code, result.state_epoch, result.start_offset, result.state_batches) == (0, 3, 5, [])
    batch = StateBatch(first_offset=5, last_offset=9, delivery_state=2, delivery_count=1)
    written = {"state_epoch": 3, "leader_epoch": 4, "start_offset": 6, "delivery_complete_count": 4}
    assert node.one(WriteShareGroupStateRequest, **written, state_batches=[batch]).error_code == 0
    result = node.one(ReadShareGroupStateRequest, leader_epoch=-1)
    assert (result.start_offset, [(each.first_offset, each.last_offset) for each in result.state_batches]) == (
        6,
        [(6, 9)],
    )
    result = node.one(ReadShareGroupStateSummaryRequest)
    assert (result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count) == (
        3,
        4,
        6,
        4,
    )
    result = node.one(WriteShareGroupStateRequest, leader_epoch=3, state_epoch=3)
    assert (result.error_code, bool(result.error_message)) == (FencedLeaderEpoch.code, True)
    result = node.one(WriteShareGroupStateRequest, leader_epoch=4, state_epoch=2)
    assert (result.error_code, bool(result.error_message)) == (FencedStateEpoch.code, True)
    assert node.one(DeleteShareGroupStateRequest).error_code == 0
    result = node.one(ReadShareGroupStateRequest)
    assert (result.error_code, result.state_epoch, result.start_offset) == (InvalidRequest.code, 0, 0)


@EACH
def test_an_empty_request(node, cls):
    requested = ONE_OF_EACH[cls]
    assert node.of_topics(cls, []) == []
    assert node.ask(cls) == []
    assert node.ask(cls, requested(0), group="") == []
    result = node.of_topics(cls, [(node.topic_id, [requested(0)]), (b"u" * 16, [])])
    assert [len(topic.partitions) for topic in result] == ([1] if cls is InitializeShareGroupStateRequest else [])


@EACH
def test_partitions_that_there_are_not(node, cls):
    requested = ONE_OF_EACH[cls]
    ((strange, gone),) = [topic.partitions for topic in node.ask(cls, requested(-1), requested(20))]
    if strange.partition != -1:
        strange, gone = gone, strange
    assert strange.error_code == InvalidRequest.code
    never_set_up = cls in (ReadShareGroupStateRequest, WriteShareGroupStateRequest)
    assert gone.error_code == (InvalidRequest if never_set_up else UnknownTopicOrPartition).code


@EACH
def test_each_partition_is_answered_once(node, cls):
    requested = ONE_OF_EACH[cls]
    result = node.of_topics(
        cls, [(node.topic_id, [requested(index) for index in (17, 3, 16, 1, 1)]), (node.topic_id, [requested(0)])]
    )
    assert [sorted(each.partition for each in topic.partitions) for topic in result] == [[0, 1, 3, 16, 17]]


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_do_not_know_how_much_is_done(node, version):
    node.one(InitializeShareGroupStateRequest)
    requested = ONE_OF_EACH[WriteShareGroupStateRequest](0)
    requested.delivery_complete_count = 7
    node.ask(WriteShareGroupStateRequest, requested, version=version)
    assert node.one(ReadShareGroupStateSummaryRequest).delivery_complete_count == (7 if version else -1)
