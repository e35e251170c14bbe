"""The table of commands and the functions that decide on them.

Knows nothing of the log. A decision is a pure function of the command, the image and its surroundings, in a module
``*_decisions``. A module is imported with the first command that it decides on, which makes the start of a node faster.
"""

import importlib
from collections.abc import Callable
from typing import Any

from barnabas.cluster.controller import commands
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage

Decide = Callable[[Any, MetadataImage, Surroundings], Decision]

DECIDE: dict[type, str] = {
    commands.CreateTopics: "topic_decisions.create_topics",
    commands.DeleteTopics: "topic_decisions.delete_topics",
    commands.CreatePartitions: "topic_decisions.create_partitions",
    commands.AlterConfigs: "config_decisions.alter_configs",
    commands.IncrementalAlterConfigs: "config_decisions.incremental_alter_configs",
    commands.ElectLeaders: "leader_decisions.elect_leaders",
    commands.BalanceLeaders: "leader_decisions.balance_leaders",
    commands.ElectUncleanLeaders: "leader_decisions.elect_unclean_leaders",
    commands.AlterPartition: "isr_decisions.alter_partition",
    commands.AlterPartitionReassignments: "reassignment_decisions.alter_partition_reassignments",
    commands.RegisterBroker: "node_decisions.register_broker",
    commands.BrokerHeartbeat: "heartbeat_decisions.broker_heartbeat",
    commands.FenceStaleBroker: "heartbeat_decisions.fence_stale_broker",
    commands.WriteNoOp: "node_decisions.write_no_op",
    commands.UnregisterBroker: "node_decisions.unregister_broker",
    commands.AssignReplicasToDirs: "directory_decisions.assign_replicas_to_dirs",
    commands.RegisterController: "node_decisions.register_controller",
    commands.UpdateFeatures: "feature_decisions.update_features",
    commands.AllocateProducerIds: "node_decisions.allocate_producer_ids",
    commands.CreateAcls: "acl_decisions.create_acls",
    commands.DeleteAcls: "acl_decisions.delete_acls",
    commands.AlterClientQuotas: "quota_decisions.alter_client_quotas",
    commands.CreateDelegationToken: "token_decisions.create_token",
    commands.RenewDelegationToken: "token_decisions.renew_token",
    commands.ExpireDelegationToken: "token_decisions.expire_token",
    commands.RemoveExpiredTokens: "token_decisions.remove_expired",
    commands.AlterUserScramCredentials: "scram_decisions.alter_user_scram_credentials",
    commands.WriteRecords: "node_decisions.write_records",
}

_FOUND: dict[type, Decide] = {}


def function_of(command: type) -> Decide:
    """Returns the function that decides on the commands of a class."""
    found = _FOUND.get(command)
    if found is None:
        module, name = DECIDE[command].split(".")
        found = getattr(importlib.import_module(f"barnabas.cluster.controller.{module}"), name)
        _FOUND[command] = found
    return found


def decide(command: Any, image: MetadataImage, around: Surroundings) -> Decision:
    """Returns the records and the result of a command.

    :raises KafkaError: the whole command is refused
    """
    return function_of(type(command))(command, image, around)
