"""AssignReplicasToDirs (API key 73): a broker reports the log directories of its replicas (KIP-858).

Knows nothing of how the controller uses them.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.nodes import AssignReplicasToDirs
from barnabas.errors import KafkaError
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse

Directory = AssignReplicasToDirsResponse.DirectoryData


@api(AssignReplicasToDirsRequest)
def assign_replicas_to_dirs(
    request: AssignReplicasToDirsRequest, context: Context
) -> AssignReplicasToDirsResponse | Later[AssignReplicasToDirsResponse]:
    """Returns an error code for each partition."""
    assignments = [
        (topic.topic_id, partition.partition_index, directory.id)
        for directory in request.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]

    def respond(results: list[KafkaError | None]) -> AssignReplicasToDirsResponse:
        codes = map(code_of, results)
        return AssignReplicasToDirsResponse(
            directories=[
                Directory(
                    id=directory.id,
                    topics=[
                        Directory.TopicData(
                            topic_id=topic.topic_id,
                            partitions=[
                                Directory.TopicData.PartitionData(
                                    partition_index=partition.partition_index, error_code=next(codes)
                                )
                                for partition in topic.partitions
                            ],
                        )
                        for topic in directory.topics
                    ],
                )
                for directory in request.directories
            ]
        )

    command = AssignReplicasToDirs(request.broker_id, request.broker_epoch, assignments)
    return submit(command, request, context, respond)
