"""The difference between two metadata images, for listeners when a snapshot is loaded.

Knows nothing of snapshots. Apache Kafka's ``MetadataDelta.finishSnapshot``.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.cluster.image.image import MetadataDelta, MetadataImage


def difference(before: MetadataImage, after: MetadataImage) -> MetadataDelta:
    """Returns the delta between two images, as if records had changed the one to the other."""
    delta = MetadataDelta()
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            delta.deleted_topics[topic_id] = topic
    for topic_id, topic in after.topics_by_id.items():
        known = before.topics_by_id.get(topic_id)
        if known is None:
            delta.new_topics[topic_id] = topic
            delta.partitions[topic_id] = set(topic.partitions)
        elif indexes := _changed(known.partitions, topic.partitions):
            delta.partitions[topic_id] = indexes
    delta.configs = _changed(before.configs, after.configs)
    delta.brokers = _changed(before.brokers, after.brokers)
    delta.features = _changed(before.features, after.features)
    delta.producer_ids = before.next_producer_id != after.next_producer_id
    delta.new_acls = [acl for acl in after.acl_ids if acl not in before.acl_ids]
    delta.removed_acls = [acl for acl in before.acl_ids if acl not in after.acl_ids]
    delta.credentials = _changed(before.credentials, after.credentials)
    delta.tokens = _changed(before.tokens, after.tokens)
    delta.quotas = _changed(before.quotas, after.quotas)
    return delta


def _changed(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> set[Any]:
    """Returns the keys that only one of the mappings has, or that have different values."""
    changed = {key for key, value in after.items() if before.get(key) != value}
    return changed | {key for key in before if key not in after}
