"""Translates the committed offsets of the source's groups, and commits them in the target.

As in MirrorMaker 2 (``MirrorCheckpointTask``, KIP-545), only groups without members in the target are synced, and
their offsets never move backwards. Knows nothing of records.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from barnabas.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    IllegalGeneration,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.pipelines.client.cluster import Cluster, TopicPartition
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.pipelines.client.writing import Writer
from barnabas.pipelines.jobs.mirroring.administration import Group, groups
from barnabas.pipelines.jobs.mirroring.checkpoints import Checkpoint
from barnabas.pipelines.jobs.mirroring.policy import Patterns, Policy
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.mirroring.syncs import Place, Syncs
from barnabas.pipelines.jobs.mirroring.target_state import SyncsReader, own_records

logger = logging.getLogger(__name__)

CONSUMING = ("consumer", "streams", "")
"""Protocol types of groups that commit offsets; empty for a group that only commits."""

IT_HAS_MEMBERS = (UnknownMemberId, IllegalGeneration, RebalanceInProgress, FencedMemberEpoch, GroupIdNotFound)
"""The errors of a commit by a client that is not a member of the group."""


class Translated(NamedTuple):
    """A group's committed offset in the source, and the translated one in the target."""

    upstream: int
    downstream: int
    metadata: str


def of_interest(found: Iterable[Group], patterns: Patterns, *, but: str | None = None) -> list[str]:
    """Returns the groups of the source whose offsets are translated, without `but` and the groups of mirrors."""
    return sorted(
        group.name
        for group in found
        if group.protocol in CONSUMING
        and group.kind.lower() != "share"
        and group.name in patterns
        and group.name != but
        and not group.name.startswith("barnabas-mirror-")
    )


def translated(committed: Mapping[TopicPartition, Any], syncs: Syncs, policy: Policy) -> dict[Place, Translated]:
    """Returns the translated offsets by partition of the target, without partitions that are not mirrored yet."""
    found = {}
    for (topic, partition), offset_and_metadata in committed.items():
        place = Place(policy.renamed(topic), partition)
        history = syncs.get(place)
        downstream = history.translate(offset_and_metadata.offset) if history is not None else None
        if downstream is not None:
            found[place] = Translated(offset_and_metadata.offset, downstream, offset_and_metadata.metadata)
    return found


def advances(wanted: Mapping[Place, Translated], there: Mapping[TopicPartition, Any]) -> dict[Place, Translated]:
    """Returns the offsets that are ahead of the group's offsets in the target."""
    return {
        place: each
        for place, each in wanted.items()
        if (known := there.get(TopicPartition(*place))) is None or known.offset < each.downstream
    }


class Groups:
    """Syncs the offsets of one mirror's groups."""

    def __init__(self, spec: Spec, source: Cluster, target: Cluster) -> None:
        self._spec, self._source, self._target = spec, source, target
        self._syncs = SyncsReader(target, spec.policy.syncs_topic)
        self._committed: dict[tuple[str, Place], Translated] = {}

    def follow(self) -> None:
        """Translates and commits the current offsets once."""
        names = of_interest(groups(self._source), self._spec.group_patterns, but=self._spec.commit_group)
        if not names:
            return
        committed = {name: self._source.committed(name) for name in names}
        syncs = self._syncs.refresh()
        wanted = {name: translated(offsets, syncs, self._spec.policy) for name, offsets in committed.items()}
        busy = {group.name for group in groups(self._target) if group.has_members}
        for name, offsets in wanted.items():
            if offsets and name not in busy:
                self._commit(name, offsets)
        if self._spec.checkpoints:
            self._write_checkpoints(wanted)

    def _commit(self, name: str, wanted: Mapping[Place, Translated]) -> None:
        there = self._target.committed(name, [TopicPartition(*place) for place in wanted])
        by_metadata: dict[str, dict[TopicPartition, int]] = {}
        for place, each in advances(wanted, there).items():
            by_metadata.setdefault(each.metadata, {})[TopicPartition(*place)] = each.downstream
        for metadata, offsets in by_metadata.items():
            try:
                self._target.commit(name, offsets, metadata)
            except IT_HAS_MEMBERS:
                logger.info("group %s has members at the target: its offsets are not changed", name)
                return
            except KafkaError as problem:
                logger.warning("cannot commit for group %s at the target: %s", name, problem)
                return

    def _write_checkpoints(self, wanted: Mapping[str, Mapping[Place, Translated]]) -> None:
        """Writes the offsets that have changed to the checkpoints topic, for MirrorMaker's tools."""
        fresh = {
            (name, place): each
            for name, offsets in wanted.items()
            for place, each in offsets.items()
            if self._committed.get((name, place)) != each
        }
        if not fresh:
            return
        records = [
            Checkpoint(name, place.topic, place.partition, each.upstream, each.downstream, each.metadata).encode()
            for (name, place), each in fresh.items()
        ]
        writer = Writer(self._target, WriteSettings())
        writer.write(self._spec.policy.checkpoints_topic, own_records(records))
        writer.flush()
        writer.close()
        self._committed.update(fresh)
