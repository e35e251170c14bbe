"""Builds the change of one partition: ISR, leader and epochs, eligible leaders, replicas and their directories.

Knows nothing of why a partition changes: a decision sets the target state, and gets a record if anything changes. Rules
of Apache Kafka's ``PartitionChangeBuilder``: elections, eligible leader replicas (KIP-966), the completion of a
reassignment (KIP-455), leader recovery (KIP-704), directories (KIP-858).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from barnabas.cluster.controller.decision import Surroundings
from barnabas.cluster.controller.replicas import default_directory, has_online_directory, is_active
from barnabas.cluster.features import DIRECTORIES, ELIGIBLE_LEADER_REPLICAS
from barnabas.cluster.image.image import NO_LEADER, NO_LEADER_CHANGE, MetadataImage, PartitionImage, TopicImage
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.types import ZERO_UUID

MIN_INSYNC_REPLICAS = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"

RECOVERED, RECOVERING = 0, 1
"""Values of ``leader_recovery_state`` (KIP-704)."""

PREFERRED, ONLINE, UNCLEAN = range(3)
"""The kinds of elections: the first replica if it may lead; any replica in the ISR; any live replica."""

SHRINKS_KEEP_EPOCH = 12
"""The first ``metadata.version`` at which shrinking the ISR keeps the leader epoch (KAFKA-15021)."""


class Terms:
    """The input that the changes of one decision have in common: the image, and the configs of topics."""

    def __init__(self, image: MetadataImage, around: Surroundings) -> None:
        self.image = image
        self.keeps_eligible = bool(image.features.get(ELIGIBLE_LEADER_REPLICAS))
        self.around = around
        self._min_insync_replicas: dict[str, int] = {}  # of topics; a decision may change all their partitions
        self._elections: dict[str, int] = {}

    def min_insync_replicas(self, topic: TopicImage) -> int:
        """Returns ``min.insync.replicas``, or the number of replicas if that is smaller."""
        known = self._min_insync_replicas.get(topic.name)
        if known is None:
            found = self.image.configs_of(TOPIC_RESOURCE, topic.name).get(MIN_INSYNC_REPLICAS)
            wanted: int = self.around.settings[MIN_INSYNC_REPLICAS] if found is None else int(found)
            known = self._min_insync_replicas[topic.name] = min(wanted, len(topic.partitions[0].replicas))
        return known

    def unclean(self, topic: TopicImage) -> bool:
        """Returns ``unclean.leader.election.enable``."""
        found = self.image.configs_of(TOPIC_RESOURCE, topic.name).get(UNCLEAN_ELECTION)
        return bool(self.around.settings[UNCLEAN_ELECTION]) if found is None else found.lower() == "true"

    def election(self, topic: TopicImage) -> int:
        known = self._elections.get(topic.name)
        if known is None:
            known = self._elections[topic.name] = UNCLEAN if self.unclean(topic) else ONLINE
        return known

    def may_lead(self, replica: int, partition: PartitionImage) -> bool:
        if replica not in partition.replicas or not is_active(replica, self.image):
            return False
        return has_online_directory(replica, partition, self.image)


_changes = attrgetter(
    "isr", "leader", "replicas", "removing_replicas", "adding_replicas", "leader_recovery_state", "directories",
    "eligible_leader_replicas", "last_known_elr",
)  # fmt: skip
_NO_CHANGES = _changes(PartitionChangeRecord(topic_id=ZERO_UUID))


class Elected(NamedTuple):
    leader: int
    is_unclean: bool = False


class PartitionChange:
    """The target state of one partition, at first the current one. :meth:`record` is called once."""

    def __init__(self, topic: TopicImage, index: int, terms: Terms) -> None:
        partition = topic.partitions[index]
        self.partition = partition
        self.isr: Sequence[int] = partition.isr
        self.replicas: Sequence[int] = partition.replicas
        self.removing: Sequence[int] = partition.removing
        self.adding: Sequence[int] = partition.adding
        self._directories: dict[int, bytes] | None = None
        self.leader_recovery_state = partition.leader_recovery_state
        self.election = ONLINE
        self.stopped_uncleanly: int | None = None  #: a broker whose log may lack acknowledged records
        self._elr: Sequence[int] = partition.elr
        self._topic, self._index, self._terms = topic, index, terms

    @property
    def directories(self) -> dict[int, bytes]:
        """The directory of each replica, to be changed in place."""
        if self._directories is None:
            self._directories = dict(zip(self.partition.replicas, self.partition.directories, strict=True))
        return self._directories

    def record(self) -> PartitionChangeRecord | None:
        """Returns the record of the change; None if nothing changes."""
        record = PartitionChangeRecord(partition_id=self._index, topic_id=self._topic.id)
        self._complete_reassignment()
        self._track_eligible()
        self._elect(record)
        before = self.partition
        if record.leader == NO_LEADER_CHANGE and not set(before.replicas) <= set(self.replicas):
            record.leader = before.leader  # a replica that has left the ISR must not be elected
        self._record_eligible(record)
        isr = tuple(self.isr)
        if record.isr is None and isr != before.isr and (isr or self._terms.keeps_eligible):
            record.isr = list(isr)
        self._fence_left_out(record)
        self._record_last_known(record)
        self._record_assignment(record)
        if self.leader_recovery_state != before.leader_recovery_state:
            record.leader_recovery_state = self.leader_recovery_state
        return record if _changes(record) != _NO_CHANGES else None

    # ------------------------------------------------------------ reassignment

    def _complete_reassignment(self) -> None:
        """Removes the leaving replicas once the new replicas are in sync, and enough of the others."""
        if not self.removing and not self.adding:
            return
        isr = [replica for replica in self.isr if replica not in self.removing]
        replicas = [replica for replica in self.replicas if replica not in self.removing]
        if not isr or not replicas or not set(self.adding) <= set(isr):
            return
        if len(self.adding) < len(self.removing) and not set(replicas) <= set(isr):
            return
        self.isr, self.replicas, self.removing, self.adding = isr, replicas, (), ()

    def _record_assignment(self, record: PartitionChangeRecord) -> None:
        before, image = self.partition, self._terms.image
        is_assigned_anew = self.replicas is not before.replicas or self.removing is not before.removing
        if not is_assigned_anew and self.adding is before.adding and self._directories is None:
            return  # most changes are of the ISR or the leader only
        if image.metadata_version >= DIRECTORIES:
            directories = [self.directories.get(each) or default_directory(each, image) for each in self.replicas]
            if tuple(directories) != before.directories:
                record.directories = directories
        if tuple(self.replicas) != before.replicas:
            record.replicas = list(self.replicas)
        if tuple(self.removing) != before.removing:
            record.removing_replicas = list(self.removing)
        if tuple(self.adding) != before.adding:
            record.adding_replicas = list(self.adding)

    # ------------------------------------------------------------ elections

    def _elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = self._elected()
        if leader == self.partition.leader:
            return
        if leader in self._elr:
            self.isr = [leader]
            self._elr = [replica for replica in self._elr if replica != leader]
        record.leader = leader
        if is_unclean:
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _elected(self) -> Elected:
        current, replicas = self.partition.leader, self.replicas
        order = [replicas[0], current, *replicas] if self.election == PREFERRED else [current, *replicas]
        for replica in order:
            if self._is_valid(replica):
                return Elected(replica)
        if self._last_known_can_lead():
            return Elected(self.partition.last_known_elr[0], is_unclean=True)
        if self.election == UNCLEAN:
            for replica in replicas:
                if self._may_lead(replica):
                    return Elected(replica, is_unclean=True)
        return Elected(NO_LEADER)

    def _is_valid(self, replica: int) -> bool:
        """Returns whether the replica is in the ISR or the ELR, and may lead."""
        return replica in (self.isr or self._elr) and self._may_lead(replica)

    def _last_known_can_lead(self) -> bool:
        """Returns whether the last known leader may lead, when no replica is in the ISR or the ELR."""
        last = self.partition.last_known_elr
        if not self._terms.keeps_eligible or self.isr or self._elr or len(last) != 1:
            return False
        return self._may_lead(last[0])

    def _may_lead(self, replica: int) -> bool:
        return replica != self.stopped_uncleanly and self._terms.may_lead(replica, self.partition)

    def _fence_left_out(self, record: PartitionChangeRecord) -> None:
        """Raises the leader epoch if brokers with an older metadata.version need that to leave the ISR."""
        if self._terms.image.metadata_version >= SHRINKS_KEEP_EPOCH or record.isr is None:
            return
        if record.leader == NO_LEADER_CHANGE and not set(self.partition.isr) <= set(record.isr):
            record.leader = self.partition.leader

    # ------------------------------------------------------------ eligible leader replicas

    def _track_eligible(self) -> None:
        """Adds replicas that leave a too small ISR to the ELR: they have all committed records.

        A removed replica does not stay in it, as it does in Apache Kafka's controller: added again, it has nothing.
        """
        if not self._terms.keeps_eligible:
            return
        if len(self.isr) >= self._terms.min_insync_replicas(self._topic):
            self._elr = ()
            return
        before = self.partition
        was = {*before.elr, *before.isr}.intersection(before.replicas, self.replicas)
        self._elr = sorted(was - {*self.isr, self.stopped_uncleanly})

    def _record_eligible(self, record: PartitionChangeRecord) -> None:
        if record.isr is not None or not self._terms.keeps_eligible:  # an unclean election, or ELRs are disabled
            self._elr = ()
        if self._elr != self.partition.elr and set(self._elr) != set(self.partition.elr):
            record.eligible_leader_replicas = list(self._elr)

    def _record_last_known(self, record: PartitionChangeRecord) -> None:
        """Records the last known leader while there is no leader."""
        if not self._terms.keeps_eligible:
            return
        before = self.partition
        if record.leader == NO_LEADER and not before.last_known_elr:
            record.last_known_elr = [before.leader]
        elif record.leader >= 0 and before.last_known_elr:
            record.last_known_elr = []


# ---------------------------------------------------------------- many partitions


Where = Callable[[PartitionImage], bool]


def changes_where(
    applies: Where,
    terms: Terms,
    *,
    without: int | None = None,
    stopped_uncleanly: int | None = None,
) -> Iterator[PartitionChangeRecord]:
    """Returns the changes of the partitions for which ``applies`` holds: a broker leaves, or returns.

    The image of the terms, which has the change of the broker already, defines which brokers may lead. Apache Kafka's
    ``generateLeaderAndIsrUpdates``.

    :param without: a broker that leaves the ISR
    :param stopped_uncleanly: a broker that leaves ISR and ELR
    """
    for topic in terms.image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            if applies(partition):
                record = changed(topic, index, terms, without=without, stopped_uncleanly=stopped_uncleanly)
                if record is not None:
                    yield record


def changed(
    topic: TopicImage, index: int, terms: Terms, *, without: int | None = None, stopped_uncleanly: int | None = None
) -> PartitionChangeRecord | None:
    """Returns the change of one partition when its broker leaves or returns; None if there is none."""
    change = PartitionChange(topic, index, terms)
    change.election = terms.election(topic)
    change.stopped_uncleanly = stopped_uncleanly
    change.isr = [replica for replica in change.isr if replica not in (without, stopped_uncleanly)]
    return change.record()


def led_by_others(broker_id: int, terms: Terms) -> Iterable[PartitionChangeRecord]:
    """Returns the changes that remove a broker from ISRs, and elect other leaders in its place."""
    return changes_where(lambda partition: broker_id in partition.isr, terms, without=broker_id)
