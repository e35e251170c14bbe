"""The controller: which records a command comes to.

Does no I/O and keeps no state: a command, the image as it is, clock and chance are all that a decision depends on. What
each command means, the modules that are named ``*_decisions`` know.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.cluster import (
    commands,
    config_decisions,
    directory_decisions,
    feature_decisions,
    leader_decisions,
    node_decisions,
    offline_decisions,
    topic_decisions,
)
from barnabas.cluster.decision import ConfigRules, Decision, Settings, Surroundings
from barnabas.cluster.image import MetadataImage

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
}


class Controller:
    """Decides; ``settings`` may be replaced while it runs, when a config has changed."""

    __slots__ = ("random", "rules", "settings")

    def __init__(self, settings: Settings, rules: ConfigRules, random: Random) -> None:
        self.settings = settings
        self.rules = rules
        self.random = random

    def decide(self, command: Any, image: MetadataImage) -> Decision:
        """Records and result. :raises KafkaError: the command as a whole cannot be"""
        return DECIDE[type(command)](command, image, Surroundings(self.settings, self.rules, self.random))
