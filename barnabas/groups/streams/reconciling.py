"""Moves a member from the tasks that it owns to its target, so that no task is owned twice.

Knows nothing of groups, records or time. A task is assigned once no other member owns it, and a task to revoke is owned
until the member confirms that (``CurrentAssignmentBuilder``).
"""

from collections.abc import Collection
from typing import NamedTuple, Protocol

from barnabas.errors import FencedMemberEpoch
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.member_states import MemberState
from barnabas.groups.streams.tasks import NONE_ASSIGNED, Epochs, Target, Tasks, TasksWithEpochs


class TaskHolders(Protocol):
    """The processes that own tasks, including tasks to revoke."""

    def active_process(self, subtopology: str, partition: int) -> str | None:
        """Returns the process with the active task."""

    def other_processes(self, subtopology: str, partition: int) -> Collection[str]:
        """Returns the processes with the task as standby or warm-up."""


class _Difference(NamedTuple):
    kept: Tasks
    revoked: Tasks
    added: Tasks
    awaits_others: bool


def next_member(
    member: Member, target_epoch: int, target: Target, owned: Target | None, holders: TaskHolders
) -> Member:
    """Returns the member after its next step, or the same member if it cannot move yet.

    :param owned: the tasks that the member reports; None if it reports nothing
    :raises FencedMemberEpoch: the member owns tasks, and is in a state that only a newer broker knows
    """
    match member.state:
        case MemberState.STABLE:
            if member.epoch == target_epoch:
                return member
            epoch = member.epoch
        case MemberState.UNREVOKED_TASKS:
            if owned is None or owned.overlaps(member.revoking):
                return member
            epoch = member.epoch + 1
        case MemberState.UNRELEASED_TASKS:
            epoch = member.epoch
        case _:
            if owned is None or not owned.is_empty:
                raise FencedMemberEpoch(
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
                )
            epoch = target_epoch
    return _reconciled(member, epoch, target_epoch, target, owned, holders)


def _reconciled(
    member: Member, epoch: int, target_epoch: int, target: Target, owned: Target | None, holders: TaskHolders
) -> Member:
    process = member.process_id

    def is_active_held(subtopology: str, partition: int) -> bool:
        return holders.active_process(subtopology, partition) is not None or process in holders.other_processes(
            subtopology, partition
        )

    def is_copy_held(subtopology: str, partition: int) -> bool:
        return holders.active_process(subtopology, partition) == process or process in holders.other_processes(
            subtopology, partition
        )

    had = member.assigned
    active = _difference(
        {each: frozenset(partitions) for each, partitions in had.active.items()}, target.active, is_active_held
    )
    standby = _difference(had.standby, target.standby, is_copy_held)
    warmup = _difference(had.warmup, target.warmup, is_copy_held)
    revoked = TasksWithEpochs(_with_epochs(active.revoked, had.active, target_epoch), standby.revoked, warmup.revoked)
    kept = TasksWithEpochs(_with_epochs(active.kept, had.active, target_epoch), standby.kept, warmup.kept)
    if not revoked.is_empty and (owned is None or owned.overlaps(revoked)):
        return member._replace(
            state=MemberState.UNREVOKED_TASKS,
            epoch=epoch,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoked,
        )
    awaits_others = active.awaits_others or standby.awaits_others or warmup.awaits_others
    added = TasksWithEpochs(_with_epochs(active.added, {}, target_epoch), standby.added, warmup.added)
    return member._replace(
        state=MemberState.UNRELEASED_TASKS if awaits_others else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=kept.merge(added),
        revoking=NONE_ASSIGNED,
    )


class _IsHeld(Protocol):
    def __call__(self, subtopology: str, partition: int, /) -> bool: ...


def _difference(current: Tasks, target: Tasks, is_held: _IsHeld) -> _Difference:
    kept: dict[str, frozenset[int]] = {}
    revoked: dict[str, frozenset[int]] = {}
    added: dict[str, frozenset[int]] = {}
    awaits_others = False
    for subtopology in current.keys() | target.keys():
        has = current.get(subtopology, frozenset())
        wanted = target.get(subtopology, frozenset())
        missing = wanted - has
        free = frozenset(each for each in missing if not is_held(subtopology, each))
        awaits_others |= len(free) < len(missing)
        for tasks, partitions in ((kept, has & wanted), (revoked, has - wanted), (added, free)):
            if partitions:
                tasks[subtopology] = partitions
    return _Difference(kept, revoked, added, awaits_others)


def _with_epochs(tasks: Tasks, former: Epochs, otherwise: int) -> Epochs:
    return {
        subtopology: {each: former.get(subtopology, {}).get(each, otherwise) for each in partitions}
        for subtopology, partitions in tasks.items()
    }
