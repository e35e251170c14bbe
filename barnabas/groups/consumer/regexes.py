"""Subscriptions by regular expression: what each matches, and when it is resolved again.

Knows nothing of the responses to heartbeats. Apache Kafka resolves expressions in another thread, and writes the result
later. Here this happens right after the heartbeat, as a batch of its own, too.
"""

import logging
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from barnabas.errors import InvalidRegularExpression
from barnabas.groups.assigning.regex import matching
from barnabas.groups.consumer import records
from barnabas.groups.consumer.group import ConsumerGroup, Counts
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.messages import Visible
from barnabas.groups.consumer.resolved_regex import UNRESOLVED, ResolvedRegex
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.java_hash import hash_code, hash_map_order, table_order, timeline_order
from barnabas.groups.ledger import Pair

logger = logging.getLogger(__name__)

LEAST_INTERVAL_MS: Final = 10_000
"""The shortest interval between two resolutions, for all expressions of a group together."""


class Change(NamedTuple):
    """What a heartbeat means for the regular expressions of a group."""

    has_changed: bool
    """The member subscribes by another expression than before, or by none."""
    is_known: bool
    """What the new expression matches is known: the group needs a new assignment."""
    due: Collection[str] = ()
    """The expressions to resolve once the heartbeat's records are written."""


def change(
    group: ConsumerGroup,
    former: Member,
    member: Member,
    new_records: list[Pair],
    *,
    now_ms: int,
    new_topics_at: int,
    refresh_interval_ms: Callable[[], int],
) -> Change:
    """Returns what follows if ``former`` becomes ``member``, and adds the tombstone of an expression without members.

    :param new_topics_at: the metadata offset at which a topic was last created
    :raises InvalidRegularExpression: RE2 rejects the expression
    """
    old, new = former.topic_regex, member.topic_regex
    has_changed, is_known, is_due = old != new, False, False
    if has_changed:
        if old and group.regexes.get(old) == 1:
            new_records.append(records.regex_record(group.group_id, old, None))
        if new and new not in group.regexes:
            matching(new, ())
            is_due = True
        elif new:
            is_known = new in group.resolved
        else:
            is_known = bool(old)
    if not is_due and not group.regexes:
        return Change(has_changed, is_known)
    last = next(iter(group.resolved.values()), None)
    if last is not None and now_ms <= last.time_ms + LEAST_INTERVAL_MS:
        return Change(has_changed, is_known)
    regexes = Counts(group.regexes)
    regexes.add((new,) if new else (), 1)
    regexes.add((old,) if old else (), -1)
    is_due = (
        is_due
        or len(regexes) != len(group.resolved)
        or last is None
        or last.image_offset < new_topics_at
        or now_ms > last.time_ms + refresh_interval_ms()
    )
    return Change(has_changed, is_known, list(regexes) if is_due else ())


def resolve(
    group: ConsumerGroup, regexes: Collection[str], topics: Topics, now_ms: int, visible: Visible | None = None
) -> tuple[list[Pair], int]:
    """Returns the records of what the expressions match, and the group epoch after them.

    :param visible: returns the topics that the requesting member may see; None if it may see all
    """
    image = topics.image()
    new_records: list[Pair] = []
    subscribed, has_changed = Counts(group.topics), False
    for regex in _in_order(regexes):
        if regex not in group.regexes:
            continue
        try:
            found = frozenset(matching(regex, image.topics_by_name))
        except InvalidRegularExpression as error:  # another broker has accepted it
            logger.warning("group %s: %s", group.group_id, error)
            found = frozenset()
        if visible is not None:
            found = visible(found)
        former = group.resolved.get(regex, UNRESOLVED).topics
        if found != former:
            has_changed = True
            subscribed.add(found, 1)
            subscribed.add(former, -1)
        new_records.append(records.regex_record(group.group_id, regex, ResolvedRegex(found, image.offset, now_ms)))
    metadata_hash = topics.hash_of(subscribed)
    if not has_changed and metadata_hash == group.metadata_hash:
        return new_records, group.epoch
    new_records.append(records.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
    return new_records, group.epoch + 1


def _in_order(regexes: Collection[str]) -> list[str]:
    """Returns expressions in the order in which Apache Kafka writes them: through two hash tables into a third."""
    codes = {regex: hash_code(regex) for regex in hash_map_order(timeline_order(regexes))}
    return table_order(codes, capacity=len(codes))
