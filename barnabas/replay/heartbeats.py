"""The members of groups whose assignments come with heartbeats: the consumer protocol (KIP-848) and share groups
(KIP-932).

Knows nothing of connections. Which of several heartbeats has an assignment, and how many epochs there are until then,
depends on how fast a coordinator is: not responses are compared, but what a member knows after them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.frames import api_name

HEARTBEATS: Final = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat")

Places = frozenset[tuple[bytes, int]]
"""Partitions by the topic ids of this run."""


@dataclass(slots=True)
class Member:
    """What a member knows in this run."""

    epoch: int = 0
    assignment: Places = frozenset()
    recorded: Places = frozenset()  #: the assignment of the recording


class Heartbeats:
    """The members by group and member id, both those of the recording."""

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._members: dict[tuple[str, str], Member] = {}

    def renew(self, request: Any, recorded: Any) -> bool:
        """Puts the member's epoch of this run into a request. Returns whether that changed it.

        :param recorded: the request of the recording
        """
        if api_name(type(request)) not in HEARTBEATS or request.member_epoch <= 0:
            return False
        member = self._members.get((recorded.group_id, recorded.member_id))
        if member is None or member.epoch in (0, request.member_epoch):
            return False
        request.member_epoch = member.epoch
        return True

    def is_behind(self, request: Any, recorded: Any, replayed: Any) -> bool:
        """Stores what a response tells a member. Returns whether its assignment is still a part of the recorded one:
        then the heartbeat is sent again. Otherwise epoch and assignment of both responses are equal afterwards.

        :param request: of the recording
        """
        if api_name(type(request)) not in HEARTBEATS or recorded.error_code or replayed.error_code:
            return False
        key = request.group_id, request.member_id or recorded.member_id
        if request.member_epoch <= 0:  # it joins, or leaves
            self._members.pop(key, None)
        member = self._members.setdefault(key, Member())
        if recorded.member_epoch > 0 and replayed.member_epoch > 0:
            scope = Scope(group=request.group_id)
            self._translation.renew(Meaning.GENERATION, scope, recorded.member_epoch, replayed.member_epoch)
            member.epoch = replayed.member_epoch
        if replayed.assignment is not None:
            member.assignment = _places(replayed.assignment)
        if recorded.assignment is not None:
            member.recorded = self._of_this_run(recorded.assignment)
        if member.assignment < member.recorded:
            return True
        if member.assignment >= member.recorded:  # it may have come earlier than it did
            recorded.assignment = replayed.assignment = None
        return False

    def differing(self) -> Iterator[tuple[str, Places, Places]]:
        """Yields the members that have other partitions at the end, with those of the recording and of this run."""
        for (group, member_id), member in self._members.items():
            if member.assignment != member.recorded:
                yield f"member {member_id} of group {group}", member.recorded, member.assignment

    def _of_this_run(self, assignment: Any) -> Places:
        def topic(topic_id: bytes) -> bytes:
            return bytes(self._translation.value(Meaning.TOPIC_ID, Scope(), topic_id))

        return frozenset((topic(topic_id), partition) for topic_id, partition in _places(assignment))


def _places(assignment: Any) -> Places:
    return frozenset(
        (bytes(topic.topic_id), partition) for topic in assignment.topic_partitions for partition in topic.partitions
    )
