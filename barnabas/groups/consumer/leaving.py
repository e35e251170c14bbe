"""How members leave: by request, temporarily as static members, or because they are fenced.

Knows nothing of what becomes of their partitions. Leaving raises the group epoch, and the next heartbeat of another
member finds that.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Protocol

from barnabas.deadlines import Deadline
from barnabas.errors import KafkaError
from barnabas.groups.consumer import checks, records
from barnabas.groups.consumer.directory import Directory
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import NOTHING, Member
from barnabas.groups.consumer.member_states import UNREVOKED
from barnabas.groups.consumer.messages import LEAVING_STATIC, Heartbeat, HeartbeatReply, HeartbeatResult
from barnabas.groups.ledger import Pair, Written

logger = logging.getLogger(__name__)

RETRY_S: Final = 0.5
"""After how long the removal of a member is tried again if it could not be written."""


class Downgrade(Protocol):
    """Turns a consumer group into a classic one when its last member of the consumer protocol leaves."""

    def is_due(self, group: ConsumerGroup, leaving: Collection[Member], /) -> bool:
        """Returns whether the group becomes a classic group without these members."""

    def downgrade(self, group: ConsumerGroup, leaving: Sequence[Member], done: Written, /) -> None:
        """Writes the records that remove these members, and make the group a classic one."""


class Leaving:
    """Removes members, and keeps the deadlines at which they are fenced."""

    def __init__(self, directory: Directory, downgrade: Downgrade) -> None:
        self._directory = directory
        self._downgrade = downgrade
        self._environment = directory.environment

    def leave(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles the heartbeat of a member that leaves.

        :raises KafkaError: the request is refused
        """
        group = self._directory.require(request.group_id)
        member = (
            group.require(request.member_id) if request.instance_id is None else checks.static_member(group, request)
        )
        if request.member_epoch == LEAVING_STATIC:
            new_records = [records.assignment_record(group.group_id, _gone_temporarily(member))]
        else:
            logger.info("group %s: member %s leaves", group.group_id, member.member_id)
            new_records = None
        result = HeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch)

        def done(error: KafkaError | None) -> None:
            reply(result if error is None else HeartbeatResult.refused(error))

        if new_records is None:
            self.remove(group, [member], done)
        else:
            self._environment.ledger.commit(group.group_id, new_records, done)

    def remove(self, group: ConsumerGroup, members: Sequence[Member], done: Written) -> None:
        """Removes members. The group becomes a classic group if only members of the classic protocol are left."""
        if self._downgrade.is_due(group, members):
            self._downgrade.downgrade(group, members, done)
        else:
            self._environment.ledger.commit(group.group_id, self.tombstones(group, members), done)

    def tombstones(self, group: ConsumerGroup, members: Iterable[Member]) -> list[Pair]:
        """Returns the records that remove members and raise the group epoch."""
        members = list(members)
        new_records = [
            pair for member in members for pair in records.tombstones_of_member(group.group_id, member.member_id)
        ]
        unused_regexes = group.regexes_only_of(members)
        new_records += [records.regex_record(group.group_id, regex, None) for regex in unused_regexes]
        metadata_hash = self._directory.topics.hash_of(group.topics_without(members, unused_regexes))
        new_records.append(records.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return new_records

    def fence(self, group_id: str, member_id: str, why: str, deadline: Deadline | None = None) -> None:
        """Removes a member that has missed a deadline, if it is still there.

        :param deadline: set again if the removal cannot be written
        """
        group = self._directory.find(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return

        def done(error: KafkaError | None) -> None:
            if error is None:
                logger.info("group %s: removed member %s: %s", group_id, member_id, why)
                return
            logger.warning("group %s: cannot remove member %s: %s", group_id, member_id, error)
            if deadline is not None:
                self._environment.deadlines.set(deadline, RETRY_S)

        self.remove(group, [member], done)

    # -------------------------------------------------------------- deadlines

    def expect_heartbeat(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """Restarts the member's session.

        :param timeout_ms: that of a member of the classic protocol; by default the group's session timeout
        """
        group = self._directory.find(group_id)
        if group is None or member_id not in group.members:
            return
        session = group.sessions.get(member_id)
        if session is None:
            session = group.sessions[member_id] = Deadline(self._session_is_over, group_id, member_id)
        if timeout_ms is None:
            timeout_ms = self._environment.group_settings(group_id)["consumer.session.timeout.ms"]
        self._environment.deadlines.set(session, timeout_ms / 1000)

    def expect_revocation(self, group_id: str, member: Member) -> None:
        """Sets the deadline of a member that has to revoke partitions; cancels that of any other member."""
        group = self._directory.find(group_id)
        if group is None or group.members.get(member.member_id) is None:
            return
        former = group.revocations.pop(member.member_id, None)
        if former is not None:
            former.cancel()
        if member.state is not UNREVOKED:
            return
        deadline = Deadline(self._revocation_is_late, group_id, member.member_id, member.epoch)
        group.revocations[member.member_id] = deadline
        self._environment.deadlines.set(deadline, member.rebalance_timeout_ms / 1000)

    def _session_is_over(self, group_id: str, member_id: str) -> None:
        group = self._directory.find(group_id)
        if group is not None:
            self.fence(group_id, member_id, "its session timed out", group.sessions.get(member_id))

    def _revocation_is_late(self, group_id: str, member_id: str, epoch: int) -> None:
        group = self._directory.find(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is not None and member is not None and member.epoch == epoch:
            why = f"it has not revoked partitions of epoch {epoch} within the rebalance timeout"
            self.fence(group_id, member_id, why, group.revocations.get(member_id))

    def start(self) -> None:
        """Starts all sessions and rebalance timeouts, once the log is loaded."""
        for group in self._directory.all():
            self.expect_all(group.group_id)

    def expect_all(self, group_id: str) -> None:
        """Starts the sessions and rebalance timeouts of a group that has just been loaded or upgraded."""
        group = self._directory.find(group_id)
        for member in group.members.values() if group is not None else ():
            classic = member.classic
            timeout_ms = None if classic is None else classic.session_timeout_ms
            self.expect_heartbeat(group_id, member.member_id, timeout_ms)
            if classic is None:
                self.expect_revocation(group_id, member)


def _gone_temporarily(member: Member) -> Member:
    """Returns a static member that has left temporarily. It keeps its partitions, with epoch 0."""
    return member._replace(
        epoch=LEAVING_STATIC,
        assigned={topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()},
        revoking=NOTHING,
    )
