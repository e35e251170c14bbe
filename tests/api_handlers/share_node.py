"""A broker in memory, and members of share groups that send it requests."""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.registry import APIS
from barnabas.cluster.controller.commands.configs import AlterConfigs, ConfigResource
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.wire.messages.share_fetch import ShareFetchRequest
from tests.api_handlers.conftest import QuietNode
from tests.asking import context_of
from tests.submitting import submitted

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

FetchTopic = ShareFetchRequest.FetchTopic
AcknowledgeTopic = ShareAcknowledgeRequest.AcknowledgeTopic
SHARE_STATE = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class ShareNode(QuietNode):
    """The topic ``t`` of two partitions, which the group ``g`` reads from the beginning."""

    def __init__(self, **properties):
        super().__init__(**(SHARE_STATE | properties))
        self.partition = self.create_topic("t", 2)
        self.contexts = {}
        self.initialize("g")

    @classmethod
    def on(cls, broker, clock):
        """Returns members that use a broker which has the topic, or will have it."""
        node = cls.__new__(cls)
        node.broker, node.clock, node.contexts = broker, clock, {}
        return node

    @property
    def topic_id(self):
        return self.broker.image.topics_by_name["t"].id

    def initialize(self, group_id, start_offset=0, partitions=(0, 1), state_epoch=0):
        outcomes = []
        starts = {self.topic_id: dict.fromkeys(partitions, start_offset)}
        self.broker.persister.initialize(group_id, starts, state_epoch, outcomes.append)
        assert outcomes, "not answered: it is tried again"
        assert [each.error for each in outcomes[0].values()] == [None] * len(partitions)

    def configure(self, **configs):
        """Sets configs of the group ``g``, with ``_`` for the dots."""
        changes = [(name.replace("_", "."), value) for name, value in configs.items()]
        submitted(self.broker.controller, AlterConfigs([(ConfigResource(GROUP_RESOURCE, "g"), changes)]))

    def produce(self, *sizes, partition=0):
        """Produces batches with these numbers of records."""
        for size in sizes:
            self.append(self.broker.partition("t", partition), *[self.clock.time_ms()] * size)

    def context(self, connection=1, version=2):
        context = self.contexts.get(connection)
        if context is None:
            context = context_of(self.broker, connection=connection)
            self.contexts[connection] = context
        context.api_version, context.time_ms = version, self.broker.clock.time_ms()
        return context

    def send(self, request, *, connection=1, version=2):
        """Sends the request, encoded; returns the promise of a response."""
        requested = type(request).decode(request.encode(version=version), version=version)
        answer = APIS[request.api_key].handle(requested, self.context(connection, version))
        if isinstance(answer, Later):
            return answer
        promise = Later()
        promise.resolve(answer)
        return promise

    @staticmethod
    def answer(promise, version=2):
        """Returns the response, decoded from its bytes."""
        assert promise.response is not None, "not answered"
        return type(promise.response).decode(promise.response.encode(version=version), version=version)

    def ask(self, request, *, connection=1, version=2):
        return self.answer(self.send(request, connection=connection, version=version), version)

    def fetching(self, epoch, *partitions, member="anna", said=(), connection=1, forget=(), topic_id=None, **fields):
        """Returns the promise of a ShareFetch's response. ``said``: (partition, first, last, types) of
        acknowledgements.
        """
        topic_id = topic_id or self.topic_id
        batches = {index: [] for index in partitions}
        for index, first, last, types in said:
            batches.setdefault(index, []).append(
                FetchTopic.FetchPartition.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
            )
        wanted = {"group_id": "g", "max_wait_ms": 500, "min_bytes": 1, "max_records": 100, "batch_size": 100}
        request = ShareFetchRequest(
            member_id=member,
            share_session_epoch=epoch,
            topics=[
                FetchTopic(
                    topic_id=topic_id,
                    partitions=[
                        FetchTopic.FetchPartition(partition_index=index, acknowledgement_batches=each)
                        for index, each in batches.items()
                    ],
                )
            ],
            forgotten_topics_data=[ShareFetchRequest.ForgottenTopic(topic_id=topic_id, partitions=list(forget))],
            **(wanted | fields),
        )
        return self.send(request, connection=connection)

    def fetch(self, epoch, *partitions, **fields):
        """Sends a ShareFetch with an immediate response."""
        return self.answer(self.fetching(epoch, *partitions, **fields))

    def acknowledge(self, epoch, *said, member="anna", connection=1, is_renewal=False):
        """Sends a ShareAcknowledge with an immediate response: the error codes by partition."""
        batches = {}
        for index, first, last, types in said:
            batches.setdefault(index, []).append(
                AcknowledgeTopic.AcknowledgePartition.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=list(types)
                )
            )
        request = ShareAcknowledgeRequest(
            group_id="g",
            member_id=member,
            share_session_epoch=epoch,
            is_renew_ack=is_renewal,
            topics=[
                AcknowledgeTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        AcknowledgeTopic.AcknowledgePartition(partition_index=index, acknowledgement_batches=each)
                        for index, each in batches.items()
                    ],
                )
            ],
        )
        answer = self.ask(request, connection=connection)
        assert answer.error_code == 0, answer.error_code
        return {each.partition_index: each.error_code for topic in answer.responses for each in topic.partitions}


def acquired(answer):
    """Returns the acquired records and their delivery counts by partition."""
    assert answer.error_code == 0, answer.error_code
    return {
        each.partition_index: [(one.first_offset, one.last_offset, one.delivery_count) for one in each.acquired_records]
        for topic in answer.responses
        for each in topic.partitions
    }


def errors(answer):
    """Returns the error of the fetch, and that of the acknowledgements, by partition."""
    return {
        each.partition_index: (each.error_code, each.acknowledge_error_code)
        for topic in answer.responses
        for each in topic.partitions
    }
