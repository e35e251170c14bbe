"""ElectLeaders (API key 43): elects the preferred leader of partitions, or an unclean one.

Knows nothing of how a leader is elected: the controller decides.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.outcome import code_of, out_of_time, text_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.replicas import ElectLeaders, PartitionResult, PartitionResults
from barnabas.errors import KafkaError, RequestTimedOut
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

Topic = ElectLeadersResponse.ReplicaElectionResult


@api(ElectLeadersRequest)
def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse | Later[ElectLeadersResponse]:
    """Elects the leader of each partition. An unknown election type is an error of the whole request."""
    requested = request.topic_partitions
    wanted = None if requested is None else [(topic.topic, topic.partitions) for topic in requested]
    if wanted != [] and (timed_out := out_of_time(request.timeout_ms)):
        raise timed_out
    return submit(ElectLeaders(request.election_type, wanted), request, context, respond)


@error_shape(ElectLeadersRequest)
def refused(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:
    """Returns the error for the whole request and for each partition."""
    topics = request.topic_partitions or ()
    results = [(topic.topic, [PartitionResult(index, error) for index in topic.partitions]) for topic in topics]
    return respond(results, error)


def respond(results: PartitionResults, refusal: KafkaError | None = None) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        error_code=code_of(refusal),
        replica_election_results=[
            Topic(
                topic=name,
                partition_result=[
                    Topic.PartitionResult(
                        partition_id=each.partition,
                        error_code=code_of(each.error),
                        error_message=None if isinstance(each.error, RequestTimedOut) else text_of(each.error),
                    )
                    for each in partitions
                ],
            )
            for name, partitions in results
        ],
    )
