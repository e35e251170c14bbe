"""Decides on topics: creation, more partitions, deletion.

Knows nothing of logs: brokers get their partitions from the image. The errors are those of Apache Kafka's
``ControllerApis`` and ``ReplicationControlManager``.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from barnabas.cluster.controller.commands.configs import ConfigResource
from barnabas.cluster.controller.commands.topics import (
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    DeletedTopic,
    DeleteTopics,
    MorePartitions,
    MutationQuota,
    NewTopic,
    TopicResult,
)
from barnabas.cluster.controller.decision import MAX_RECORDS, Decision, Surroundings
from barnabas.cluster.controller.partition_changes import MIN_INSYNC_REPLICAS
from barnabas.cluster.controller.placement import place
from barnabas.cluster.controller.replicas import default_directories, is_active
from barnabas.cluster.features import ELIGIBLE_LEADER_REPLICAS
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.topic_names import CLUSTER_METADATA, check_topic_name, collision_key
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopicException,
    KafkaError,
    PolicyViolation,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.uuids import random_uuid
from barnabas.wire.messages.metadata_records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.wire.types import ZERO_UUID

MAX_PARTITIONS = 10_000
"""The maximum number of partitions in one CreateTopics (``ReplicationControlManager.MAX_PARTITIONS_PER_BATCH``)."""

Assignments = dict[int, tuple[int, ...]]


def create_topics(command: CreateTopics, image: MetadataImage, around: Surroundings) -> Decision:
    """Creates each topic independently of the others."""
    command.quota.begin()
    times = Counter(topic.name for topic in command.topics)
    reserved = times.get(CLUSTER_METADATA) == 1
    wanted = [topic for topic in command.topics if times[topic.name] == 1 and topic.name != CLUSTER_METADATA]
    doubled = [name for name, count in times.items() if count > 1]
    try:
        check_total(wanted, around)
        records, results = make_topics(wanted, image, around, command.quota)
    except PolicyViolation as error:
        records, results = [], [CreatedTopic(topic.name, error) for topic in wanted]
    results += [CreatedTopic(name, InvalidRequest("Duplicate topic name.")) for name in doubled]
    if reserved:
        refusal = InvalidRequest(f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
        results.append(CreatedTopic(CLUSTER_METADATA, refusal))
    return Decision([] if command.validate_only else records, results)


def check_total(topics: Iterable[NewTopic], around: Surroundings) -> None:
    default = around.settings["num.partitions"]
    total = 0
    for topic in topics:
        count = default if topic.num_partitions == -1 else max(topic.num_partitions, 0)
        total += len(topic.assignments) or count
    if total > MAX_PARTITIONS:
        raise PolicyViolation("Excessively large number of partitions per request.")


def make_topics(
    topics: Sequence[NewTopic], image: MetadataImage, around: Surroundings, quota: MutationQuota
) -> tuple[list[object], list[CreatedTopic]]:
    """Returns records and results.

    :raises PolicyViolation: the command needs too many records
    """
    collisions = colliding_names(topics, image)
    records: list[object] = []
    results = []
    for topic in topics:
        try:
            check_new_name(topic.name, image, collisions)
            configs = checked_configs(topic, around)
            assignments = assigned(topic, image, around)
            quota.count(len(assignments))
        except KafkaError as error:
            results.append(CreatedTopic(topic.name, error))
            continue
        topic_id = random_uuid(around.random.randbytes)
        while topic_id in image.topics_by_id:
            topic_id = random_uuid(around.random.randbytes)
        records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        for name, value in sorted(configs.items()):
            records.append(ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value))
        if MIN_INSYNC_REPLICAS in configs and image.features.get(ELIGIBLE_LEADER_REPLICAS):
            records.append(ClearElrRecord(topic_name=topic.name))
        for index in sorted(assignments):
            records.append(new_partition(topic_id, index, assignments[index], image))
        if len(records) > MAX_RECORDS:
            raise PolicyViolation("Unable to perform excessively large batch operation.")
        results.append(CreatedTopic(topic.name, None, topic_id, len(assignments), len(assignments[0]), configs))
    return records, results


def colliding_names(topics: Iterable[NewTopic], image: MetadataImage) -> dict[str, set[str]]:
    """Returns existing names by their collision keys; nothing if no new name can collide."""
    collisions: dict[str, set[str]] = {}
    if any("." in topic.name or "_" in topic.name for topic in topics):
        for name in image.topics_by_name:
            if "." in name or "_" in name:
                collisions.setdefault(collision_key(name), set()).add(name)
    return collisions


def check_new_name(name: str, image: MetadataImage, collisions: dict[str, set[str]]) -> None:
    check_topic_name(name)
    if name in image.topics_by_name:
        raise TopicAlreadyExists(f"Topic '{name}' already exists.")
    if ("." in name or "_" in name) and (others := collisions.get(collision_key(name))):
        raise InvalidTopicException(f"Topic '{name}' collides with existing topic: {min(others)}")


def checked_configs(topic: NewTopic, around: Surroundings) -> dict[str, str]:
    """Returns the configs of the new topic; for a duplicate config, the last value."""
    configs = dict(topic.configs)
    empty = [name for name, value in configs.items() if value is None]
    if empty:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(empty)}")
    found = {name: value for name, value in configs.items() if value is not None}
    if found:
        around.rules.check(ConfigResource(TOPIC_RESOURCE, topic.name), found)
    return found


# ---------------------------------------------------------------- replicas


def assigned(topic: NewTopic, image: MetadataImage, around: Surroundings) -> Assignments:
    """Returns the replicas of each partition, assigned manually or placed by the counts."""
    if topic.assignments:
        return assigned_by_hand(topic, image)
    replication_factor, count = topic.replication_factor, topic.num_partitions
    if replication_factor == 0 or replication_factor < -1:
        raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
    if count == 0 or count < -1:
        raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
    if replication_factor == -1:
        replication_factor = around.settings["default.replication.factor"]
    if count == -1:
        count = around.settings["num.partitions"]
    if around.settings.dev:
        replication_factor = min(replication_factor, len(image.brokers))
    try:
        return dict(enumerate(place(image.brokers, count, replication_factor, around.random)))
    except InvalidReplicationFactor as error:
        text = f"Unable to replicate the partition {replication_factor} time(s): {error}"
        raise InvalidReplicationFactor(text) from None


def assigned_by_hand(topic: NewTopic, image: MetadataImage) -> Assignments:
    if topic.replication_factor != -1:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    found: Assignments = {}
    replication_factor = None
    for index, broker_ids in topic.assignments:
        if index in found:
            raise InvalidReplicaAssignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(broker_ids, image, replication_factor)
        found[index] = tuple(broker_ids)
        replication_factor = len(broker_ids)
        in_sync(index, broker_ids, image)
    if set(found) != set(range(len(found))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    return found


def check_assignment(broker_ids: Collection[int], image: MetadataImage, replication_factor: int | None) -> None:
    """Checks an assignment of replicas.

    :raises InvalidReplicaAssignment: it is empty, or has a duplicate or unregistered broker
    """
    if not broker_ids:
        raise InvalidReplicaAssignment("The manual partition assignment includes an empty replica list.")
    before = None
    for broker_id in sorted(broker_ids):
        if broker_id not in image.brokers:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            )
        if broker_id == before:
            raise InvalidReplicaAssignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        before = broker_id
    if replication_factor not in (None, len(broker_ids)):
        raise InvalidReplicaAssignment(
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def in_sync(index: int, broker_ids: Iterable[int], image: MetadataImage) -> list[int]:
    """Returns the initial ISR of a new partition."""
    active = [broker_id for broker_id in broker_ids if is_active(broker_id, image)]
    if not active:
        raise InvalidReplicaAssignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return active


def new_partition(topic_id: bytes, index: int, broker_ids: Sequence[int], image: MetadataImage) -> PartitionRecord:
    isr = in_sync(index, broker_ids, image)
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(broker_ids),
        isr=isr,
        removing_replicas=[],
        adding_replicas=[],
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=default_directories(broker_ids, image),
    )


# ---------------------------------------------------------------- more partitions


def create_partitions(command: CreatePartitions, image: MetadataImage, around: Surroundings) -> Decision:
    """Increases the number of partitions of existing topics, each independently."""
    command.quota.begin()
    times = Counter(topic.name for topic in command.topics)
    records: list[object] = []
    results = [TopicResult(name, InvalidRequest("Duplicate topic name.")) for name, count in times.items() if count > 1]
    for topic in command.topics:
        if times[topic.name] > 1:
            continue
        try:
            added = more_partitions(topic, image, around, command.quota, room=MAX_RECORDS - len(records))
        except KafkaError as error:
            results.append(TopicResult(topic.name, error))
        else:
            records += added
            results.append(TopicResult(topic.name))
    return Decision([] if command.validate_only else records, results)


def more_partitions(
    wanted: MorePartitions, image: MetadataImage, around: Surroundings, quota: MutationQuota, room: int
) -> list[PartitionRecord]:
    topic = image.topics_by_name.get(wanted.name)
    if topic is None:
        raise UnknownTopicOrPartition
    there = len(topic.partitions)
    added = wanted.total - there
    if added == 0:
        raise InvalidPartitions(f"Topic already has {there} partition(s).")
    if added < 0:
        raise InvalidPartitions(
            f"The topic {wanted.name} currently has {there} partition(s); {wanted.total} would not be an increase."
        )
    replication_factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        quota.count(added)
        if added > room:
            raise UnknownServerError
        assignments: Sequence[Sequence[int]] = place(image.brokers, added, replication_factor, around.random)
    else:
        assignments = wanted.assignments
        if len(assignments) != added:
            raise InvalidReplicaAssignment(
                f"Attempted to add {added} additional partition(s), "
                f"but only {len(assignments)} assignment(s) were specified."
            )
        quota.count(added)
        for broker_ids in assignments:
            check_assignment(broker_ids, image, replication_factor)
        if added > room:
            raise UnknownServerError
    return [new_partition(topic.id, there + nth, broker_ids, image) for nth, broker_ids in enumerate(assignments)]


# ---------------------------------------------------------------- deletion


def delete_topics(command: DeleteTopics, image: MetadataImage, around: Surroundings) -> Decision:
    """Deletes each topic, by name or id. Duplicates are refused."""
    command.quota.begin()
    names = Counter(name for name, topic_id in command.topics if name is not None and topic_id == ZERO_UUID)
    ids = Counter(topic_id for name, topic_id in command.topics if name is None and topic_id != ZERO_UUID)
    by_name = {
        image.topics_by_name[name].id for name, times in names.items() if times == 1 and name in image.topics_by_name
    }
    results: list[DeletedTopic] = []
    for name, topic_id in dict.fromkeys(command.topics):
        if name is None and topic_id == ZERO_UUID:
            refusal = InvalidRequest("Neither topic name nor id were specified.")
            results += [DeletedTopic(None, ZERO_UUID, refusal)] * command.topics.count((name, topic_id))
        elif name is None:
            if ids[topic_id] > 1 or topic_id not in by_name:
                results.append(deleted_by_id(topic_id, ids[topic_id], image))
        elif topic_id == ZERO_UUID:
            results.append(deleted_by_name(name, names[name], ids, image))
        else:
            refusal = InvalidRequest("You may not specify both topic name and topic id.")
            results += [DeletedTopic(name, topic_id, refusal)] * command.topics.count((name, topic_id))
    results = [counted(result, image, command.quota) for result in results]
    records: list[object] = [RemoveTopicRecord(topic_id=result.id) for result in results if result.error is None]
    return Decision(records, results)


def counted(result: DeletedTopic, image: MetadataImage, quota: MutationQuota) -> DeletedTopic:
    """Counts the partitions of a topic that is deleted. Returns an error if the quota is exhausted."""
    if result.error is None:
        try:
            quota.count(len(image.topics_by_id[result.id].partitions))
        except ThrottlingQuotaExceeded as refusal:
            return result._replace(error=refusal)
    return result


def deleted_by_id(topic_id: bytes, times: int, image: MetadataImage) -> DeletedTopic:
    if times > 1:
        return DeletedTopic(None, topic_id, InvalidRequest("Duplicate topic id."))
    topic = image.topics_by_id.get(topic_id)
    if topic is None:
        return DeletedTopic(None, topic_id, UnknownTopicId())
    return DeletedTopic(topic.name, topic_id)


def deleted_by_name(name: str, times: int, ids: Collection[bytes], image: MetadataImage) -> DeletedTopic:
    if times > 1:
        return DeletedTopic(name, ZERO_UUID, InvalidRequest("Duplicate topic name."))
    topic = image.topics_by_name.get(name)
    if topic is None:
        return DeletedTopic(name, ZERO_UUID, UnknownTopicOrPartition())
    if topic.id in ids:
        return DeletedTopic(
            name, topic.id, InvalidRequest("The provided topic name maps to an ID that was already supplied.")
        )
    return DeletedTopic(name, topic.id)
