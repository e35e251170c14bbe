"""Every metric, declared once: the exposition and its page of the reference are made from this table.

Knows nothing of where values come from. The names are those that the JMX exporter's usual rules give the MBeans of
Apache Kafka, so that dashboards and alerts for it work; those of groups are kafka_exporter's.
"""

from typing import Final, NamedTuple

COUNTER, GAUGE, HISTOGRAM, SUMMARY = "counter", "gauge", "histogram", "summary"


class Declared(NamedTuple):
    """One metric. A counter's samples end in ``_total``, a summary's in ``_count`` and ``_sum``, or are quantiles."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


_TOPIC = "kafka_server_brokertopicmetrics_"
_REQUEST = "kafka_network_requestmetrics_"
_REPLICAS = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_STATISTICS = "kafka_controller_controllerstats_"
_CLIENTS = "kafka_server_client_metrics_"
_REBALANCES = "kafka_server_group_coordinator_metrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"

METRICS: Final = (
    Declared(
        _REQUEST + "requests",
        COUNTER,
        "Requests, also those that wait for a response, but not those whose connection was closed.",
        ("request", "version"),
    ),
    Declared(
        _REQUEST + "errors",
        COUNTER,
        "Error codes in responses, of an array those of the first 100 entries; NONE: responses without any.",
        ("request", "error"),
    ),
    Declared(_REQUEST + "failed", COUNTER, "Requests whose response has an error.", ("request",)),
    Declared(_REQUEST + "closed", COUNTER, "Requests whose connection was closed instead of a response.", ("request",)),
    Declared(_REQUEST + "totaltimems", SUMMARY, "Milliseconds from the handler to the response.", ("request",)),
    Declared(
        _REQUEST + "requestqueuetimems",
        SUMMARY,
        "Milliseconds from the last bytes that a connection has sent to the handler.",
        ("request",),
    ),
    Declared(_REQUEST + "localtimems", SUMMARY, "Milliseconds in the handler.", ("request",)),
    Declared(_REQUEST + "remotetimems", SUMMARY, "Milliseconds that later responses have waited.", ("request",)),
    Declared(
        _REQUEST + "responsesendtimems",
        SUMMARY,
        "Milliseconds from the response to the event loop's next turn, before which it is written.",
        ("request",),
    ),
    Declared("barnabas_request_seconds", HISTOGRAM, "Seconds from a request to its response.", ("request",)),
    Declared(_TOPIC + "messagesin", COUNTER, "Records that producers have written; without topic: of all.", ("topic",)),
    Declared(_TOPIC + "bytesin", COUNTER, "Bytes that producers have written; without topic: of all.", ("topic",)),
    Declared(_TOPIC + "bytesout", COUNTER, "Bytes that consumers have read; without topic: of all.", ("topic",)),
    Declared(_TOPIC + "totalproducerequests", COUNTER, "Batches that producers have sent.", ("topic",)),
    Declared(_TOPIC + "failedproducerequests", COUNTER, "Batches that were refused.", ("topic",)),
    Declared(_TOPIC + "failedfetchrequests", COUNTER, "Partitions that were answered with an error.", ("topic",)),
    Declared(_TOPIC + "replicationbytesout", COUNTER, "Bytes that followers have read."),
    Declared("kafka_server_socketservermetrics_connection_count", GAUGE, "Open connections.", ("listener",)),
    Declared(
        "kafka_server_socketservermetrics_successful_authentication",
        COUNTER,
        "Authentications; with the mechanism SSL: TLS handshakes of listeners without SASL.",
        ("listener", "mechanism"),
    ),
    Declared(
        "kafka_server_socketservermetrics_failed_authentication",
        COUNTER,
        "Authentications that failed; SSL: TLS handshakes; without a mechanism: the client's is not enabled.",
        ("listener", "mechanism"),
    ),
    Declared("barnabas_client_requests", COUNTER, "Requests by client id, estimated from those timed.", ("client_id",)),
    Declared("barnabas_client_seconds", COUNTER, "Seconds to responses by client id, estimated.", ("client_id",)),
    Declared("barnabas_client_bytesin", COUNTER, "Bytes written by client id, estimated.", ("client_id",)),
    Declared("barnabas_client_bytesout", COUNTER, "Bytes read by client id, estimated.", ("client_id",)),
    Declared("barnabas_throttled_requests", COUNTER, "Requests that were throttled, by kind of quota.", ("quota",)),
    Declared("barnabas_throttle_seconds", COUNTER, "Their throttle times.", ("quota",)),
    Declared(
        "barnabas_loop_lag_seconds", GAUGE, "The most that a timer of the event loop was late since the last scrape."
    ),
    Declared(_REPLICAS + "partitioncount", GAUGE, "Replicas on this broker."),
    Declared(_REPLICAS + "leadercount", GAUGE, "Partitions that this broker leads."),
    Declared(_REPLICAS + "offlinereplicacount", GAUGE, "Replicas in log directories that have failed."),
    Declared(_REPLICAS + "underreplicatedpartitions", GAUGE, "Led partitions with replicas that are not in sync."),
    Declared(_REPLICAS + "atminisrpartitioncount", GAUGE, "Led partitions with min.insync.replicas in-sync replicas."),
    Declared(_REPLICAS + "underminisrpartitioncount", GAUGE, "Led partitions with fewer in-sync replicas than that."),
    Declared(_REPLICAS + "reassigningpartitions", GAUGE, "Led partitions that are being reassigned."),
    Declared(_REPLICAS + "isrshrinks", COUNTER, "Replica sets in sync that have become smaller, of led partitions."),
    Declared(_REPLICAS + "isrexpands", COUNTER, "Replica sets in sync that have become larger, of led partitions."),
    Declared(
        "kafka_server_fetcherlagmetrics_consumerlag",
        GAUGE,
        "Records that a follower has not fetched.",
        ("topic", "partition", "replica"),
    ),
    Declared(_CONTROLLER + "activecontrollercount", GAUGE, "1 on the active controller."),
    Declared(_CONTROLLER + "activebrokercount", GAUGE, "Brokers that are not fenced."),
    Declared(_CONTROLLER + "fencedbrokercount", GAUGE, "Brokers that are fenced."),
    Declared(_CONTROLLER + "globaltopiccount", GAUGE, "Topics of the cluster."),
    Declared(_CONTROLLER + "globalpartitioncount", GAUGE, "Partitions of the cluster."),
    Declared(_CONTROLLER + "offlinepartitionscount", GAUGE, "Partitions of the cluster without a leader."),
    Declared("barnabas_leader_elections", COUNTER, "Leaders that this node has elected as the active controller."),
    Declared(
        _STATISTICS + "uncleanleaderelections", COUNTER, "Of these, leaders that were neither in sync nor eligible."
    ),
    Declared(_STATISTICS + "electionfromeligibleleaderreplicas", COUNTER, "Of these, leaders from the ELR (KIP-966)."),
    Declared(
        "kafka_log_logflushstats_logflushrateandtimems",
        SUMMARY,
        "Milliseconds of flushes, with their wait for the background thread.",
    ),
    Declared("kafka_log_logcleanermanager_uncleanable_partitions_count", GAUGE, "Logs that cannot be cleaned."),
    Declared("kafka_log_logcleaner_cleaner_recopy_percent", GAUGE, "Bytes kept of those read, in the last pass."),
    Declared("kafka_log_logcleaner_max_clean_time_secs", GAUGE, "Seconds of the last pass."),
    Declared("barnabas_log_cleaner_passes", COUNTER, "Passes of the cleaner."),
    Declared("barnabas_log_cleaner_read_bytes", COUNTER, "Bytes that the cleaner has read."),
    Declared("barnabas_log_cleaner_kept_bytes", COUNTER, "Bytes that it has kept of them."),
    Declared("kafka_log_log_size", GAUGE, "Bytes of a replica's log.", ("topic", "partition")),
    Declared("kafka_log_log_numlogsegments", GAUGE, "Segments of a replica's log.", ("topic", "partition")),
    Declared("kafka_log_log_logstartoffset", GAUGE, "First offset of a replica's log.", ("topic", "partition")),
    Declared(
        "kafka_log_log_logendoffset", GAUGE, "Offset of the next record of a replica's log.", ("topic", "partition")
    ),
    Declared(_GROUPS + "numgroups", GAUGE, "Groups of this coordinator.", ("type", "state")),
    Declared(
        _REBALANCES + "group_completed_rebalance_count", COUNTER, "Rebalances of classic groups that have completed."
    ),
    Declared(_REBALANCES + "consumer_group_rebalance_count", COUNTER, "New epochs of consumer groups (KIP-848)."),
    Declared(_REBALANCES + "share_group_rebalance_count", COUNTER, "New epochs of share groups."),
    Declared(_REBALANCES + "streams_group_rebalance_count", COUNTER, "New epochs of streams groups."),
    Declared("kafka_consumergroup_members", GAUGE, "Members of a group of this coordinator.", ("consumergroup",)),
    Declared("kafka_consumergroup_current_offset", GAUGE, "Committed offset.", ("consumergroup", "topic", "partition")),
    Declared(
        "kafka_consumergroup_lag",
        GAUGE,
        "Records after the committed offset, where this broker leads the partition.",
        ("consumergroup", "topic", "partition"),
    ),
    Declared(
        "kafka_server_sharegroupmetrics_recordacknowledgements",
        COUNTER,
        "Records that members of share groups have acknowledged, by their type.",
        ("ackType",),
    ),
    Declared(
        "barnabas_share_group_records_in_flight",
        GAUGE,
        "Records of share partitions that this broker leads, from the first that is not done to the last acquired.",
        ("group",),
    ),
    Declared(
        _CLIENTS + "instance_count", GAUGE, "Client instances that ask for subscriptions to their metrics (KIP-714)."
    ),
    Declared(_CLIENTS + "throttle", COUNTER, "Their requests that came before their push interval was over."),
    Declared(_CLIENTS + "unknown_subscription_request", COUNTER, "Pushes by a subscription that has changed."),
    Declared(_CLIENTS + "plugin_export", COUNTER, "Pushes whose metrics were taken."),
    Declared(_CLIENTS + "plugin_error", COUNTER, "Pushes whose metrics could not be read."),
    Declared("barnabas_telemetry_dropped_points", COUNTER, "Values of pushed metrics that were not kept."),
    Declared(
        "barnabas_telemetry_client_info",
        GAUGE,
        "Clients that have pushed metrics lately.",
        ("client_id", "client_instance_id", "client_software_name", "client_software_version"),
    ),
    Declared("barnabas_transactions", GAUGE, "Transactional ids of this coordinator.", ("state",)),
)
