"""Partitions of a follower and of a leader, for tests of fetchers."""

from barnabas.cluster.image.image import PartitionImage
from barnabas.cluster.replication.partition import Partition
from barnabas.config.topic import TopicConfig
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.validation import ProducePolicy
from tests.cluster.replication.leading import Leading

LEADER, FOLLOWER = 1, 2
TOPIC_ID = bytes(range(16))


def image(epoch: int, leader: int = LEADER) -> PartitionImage:
    return PartitionImage(
        (LEADER, FOLLOWER),
        (LEADER, FOLLOWER),
        (),
        (),
        leader,
        epoch,
        partition_epoch=epoch,
        directories=(bytes(16),) * 2,
    )


def new_partition(node_id: int, epoch: int = 0, index: int = 0, topic: str = "t", **config: int) -> Partition:
    """Returns a partition of node 1 or 2, whose leader is node 1."""
    files = MemoryFiles()
    files.makedirs("/data")
    services = LogServices(LogDirectory(files, "/data"))
    log = create_log(services, f"/data/{topic}-{index}", topic, index, TOPIC_ID, TopicConfig(**config), now_ms=0)
    partition = Partition(topic, TOPIC_ID, index, node_id, log, ProducePolicy(), Leading)
    become(partition, epoch)
    return partition


def become(partition: Partition, epoch: int, leader: int = LEADER) -> None:
    """Makes the partition a follower, or a leader, in that epoch."""
    of_image = image(epoch, leader)
    (partition.become_leader if leader == partition.node_id else partition.become_follower)(of_image)


def batch(*values: bytes, epoch: int = 0, base_offset: int = 0) -> bytes:
    """Returns a batch as a leader stores it."""
    made = RecordBatch.parse(bytearray(build_batch([(None, value, 0) for value in values])))
    made.stamp(base_offset, epoch)
    return bytes(made.buffer)


def append(partition: Partition, *values: bytes) -> None:
    """Appends a batch on the leader, and commits everything."""
    partition.append(RecordBatch.parse(bytearray(build_batch([(None, value, 0) for value in values]))), 0)
    partition.log.maybe_set_high_watermark(partition.log.log_end_offset)
