"""Commits the offsets of queries to a consumer group, so that every Kafka tool shows their lag.

Knows nothing of a query but its progress, so it works for any source with offsets like ``{"topic": {"0": 23}}``: ours
and Spark's own connector. A query with our source can use its option commitGroup instead.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from barnabas.errors import KafkaError
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.offsets import StreamOffset

log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that Spark's listeners may wait for the group's coordinator."""


class LagListener(StreamingQueryListener):
    """Commits the end of each micro-batch of every query that reads topics, or of the query named `query`.

    The group is `group`, or else ``spark-`` and the query's name, or its id if it has no name. Queries themselves
    continue from their checkpoints, so a failed commit loses nothing, and is only logged.
    """

    def __init__(self, client: ClientSettings, *, group: str | None = None, query: str | None = None) -> None:
        self._client, self._group, self._query = client, group, query
        self._committed: dict[str, Mapping[TopicPartition, int]] = {}
        """By the id of each query that runs."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Does nothing: nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Commits the end of a finished micro-batch."""
        progress, id_ = event.progress, str(event.progress.id)
        if self._query not in (None, progress.name, id_):
            return
        offsets: dict[TopicPartition, int] = {}
        for source in progress.sources:
            for partition, at in offsets_of(source.endOffset).items():
                offsets[partition] = min(at, offsets.get(partition, at))  # of a topic read twice: the one behind
        if offsets and self._committed.get(id_) != offsets:
            self._commit(id_, self._group or f"spark-{progress.name or id_}", offsets)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Does nothing: nothing has been read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Forgets the query, whose last micro-batch has been committed."""
        self._committed.pop(str(event.id), None)

    def _commit(self, query: str, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        from barnabas.pipelines.client.cluster import Cluster, Unauthenticated

        try:
            Cluster.of(self._client).commit(group, offsets, patience=PATIENCE)
        except (KafkaError, Unauthenticated) as problem:
            log.warning("cannot commit a query's offsets to group %s: %s", group, problem)
        else:
            self._committed[query] = offsets


def offsets_of(end_offset: str | None) -> dict[TopicPartition, int]:
    """Returns the offsets in a source's progress; none if the source does not read topics."""
    try:
        value: Any = json.loads(end_offset or "null")
        return dict(StreamOffset.from_json(value).at)
    except (ValueError, TypeError, AttributeError):
        return {}


def follow(
    spark: SparkSession,
    *,
    bootstrap_servers: str,
    group: str | None = None,
    query: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> LagListener:
    """Commits the offsets of this session's queries from now on. ``spark.streams.removeListener`` of the result ends
    it.

    :param settings: the client's, by their Java names.
    """
    client = ClientSettings.parse({**(settings or {}), "bootstrap.servers": bootstrap_servers})
    listener = LagListener(client, group=group, query=query)
    spark.streams.addListener(listener)
    return listener
