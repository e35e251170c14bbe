"""The state of a node as samples, read at each scrape: replicas, the controller, logs, groups, transactions.

Knows nothing of Prometheus, and counts nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from barnabas.broker import Broker, Node
from barnabas.cluster.replication.partition import Partition
from barnabas.errors import KafkaError
from barnabas.metrics.samples import Sample
from barnabas.security.quotas.client_quotas import KINDS

NO_LEADER = -1
PER_PARTITION = 5000
"""With more replicas than this there are no samples of single replicas: a scrape would block the loop for too long."""


MOST_GROUPS = 1000
"""The most groups that have samples of their own."""


def samples_of(node: Node) -> Iterator[Sample]:
    """Yields the state of a node."""
    yield from _cluster(node)
    yield from _quotas(node)
    if isinstance(node, Broker):
        yield from _replicas(node.partitions.values())
        if len(node.partitions) <= PER_PARTITION:
            for partition in node.partitions.values():
                yield from _log(partition)
        yield from _disk(node)
        yield from _groups(node)
        yield from _transactions(node)


def _cluster(node: Node) -> Iterator[Sample]:
    image, name = node.image, "kafka_controller_kafkacontroller_"
    fenced = sum(broker.fenced for broker in image.brokers.values())
    partitions = [each for topic in image.topics_by_id.values() for each in topic.partitions.values()]
    yield Sample(name + "activecontrollercount", int(node.quorum.is_leader))
    yield Sample(name + "activebrokercount", len(image.brokers) - fenced)
    yield Sample(name + "fencedbrokercount", fenced)
    yield Sample(name + "globaltopiccount", len(image.topics_by_id))
    yield Sample(name + "globalpartitioncount", len(partitions))
    yield Sample(name + "offlinepartitionscount", sum(each.leader == NO_LEADER for each in partitions))


def _quotas(node: Node) -> Iterator[Sample]:
    quotas = node.quotas
    for kind in KINDS:
        yield Sample("barnabas_throttled_requests", 0 if quotas is None else quotas.throttled[kind], (kind,))
        yield Sample("barnabas_throttle_seconds", 0 if quotas is None else quotas.throttled_ms[kind] / 1000, (kind,))


def _replicas(partitions: Iterable[Partition]) -> Iterator[Sample]:
    counts = Counter[str]()
    for partition in partitions:
        counts["partitioncount"] += 1
        counts["offlinereplicacount"] += partition.log.is_offline
        if not partition.leads:
            continue
        image, wanted = partition.image, partition.log.config.min_insync_replicas
        wanted = min(wanted, len(image.replicas))
        counts["leadercount"] += 1
        counts["underreplicatedpartitions"] += len(image.isr) < len(image.replicas) - len(image.adding)
        counts["atminisrpartitioncount"] += len(image.isr) == wanted
        counts["underminisrpartitioncount"] += len(image.isr) < wanted
        counts["reassigningpartitions"] += image.is_reassigning
        if partition.followers is not None:
            yield from _lags(partition)
    for name in (
        "partitioncount", "leadercount", "offlinereplicacount", "underreplicatedpartitions", "atminisrpartitioncount",
        "underminisrpartitioncount", "reassigningpartitions",
    ):  # fmt: skip
        yield Sample(f"kafka_server_replicamanager_{name}", counts[name])


def _lags(partition: Partition) -> Iterator[Sample]:
    assert partition.followers is not None
    for replica in partition.followers.replicas:
        if replica.log_end_offset >= 0:
            labels = partition.topic, str(partition.index), str(replica.broker_id)
            lag = max(partition.log.log_end_offset - replica.log_end_offset, 0)
            yield Sample("kafka_server_fetcherlagmetrics_consumerlag", lag, labels)


def _disk(broker: Broker) -> Iterator[Sample]:
    housekeeping, cleaner = broker.log_manager.housekeeping, broker.log_manager.cleaner
    flushes = "kafka_log_logflushstats_logflushrateandtimems"
    yield Sample(flushes, housekeeping.flushed, suffix="_count")
    yield Sample(flushes, housekeeping.flush_s * 1000, suffix="_sum")
    yield Sample("kafka_log_logcleanermanager_uncleanable_partitions_count", len(cleaner.uncleanable))
    yield Sample("barnabas_log_cleaner_passes", cleaner.done)
    yield Sample("barnabas_log_cleaner_read_bytes", cleaner.bytes_read)
    yield Sample("barnabas_log_cleaner_kept_bytes", cleaner.bytes_kept)
    last = cleaner.last
    kept = 0.0 if last is None else last.bytes_kept / max(last.bytes_read, 1) * 100
    yield Sample("kafka_log_logcleaner_cleaner_recopy_percent", kept)
    yield Sample("kafka_log_logcleaner_max_clean_time_secs", 0.0 if last is None else last.seconds)


def _log(partition: Partition) -> Iterator[Sample]:
    log, labels = partition.log, (partition.topic, str(partition.index))
    yield Sample("kafka_log_log_size", log.size, labels)
    yield Sample("kafka_log_log_numlogsegments", len(log.segments), labels)
    yield Sample("kafka_log_log_logstartoffset", log.log_start_offset, labels)
    yield Sample("kafka_log_log_logendoffset", log.log_end_offset, labels)


REBALANCES = {
    "classic": "group_completed_rebalance_count",
    "consumer": "consumer_group_rebalance_count",
    "share": "share_group_rebalance_count",
    "streams": "streams_group_rebalance_count",
}
"""By type of group, the name that ``GroupCoordinatorMetrics`` has for its rebalances."""


def _groups(broker: Broker) -> Iterator[Sample]:
    for kind, name in REBALANCES.items():
        yield Sample(f"kafka_server_group_coordinator_metrics_{name}", broker.groups.rebalances[kind])
    try:
        groups = broker.groups.list_groups()
    except KafkaError:  # they are being loaded
        return
    for (kind, state), count in Counter((each.type, each.state) for each in groups).items():
        yield Sample("kafka_coordinator_group_groupmetadatamanager_numgroups", count, (kind, state))
    for group, count in list(broker.records_in_flight.items())[:MOST_GROUPS]:
        yield Sample("barnabas_share_group_records_in_flight", count, (group,))
    for each in groups[:MOST_GROUPS]:
        yield Sample("kafka_consumergroup_members", each.members, (each.group_id,))
        try:
            committed = broker.groups.fetch_offsets(each.group_id)
        except KafkaError:  # it has no offsets, or was deleted
            continue
        for topic, partitions in committed.items():
            for index, offset in partitions.items():
                labels = each.group_id, topic, str(index)
                yield Sample("kafka_consumergroup_current_offset", offset.offset, labels)
                partition = broker.partitions.get((topic, index))
                if partition is not None and partition.leads:
                    lag = max(partition.log.high_watermark - offset.offset, 0)
                    yield Sample("kafka_consumergroup_lag", lag, labels)


def _transactions(broker: Broker) -> Iterator[Sample]:
    try:
        found = broker.transactions.list_transactions().transactions
    except KafkaError:
        return
    for state, count in Counter(each.state for each in found).items():
        yield Sample("barnabas_transactions", count, (state,))
