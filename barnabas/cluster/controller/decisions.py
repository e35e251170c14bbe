"""The table of commands and the functions that decide on them.

Knows nothing of the log. A decision is a pure function of the command, the image and its surroundings, in a module
``*_decisions``, which is imported with the first command that it decides on: that makes the start of a node faster.
"""

import importlib
from collections.abc import Callable
from typing import Any

from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage

Decide = Callable[[Any, MetadataImage, Surroundings], Decision]

DECIDE: dict[str, str] = {
    "CreateTopics": "topic_decisions.create_topics",
    "DeleteTopics": "topic_decisions.delete_topics",
    "CreatePartitions": "topic_decisions.create_partitions",
    "AlterConfigs": "config_decisions.alter_configs",
    "IncrementalAlterConfigs": "config_decisions.incremental_alter_configs",
    "ElectLeaders": "leader_decisions.elect_leaders",
    "BalanceLeaders": "leader_decisions.balance_leaders",
    "ElectUncleanLeaders": "leader_decisions.elect_unclean_leaders",
    "AlterPartition": "isr_decisions.alter_partition",
    "AlterPartitionReassignments": "reassignment_decisions.alter_partition_reassignments",
    "RegisterBroker": "node_decisions.register_broker",
    "BrokerHeartbeat": "heartbeat_decisions.broker_heartbeat",
    "FenceStaleBroker": "heartbeat_decisions.fence_stale_broker",
    "WriteNoOp": "node_decisions.write_no_op",
    "UnregisterBroker": "node_decisions.unregister_broker",
    "AssignReplicasToDirs": "directory_decisions.assign_replicas_to_dirs",
    "RegisterController": "node_decisions.register_controller",
    "UpdateFeatures": "feature_decisions.update_features",
    "AllocateProducerIds": "node_decisions.allocate_producer_ids",
    "CreateAcls": "acl_decisions.create_acls",
    "DeleteAcls": "acl_decisions.delete_acls",
    "AlterClientQuotas": "quota_decisions.alter_client_quotas",
    "CreateDelegationToken": "token_decisions.create_token",
    "RenewDelegationToken": "token_decisions.renew_token",
    "ExpireDelegationToken": "token_decisions.expire_token",
    "RemoveExpiredTokens": "token_decisions.remove_expired",
    "AlterUserScramCredentials": "scram_decisions.alter_user_scram_credentials",
    "WriteRecords": "node_decisions.write_records",
}
"""The functions by the names of the commands."""

_FOUND: dict[type, Decide] = {}


def function_of(command: type) -> Decide:
    """Returns the function that decides on the commands of a class."""
    found = _FOUND.get(command)
    if found is None:
        module, name = DECIDE[command.__name__].split(".")
        found = getattr(importlib.import_module(f"barnabas.cluster.controller.{module}"), name)
        _FOUND[command] = found
    return found


def decide(command: Any, image: MetadataImage, around: Surroundings) -> Decision:
    """Returns the records and the result of a command.

    :raises KafkaError: the whole command is refused
    """
    return function_of(type(command))(command, image, around)
