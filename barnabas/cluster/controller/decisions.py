"""The table of commands and the functions that decide them.

Knows nothing of the log. A decision is a pure function of the command, the image and its surroundings; the modules
named ``*_decisions`` hold them.
"""

from collections.abc import Callable
from typing import Any

from barnabas.cluster.controller import (
    acl_decisions,
    commands,
    config_decisions,
    directory_decisions,
    feature_decisions,
    leader_decisions,
    node_decisions,
    offline_decisions,
    quota_decisions,
    scram_decisions,
    token_decisions,
    topic_decisions,
)
from barnabas.cluster.controller.decision import Decision, Surroundings
from barnabas.cluster.image.image import MetadataImage

Decide = Callable[[Any, MetadataImage, Surroundings], Decision]

DECIDE: dict[type, Decide] = {
    commands.CreateTopics: topic_decisions.create_topics,
    commands.DeleteTopics: topic_decisions.delete_topics,
    commands.CreatePartitions: topic_decisions.create_partitions,
    commands.AlterConfigs: config_decisions.alter_configs,
    commands.IncrementalAlterConfigs: config_decisions.incremental_alter_configs,
    commands.ElectLeaders: leader_decisions.elect_leaders,
    commands.AlterPartitionReassignments: leader_decisions.alter_partition_reassignments,
    commands.RegisterBroker: node_decisions.register_broker,
    commands.AmendBroker: node_decisions.amend_broker,
    commands.UnfenceBroker: node_decisions.unfence_broker,
    commands.ShutDownBroker: node_decisions.shut_down_broker,
    commands.AssignReplicasToDirs: directory_decisions.assign_replicas_to_dirs,
    commands.DirectoriesOffline: offline_decisions.take_directories_offline,
    commands.CordonLogDirs: directory_decisions.cordon_log_dirs,
    commands.RegisterController: node_decisions.register_controller,
    commands.UpdateFeatures: feature_decisions.update_features,
    commands.AllocateProducerIds: node_decisions.allocate_producer_ids,
    commands.CreateAcls: acl_decisions.create_acls,
    commands.DeleteAcls: acl_decisions.delete_acls,
    commands.AlterClientQuotas: quota_decisions.alter_client_quotas,
    commands.CreateDelegationToken: token_decisions.create_token,
    commands.RenewDelegationToken: token_decisions.renew_token,
    commands.ExpireDelegationToken: token_decisions.expire_token,
    commands.RemoveExpiredTokens: token_decisions.remove_expired,
    commands.AlterUserScramCredentials: scram_decisions.alter_user_scram_credentials,
}


def decide(command: Any, image: MetadataImage, around: Surroundings) -> Decision:
    """Returns the records and the result of a command.

    :raises KafkaError: the command as a whole is refused
    """
    return DECIDE[type(command)](command, image, around)
