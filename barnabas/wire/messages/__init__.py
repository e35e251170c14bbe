"""The declared messages, one module per API, and one for the records of each internal log.

Knows nothing of what the messages mean. Importing this package imports none of the modules, only those that a program
needs.
"""

import importlib

from barnabas.wire.message import Message

MODULES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "offset_for_leader_epoch",
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",
    "txn_offset_commit",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "sasl_authenticate",
    "create_partitions",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_delegation_token",
    "delete_groups",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "offset_delete",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "alter_user_scram_credentials",
    "vote",
    "begin_quorum_epoch",
    "end_quorum_epoch",
    "describe_quorum",
    "alter_partition",
    "update_features",
    "envelope",
    "fetch_snapshot",
    "describe_cluster",
    "describe_producers",
    "broker_registration",
    "broker_heartbeat",
    "unregister_broker",
    "describe_transactions",
    "list_transactions",
    "allocate_producer_ids",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "controller_registration",
    "get_telemetry_subscriptions",
    "push_telemetry",
    "assign_replicas_to_dirs",
    "list_config_resources",
    "describe_topic_partitions",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "add_raft_voter",
    "remove_raft_voter",
    "update_raft_voter",
    "initialize_share_group_state",
    "read_share_group_state",
    "write_share_group_state",
    "delete_share_group_state",
    "read_share_group_state_summary",
    "streams_group_heartbeat",
    "streams_group_describe",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
    "streams_group_topology_description_update",
    "consumer_protocol",
    "control_records",
    "group_records",
    "metadata_records",
    "principal_data",
    "share_records",
    "transaction_records",
)


def declared() -> dict[str, type[Message]]:
    """Imports all modules, and returns the declared messages by name.

    >>> declared()["HeartbeatRequest"].versions
    Versions(first=0, last=4)
    """
    found: dict[str, type[Message]] = {}
    for module in MODULES:
        place = importlib.import_module(f"{__name__}.{module}")
        for name, value in vars(place).items():
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == place.__name__:
                found[name] = value
    return {name: cls for name, cls in found.items() if cls.versions.first <= cls.versions.last}
