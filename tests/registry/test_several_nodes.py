"""Registries of several brokers: each forwards requests to the one that leads _schemas."""

import concurrent.futures
import time

import pytest

from barnabas.testing import Cluster
from tests.registry.conftest import Client


@pytest.fixture
def cluster():
    with Cluster(3, barnabas_schema_registry_listener="127.0.0.1:0") as cluster:
        yield cluster


def clients(cluster):
    return {
        node_id: Client(each.server.http_services[0].url)
        for node_id, each in cluster._brokers.items()
        if each.server is not None
    }


def until_it_answers(client, *request):
    end = time.monotonic() + 20
    while (answer := client(*request))[0] >= 500 and time.monotonic() < end:
        time.sleep(0.02)
    return answer


def register(client, number):
    return until_it_answers(
        client, "POST", f"/subjects/s{number}/versions", {"schema": f'{{"type":"int","n":{number}}}'}
    )


def test_ids_are_given_out_once_and_outlive_the_node_that_gave_them(cluster):
    by_node = clients(cluster)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        turns = pool.map(lambda node: [register(by_node[node], 10 * node + each) for each in range(4)], by_node)
        ids = sorted(found["id"] for turn in turns for status, found in turn)
    assert ids == list(range(1, 13))
    leader = cluster.leader("_schemas")
    before = {node: client("GET", "/schemas") for node, client in by_node.items()}
    assert len({str(each) for each in before.values()}) == 1
    cluster.stop(leader)
    others = [client for node, client in by_node.items() if node != leader]
    assert [until_it_answers(each, "GET", "/schemas") for each in others] == [before[leader]] * 2
    assert [register(each, 100)[1]["id"] for each in others] == [13, 13]
