"""An operator of a simulation, who removes voters of the quorum and adds them again (KIP-853), some of them on an empty
disk.

A static quorum is made dynamic first. Knows nothing of faults. One voter is missing at most, so that two are left.
"""

from typing import Any

from barnabas.cluster.features import KRAFT_VERSION
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import DuplicateVoter, KafkaError, VoterNotFound
from barnabas.wire.message import Request
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.simulation.clients import PAUSE_S, REQUEST_MS, UPGRADE, Client, check
from tests.simulation.cluster import CONTROLLER

RATE_S = 2.0
EMPTY_DISK = 0.5
"""The chance that a controller gets one while it is no voter."""
ENOUGH = 50
"""How often the voters may not be as acknowledged: the leader may not know yet."""


class Operator(Client):
    """Removes a voter, and adds it again. What was acknowledged is verified in the end."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.unanswered: list[Request] = []  #: a node that was cut off may pass them on much later

    async def run(self) -> None:
        if not self.cluster.voters:
            await self.pause(RATE_S)
            update = UpdateFeaturesRequest.FeatureUpdateKey(
                feature=KRAFT_VERSION, max_version_level=1, upgrade_type=UPGRADE
            )
            await self._insist(UpdateFeaturesRequest(timeout_ms=REQUEST_MS, feature_updates=[update]))
            self.cluster.make_dynamic()
        voters = list(self.cluster.voters)
        while not self.is_stopping:
            voter = self.random.choice(voters)
            await self._insist(self._removal(self.cluster.voters[voter]), VoterNotFound)
            if not self._is_named_late(voter):
                self.cluster.voteless.add(voter)
            await self.pause(RATE_S)
            if self._may_replace_disk(voter) and self.random.random() < EMPTY_DISK:
                await self._replace_disk(voter)
            self.cluster.voteless.discard(voter)
            await self._insist(self._addition(self.cluster.voters[voter]), DuplicateVoter)
            await self.pause(RATE_S)
        await self._verify(set(voters))

    def _may_replace_disk(self, node_id: int) -> bool:
        """Returns whether the disk of a node without a vote may be lost. Others may need the replicas of a broker."""
        return self.cluster.nodes[node_id].role == CONTROLLER and node_id in self.cluster.voteless

    def _is_named_late(self, node_id: int) -> bool:
        """Returns whether a late request may add a voter, which would have the directory of a disk that is gone."""
        directory_id = self.cluster.voters[node_id].directory_id
        late = {each.voter_directory_id for each in self.unanswered if isinstance(each, AddRaftVoterRequest)}
        return directory_id in late

    async def _replace_disk(self, node_id: int) -> None:
        """Starts a node that is no voter on an empty disk, however often that fails."""
        node = self.cluster.nodes[node_id]
        self.cluster.network.say(f"{node_id} gets an empty disk")
        node.kill(power_cut=False)
        self.cluster.renew_controller(node)
        while not node.is_running:
            await self.pause()
            if node.life is None:
                node.start()
            elif node.has_failed_to_start:
                node.kill(power_cut=False)

    def _removal(self, voter: Any) -> RemoveRaftVoterRequest:
        return RemoveRaftVoterRequest(
            cluster_id=self.cluster.cluster_id, voter_id=voter.node_id, voter_directory_id=voter.directory_id
        )

    def _addition(self, voter: Any) -> AddRaftVoterRequest:
        return AddRaftVoterRequest(
            cluster_id=self.cluster.cluster_id,
            timeout_ms=REQUEST_MS,
            voter_id=voter.node_id,
            voter_directory_id=voter.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints
            ],
        )

    async def _insist(self, request: Request, done: type[KafkaError] | tuple[()] = ()) -> None:
        """Repeats a change until it is acknowledged. :param done: the error if it was made before"""
        while True:
            try:
                answer = await self.ask(self.random.choice(self.brokers), request)
            except KafkaError:
                self.unanswered.append(request)
                await self.pause()
                continue
            try:
                check(answer.error_code)
                return
            except done:
                return
            except KafkaError:
                await self.pause()

    async def _verify(self, wanted: set[int]) -> None:
        """Verifies the voters, and adds those again that a late request has removed.

        :raises AssertionError: they are others for a long time
        """
        late = {each.voter_id for each in self.unanswered if isinstance(each, RemoveRaftVoterRequest)}
        topic = DescribeQuorumRequest.TopicData
        request = DescribeQuorumRequest(
            topics=[topic(topic_name=CLUSTER_METADATA, partitions=[topic.PartitionData(partition_index=0)])]
        )
        for _ in range(ENOUGH):
            try:
                part = (await self.ask(self.random.choice(self.brokers), request)).topics[0].partitions[0]
                check(part.error_code)
                found = {each.replica_id for each in part.current_voters}
                if found == wanted:
                    return
                for voter in sorted((wanted - found) & late):
                    await self._insist(self._addition(self.cluster.voters[voter]), DuplicateVoter)
            except KafkaError:
                await self.pause()
            await self.pause(PAUSE_S)
        raise AssertionError(f"the voters are {sorted(found)}, not {sorted(wanted)}")
