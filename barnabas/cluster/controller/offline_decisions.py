"""Decides what happens to partitions when a log directory of their broker fails (KIP-858).

Knows nothing of disks: the broker says which of its directories are left. Rules of Apache Kafka's
``ReplicationControlManager.handleDirectoriesOffline``.
"""

from barnabas.cluster.controller.commands import DirectoriesOffline
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.controller.leader_decisions import led_by_others
from barnabas.cluster.controller.topic_decisions import has_online_directory
from barnabas.cluster.features import DIRECTORIES
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import BrokerIdNotRegistered
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord


def take_directories_offline(command: DirectoriesOffline, image: MetadataImage, around: Surroundings) -> Decision:
    """Moves leadership of the partitions in the failed directories to other brokers, or to none.

    A lower metadata.version does not know directories: there the broker itself answers KAFKA_STORAGE_ERROR.
    """
    broker = image.brokers.get(command.broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {command.broker_id} is not registered")
    remaining = tuple(command.remaining)
    if image.metadata_version < DIRECTORIES or remaining == broker.log_dirs:
        return Decision([], None)
    left = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=list(remaining))
    after, _ = image.apply([left])
    changes = [
        change
        for change in led_by_others(broker.id, after)
        if not has_online_directory(
            broker.id, image.topics_by_id[change.topic_id].partitions[change.partition_id], after
        )
    ]
    return Decision([*changes, left], None)
