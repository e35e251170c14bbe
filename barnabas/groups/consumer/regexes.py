"""Subscriptions by pattern: which topics each stands for, and when that is looked up again.

Knows nothing of heartbeats' answers. Apache Kafka looks patterns up in another thread and writes down what it found a
little later; here that is done right after the heartbeat that asked for it, and written as a batch of its own, too.
"""

import logging
from collections.abc import Callable, Collection
from typing import Final, NamedTuple

from barnabas.errors import InvalidRegularExpression
from barnabas.groups.assigning.regex import matching
from barnabas.groups.consumer import records
from barnabas.groups.consumer.group import ConsumerGroup, Counts
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.resolved_regex import UNRESOLVED, ResolvedRegex
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.java_hash import hash_code, hash_map_order, table_order, timeline_order
from barnabas.groups.ledger import Pair

logger = logging.getLogger(__name__)

LEAST_INTERVAL_MS: Final = 10_000
"""So long at least from one look at the topics to the next, for all patterns of a group together."""


class Change(NamedTuple):
    """What a heartbeat means for the patterns of a group."""

    has_changed: bool
    """The member subscribes by another pattern than before, or by none."""
    is_known: bool
    """And it is known which topics that stands for: the group needs another assignment."""
    due: Collection[str] = ()
    """The patterns to look up when what the heartbeat says is written."""


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
    """What follows for the patterns when ``former`` becomes ``member``.

    :param new_topics_at: offset of the metadata at which a topic was last made
    :raises InvalidRegularExpression: RE2 does not take the pattern
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


def resolve(group: ConsumerGroup, regexes: Collection[str], topics: Topics, now_ms: int) -> tuple[list[Pair], int]:
    """The records of which topics the patterns stand for, and the group's epoch after them."""
    image = topics.image()
    new_records: list[Pair] = []
    subscribed, has_changed = Counts(group.topics), False
    for regex in _in_order(regexes):
        if regex not in group.regexes:
            continue
        try:
            found = frozenset(matching(regex, image.topics_by_name))
        except InvalidRegularExpression as error:  # from a broker that took it
            logger.warning("group %s: %s", group.group_id, error)
            found = frozenset()
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
    """As they stand in the hash table that Apache Kafka's results come in, made from two others one after the other."""
    codes = {regex: hash_code(regex) for regex in hash_map_order(timeline_order(regexes))}
    return table_order(codes, capacity=len(codes))
