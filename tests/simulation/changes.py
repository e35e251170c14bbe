"""An admin client of a simulation: it changes topics, configs, features, replicas and leaders.

Knows nothing of faults. Acknowledged changes are verified in the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas.cluster.features import (
    ELIGIBLE_LEADER_REPLICAS,
    FEATURES,
    METADATA_VERSION,
    METADATA_VERSIONS,
    SHARE_VERSION,
    TRANSACTION_VERSION,
)
from barnabas.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from barnabas.errors import KafkaError
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from barnabas.wire.types import ZERO_UUID
from tests.simulation.clients import DOWNGRADE, PAUSE_S, REQUEST_MS, SET, UPGRADE, Client, Place, ask_versions, check

TOPIC = 2
"""The resource type of topics."""
LEVELS = (0, 1, 2, 2)
"""Those of ``transaction.version``; half of the changes are to the newest."""
PROTOCOLS = ("group.version", SHARE_VERSION, "streams.version")
"""The features that switch the protocols of consumer groups, share groups and streams groups on."""
LATE_S = 15.0
"""The time after which no earlier request is delivered any more, in seconds: brokers pass them on for five."""
RATE_S = 1.0
ENOUGH = 50
"""How often the metadata of a broker may lag."""


class Changer(Client):
    """Makes one change after the other. A name is used for only one topic, so that late requests are harmless.

    :param is_lowered: whether the cluster begins without eligible leader replicas. ``min.insync.replicas`` changes only
        while there are none. Later a change, like lowering the feature, makes Apache Kafka's controller forget them
        (ClearElrRecord, ``PartitionChangeBuilder``), and nobody could lead a partition without an ISR
    :param is_levelled: whether ``transaction.version`` changes
    :param is_upgraded: whether ``metadata.version`` changes
    :param is_switched: whether protocols of groups are switched off and on
    :param directories: the log directories of the brokers, between which replicas move if there are several
    """

    def __init__(
        self,
        *args: Any,
        places: list[Place],
        is_lowered: bool,
        is_levelled: bool,
        is_upgraded: bool,
        is_switched: bool,
        directories: Sequence[str],
    ) -> None:
        super().__init__(*args)
        self.places, self.directories = places, directories
        self.kinds: list[Callable[[], Awaitable[None]]] = [
            self._create, self._create, self._delete, self._configure, self._move, self._elect
        ]  # fmt: skip
        if is_lowered:
            self.kinds += [self._require, self._require, self._finalize]
        if is_levelled:
            self.kinds += [self._change_level, self._change_level]
        if is_upgraded:
            self.kinds += [self._change_metadata_version]
        if is_switched:
            self.kinds += [self._switch_off, self._switch_off]
        if len(directories) > 1:
            self.kinds += [self._relocate, self._relocate, self._relocate]
        self.created: set[str] = set()  #: acknowledged, without a request to delete them
        self.deleted: set[str] = set()  #: acknowledged
        self.names = 0
        self.wrong = 0  #: how often an acknowledged change was missing
        self.off: set[str] = set()  #: protocols that are, or may be, switched off
        self.switched_at = 0.0  #: when one was switched off last

    async def run(self) -> None:
        while not self.is_stopping:
            try:
                await self._switch_on()
                await self.random.choice(self.kinds)()
            except KafkaError:
                await self.pause()
            await self.pause(RATE_S)
        if self.switched_at:
            await asyncio.sleep(max(0.0, self.switched_at + LATE_S - self.loop.now))
            self.off.update(PROTOCOLS)
        while self.off:
            try:
                await self._switch_on()
            except KafkaError:
                await self.pause()
        await self._verify()

    async def _any(self, request: Any) -> Any:
        return await self.ask(self.random.choice(self.brokers), request)

    # ------------------------------------------------------------ topics

    async def _create(self) -> None:
        self.names += 1
        name = f"extra-{self.names}"
        wanted = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=self.random.choice([2, 3]), assignments=[], configs=[]
        )
        answer = await self._any(CreateTopicsRequest(topics=[wanted], timeout_ms=REQUEST_MS, validate_only=False))
        check(answer.topics[0].error_code)
        self.created.add(name)

    async def _delete(self) -> None:
        if len(self.created) < 2:
            return
        name = self.random.choice(sorted(self.created))
        self.created.discard(name)
        state = DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=ZERO_UUID)
        answer = await self._any(DeleteTopicsRequest(topics=[state], timeout_ms=REQUEST_MS))
        check(answer.responses[0].error_code)
        self.deleted.add(name)

    async def _verify(self) -> None:
        """Verifies acknowledged changes. Brokers may lag, so it repeats that for a while."""
        while True:
            try:
                answer = await self._any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
            except KafkaError:
                await self.pause()
                continue
            known = {topic.name for topic in answer.topics}
            if self.created <= known and not self.deleted & known:
                return
            self.wrong += 1
            if self.wrong > ENOUGH:
                raise AssertionError(
                    f"topics are gone: {sorted(self.created - known)}, are there again: {sorted(self.deleted & known)}"
                )
            await self.pause(PAUSE_S)

    # ------------------------------------------------------------ partitions

    async def _configure(self) -> None:
        await self._set("max.compaction.lag.ms", str(self.random.randrange(60_000, 100_000_000)))

    async def _require(self) -> None:
        """Changes how many replicas have to be in sync."""
        await self._set("min.insync.replicas", self.random.choice(["1", "2", "2"]))

    async def _set(self, name: str, value: str) -> None:
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        config = kind.AlterableConfig(name=name, config_operation=SET, value=value)
        topic = self.random.choice(self.places)[0]
        resource = kind(resource_type=TOPIC, resource_name=topic, configs=[config])
        answer = await self._any(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False))
        check(answer.responses[0].error_code)

    async def _finalize(self) -> None:
        """Finalizes the feature by which there are eligible leader replicas (KIP-966), if each partition has a leader.

        Without the feature nobody records the last leader of a partition that has none: it would not get one again if
        the last replica in sync then stopped uncleanly, here and with Apache Kafka's controller.
        """
        answer = await self._any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        if any(partition.leader_id < 0 for topic in answer.topics for partition in topic.partitions):
            return
        self.kinds = [each for each in self.kinds if each != self._require]
        await self._update(ELIGIBLE_LEADER_REPLICAS, 1, UPGRADE)

    async def _change_level(self) -> None:
        """Changes the level of ``transaction.version``, to which producers adapt (KIP-890, KIP-1022)."""
        await self._change_to_one_of(LEVELS, TRANSACTION_VERSION)

    async def _change_metadata_version(self) -> None:
        """Changes ``metadata.version``: mostly upwards, since most downgrades would lose metadata, and are refused."""
        await self._change_to_one_of(tuple(METADATA_VERSIONS), METADATA_VERSION)

    async def _switch_off(self) -> None:
        """Switches a protocol of groups off, until before the next change."""
        feature = self.random.choice(PROTOCOLS)
        self.off.add(feature)
        self.switched_at = self.loop.now
        await self._update(feature, 0, DOWNGRADE)

    async def _switch_on(self) -> None:
        for feature in sorted(self.off):
            await self._update(feature, FEATURES[feature].last, UPGRADE)
            self.off.discard(feature)

    async def _change_to_one_of(self, levels: Sequence[int], feature: str) -> None:
        answer = await self._any(ask_versions())
        check(answer.error_code)
        now = {each.name: each.max_version_level for each in answer.finalized_features}.get(feature, 0)
        level = self.random.choice([each for each in levels if each != now])
        await self._update(feature, level, UPGRADE if level > now else DOWNGRADE)

    async def _update(self, feature: str, level: int, upgrade_type: int) -> None:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature, max_version_level=level, upgrade_type=upgrade_type
        )
        answer = await self._any(UpdateFeaturesRequest(timeout_ms=REQUEST_MS, feature_updates=[update]))
        check(answer.error_code)

    async def _move(self) -> None:
        """Reorders the replicas of a partition, or removes one of them for a while."""
        topic, index = self.random.choice(self.places)
        replicas = self.random.sample(self.brokers, self.random.choice([2, 3]))
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = kind.ReassignablePartition(partition_index=index, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=REQUEST_MS, topics=[kind(name=topic, partitions=[partition])]
        )
        answer = await self._any(request)
        check(answer.error_code)

    async def _relocate(self) -> None:
        """Moves replicas of a broker to one of its log directories (KIP-113)."""
        kind = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        chosen = self.random.sample([*self.places, (CONSUMER_OFFSETS, 0), (TRANSACTION_STATE, 0)], 3)
        topics = [kind.AlterReplicaLogDirTopic(name=topic, partitions=[index]) for topic, index in sorted(set(chosen))]
        request = AlterReplicaLogDirsRequest(dirs=[kind(path=self.random.choice(self.directories), topics=topics)])
        await self._any(request)

    async def _elect(self) -> None:
        answer = await self._any(ElectLeadersRequest(topic_partitions=None, timeout_ms=REQUEST_MS))
        check(answer.error_code)
