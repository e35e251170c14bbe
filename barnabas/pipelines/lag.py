"""The lag of queries, shown where every Kafka tool looks for it: in the offsets that a consumer group has committed.

Knows nothing of a query but its progress, so it does for any source whose offsets are ``{"topic": {"0": 23}}``: ours,
and Spark's own connector. A query that reads with our source can do without, by its option commitGroup.
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
    """Commits the end of each micro-batch of every query, or of the one named `query`, that reads topics.

    The group is `group`, else ``spark-`` and the query's name, or its id where it has none. The queries themselves go
    by their checkpoints alone, so nothing is lost where a commit fails: it is logged.
    """

    def __init__(self, client: ClientSettings, *, group: str | None = None, query: str | None = None) -> None:
        self._client, self._group, self._query = client, group, query
        self._committed: dict[str, Mapping[TopicPartition, int]] = {}
        """By the id of each query that runs."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing has been read yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A micro-batch is finished."""
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
        """Nothing has been read."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """What it has read last has been committed by then."""
        self._committed.pop(str(event.id), None)

    def _commit(self, query: str, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        from barnabas.pipelines.client.cluster import Cluster, Unauthenticated

        try:
            Cluster.of(self._client).commit(group, offsets, patience=PATIENCE)
        except (KafkaError, Unauthenticated) as problem:
            log.warning("cannot commit to group %s how far a query has come: %s", group, problem)
        else:
            self._committed[query] = offsets


def offsets_of(end_offset: str | None) -> dict[TopicPartition, int]:
    """The offsets of a source's progress; none where it is no source of topics."""
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
    """From now on show the lag of this session's queries; `settings` are the client's, by their Java names.

    ``spark.streams.removeListener`` of what is returned ends it.
    """
    client = ClientSettings.parse({**(settings or {}), "bootstrap.servers": bootstrap_servers})
    listener = LagListener(client, group=group, query=query)
    spark.streams.addListener(listener)
    return listener
