"""The listener that commits the offsets of queries, with progress events as Spark sends them."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.lag import LagListener, offsets_of
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        yield broker


def progress(*ends: str | None, name: str | None = "copy") -> Any:
    sources = [SimpleNamespace(endOffset=end) for end in ends]
    return SimpleNamespace(progress=SimpleNamespace(name=name, id="a1b2", sources=sources))


def committed(client: ClientSettings, group: str) -> dict[tuple[str, int], int]:
    return {tuple(part): kept.offset for part, kept in Cluster.of(client).committed(group).items()}


def test_the_group_is_the_query_s_or_the_one_that_was_said(broker: Broker) -> None:
    client = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers})
    listener = LagListener(client)
    listener.onQueryProgress(progress('{"orders": {"0": 5}}', '{"orders": {"1": 7}, "#ids": {"orders": "x"}}'))
    assert committed(client, "spark-copy") == {("orders", 0): 5, ("orders", 1): 7}
    listener.onQueryProgress(progress('{"orders": {"0": 6}}', name=None))
    assert committed(client, "spark-a1b2") == {("orders", 0): 6}

    listener.onQueryProgress(progress('{"orders": {"0": 8}}', '{"orders": {"0": 7}}', name="twice"))
    assert committed(client, "spark-twice") == {("orders", 0): 7}

    one = LagListener(client, group="watched", query="copy")
    one.onQueryProgress(progress('{"orders": {"0": 9}}', name="other"))
    assert committed(client, "watched") == {}
    one.onQueryProgress(progress('{"orders": {"0": 9}}'))
    assert committed(client, "watched") == {("orders", 0): 9}
    Cluster.of(client).close()


def test_a_commit_that_fails_is_logged_and_no_more(caplog: pytest.LogCaptureFixture, broker: Broker) -> None:
    client = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers, "client.id": "other"})
    LagListener(client, group="lost").onQueryProgress(progress('{"missing": {"0": 5}}'))
    assert "cannot commit a query's offsets to group lost: missing-0" in caplog.text
    Cluster.of(client).close()


def test_a_query_that_has_ended_is_forgotten_and_committed_for_again(broker: Broker) -> None:
    client = ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers, "client.id": "again"})
    listener = LagListener(client, group="again")
    cluster = Cluster.of(client)
    listener.onQueryProgress(progress('{"orders": {"0": 4}}'))
    cluster.commit("again", {TopicPartition("orders", 0): 1})
    listener.onQueryProgress(progress('{"orders": {"0": 4}}'))
    assert committed(client, "again") == {("orders", 0): 1}, "what has been committed is not committed once more"
    listener.onQueryTerminated(SimpleNamespace(id="a1b2"))
    listener.onQueryProgress(progress('{"orders": {"0": 4}}'))
    assert committed(client, "again") == {("orders", 0): 4}
    cluster.close()


@pytest.mark.parametrize("end", [None, "", "null", "17", '{"logOffset": 3}', '"text"', '{"a": {"b": {"c": 1}}}'])
def test_sources_of_other_kinds_do_not_count(end: str | None) -> None:
    assert offsets_of(end) == {}
