"""Quotas on Apache Kafka and on Barnabas: throttle times, and the time until a connection is read again.

Each broker runs in its own process, since quotas of addresses apply to all clients. Times are compared with generous
bounds; exact times are tested under a manual clock."""

import socket
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from .batches import records
from .hand_over import apache_on, barnabas_on, running, set_quota
from .play import Play, Step
from .share_state_steps import found as found_coordinator
from .share_state_steps import initialize
from .share_steps import ACCEPT, T0, share_fetch, shared
from .steps import HELPERS, ask, create, fetch, fetch_body, flat, produce_body, seed
from .test_console_tools import Tools

pytestmark = pytest.mark.xdist_group("quotas")
REFUSED, OK = 89, 0


@pytest.fixture(scope="module")
def both(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yields the bootstrap addresses of both."""
    with (
        running(apache_on(tmp_path_factory.mktemp("apache"))) as theirs,
        running(barnabas_on(tmp_path_factory.mktemp("barnabas"))) as ours,
    ):
        yield {"Apache Kafka": theirs, "Barnabas": ours}


def on_both(both: Mapping[str, str], found: Any) -> dict[str, Any]:
    """Returns the results of both brokers, measured at the same time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(both, pool.map(found, both.values()), strict=True))


def alike(both: Mapping[str, str], found: Any) -> Any:
    """Returns the result that both brokers share."""
    each = on_both(both, found)
    assert each["Barnabas"] == each["Apache Kafka"]
    return each["Barnabas"]


def play(bootstrap: str, *steps: Step) -> list[Any]:
    """Returns the responses to raw requests."""
    host, _, port = bootstrap.partition(":")
    run = Play((host, int(port)), "", HELPERS)
    run.run(steps)
    return [answer for _, _, answer in run.transcript]


def produce(topic: str, size: int, client_id: str = "other") -> Step:
    return ask("Produce", client_id=client_id, **produce_body(topic, records("x" * size)))


def timed(bootstrap: str, *steps: Step) -> tuple[list[Any], float]:
    began = time.monotonic()
    answers = play(bootstrap, *steps)
    return answers, time.monotonic() - began


def test_produce_is_answered_at_once_and_the_next_request_later(both: dict[str, str]) -> None:
    """Throttled for the bytes divided by the quota, less ten samples of a second and what has passed of the next."""

    def found(bootstrap: str) -> tuple[float, float]:
        play(bootstrap, *create("produced"))
        set_quota(bootstrap, {"client-id": "writer"}, producer_byte_rate=2000)
        first, *_ = play(bootstrap, produce("produced", 10_000, "writer"))
        assert first["ThrottleTimeMs"] == 0
        (second,), took = timed(bootstrap, produce("produced", 17_000, "writer"))
        assert took < second["ThrottleTimeMs"] / 1000, "it was answered at once"
        next_request = ask("ApiVersions", v=0, client_id="other", within=20)
        (third, _), took = timed(bootstrap, produce("produced", 2000, "writer"), next_request)
        assert took >= third["ThrottleTimeMs"] / 1000 - 0.05
        return second["ThrottleTimeMs"] / 1000, third["ThrottleTimeMs"] / 1000

    for second, third in on_both(both, found).values():
        overhead = 0.4  # in seconds: what requests have beside their records counts as well
        assert 2.5 < second < 3.5 + overhead
        assert 3.5 < third < 4.5 + overhead


def test_a_throttled_fetch_has_no_topics(both: dict[str, str]) -> None:
    def found(bootstrap: str) -> Any:
        play(
            bootstrap,
            *create("fetched"),
            produce("fetched", 6000),
        )
        set_quota(bootstrap, {"client-id": "reader"}, consumer_byte_rate=1000)
        (first, second), took = timed(bootstrap, *(fetch("fetched", client_id="reader") for _ in range(2)))
        counts = [sum(len(each["Partitions"]) for each in answer["Responses"]) for answer in (first, second)]
        return (counts, first["ThrottleTimeMs"], second["SessionId"]), second["ThrottleTimeMs"] / 1000, took

    ours, theirs = on_both(both, found).values()
    assert ours[0] == theirs[0]
    assert ours[0][0] == [1, 0]
    # Rate: bytes divided by the quota, less the time since the oldest sample began, at most one sample (1 s).
    assert abs(ours[1] - theirs[1]) <= 1 + max(ours[2], theirs[2])
    assert min(ours[1], theirs[1]) > 0


OF_A_CLIENT: dict[str, dict[str, Any]] = {
    "Metadata": {"Topics": [{"Name": "busy"}], "AllowAutoTopicCreation": False},
    "ApiVersions": {"ClientSoftwareName": "busy", "ClientSoftwareVersion": "1"},
    "Produce": produce_body("busy", records("one")),
    "Fetch": fetch_body("busy"),
    "ListOffsets": {
        "ReplicaId": -1,
        "Topics": [{"Name": "busy", "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}],
    },
    "FindCoordinator": {"KeyType": 0, "CoordinatorKeys": ["busy"]},
    "Heartbeat": {"GroupId": "busy", "GenerationId": 1, "MemberId": "m"},
    "OffsetFetch": {"Groups": [{"GroupId": "busy", "Topics": None}]},
    "InitProducerId": {"TransactionalId": None, "TransactionTimeoutMs": 1000},
    "CreateTopics": {"Topics": [], "timeoutMs": 1000},
    "DescribeConfigs": {"Resources": []},
    "DescribeQuorum": {"Topics": []},
    "WriteTxnMarkers": {"Markers": []},
    "InitializeShareGroupState": {"GroupId": "busy", "Topics": []},
}
"""Requests, each on its own connection."""


def test_a_client_far_above_its_share_of_the_time_waits_for_a_second(both: dict[str, str]) -> None:
    """``ClientRequestQuotaManager``: at most the length of a sample, at every API except those between brokers."""

    def found(bootstrap: str) -> Any:
        play(bootstrap, *create("busy"))
        set_quota(bootstrap, {"client-id": "busy"}, request_percentage=0.0001)
        requests = [ask(api, client_id="busy", on=api, patient=False, **body) for api, body in OF_A_CLIENT.items()]
        heard = ask("Metadata", client_id="busy", until=("ThrottleTimeMs", 1000), **OF_A_CLIENT["Metadata"])
        answers = play(bootstrap, replace(heard, on="first"), *requests)
        results = {
            api: (answer.get("ThrottleTimeMs"), len(answer.get("Responses", ())))
            for api, answer in zip(OF_A_CLIENT, answers[1:], strict=True)
        }
        _, took = timed(bootstrap, *(ask("Metadata", client_id="busy", **OF_A_CLIENT["Metadata"]) for _ in range(2)))
        (idle, *_), quick = timed(bootstrap, *(ask("Metadata", **OF_A_CLIENT["Metadata"]) for _ in range(2)))
        return results, 0.95 < took < 5, idle["ThrottleTimeMs"], quick < 0.9

    results, *others = alike(both, found)
    assert results["Metadata"][0] == results["Produce"][0] == 1000
    assert results["Fetch"] == (1000, 0)
    assert others == [True, 0, True]


def test_a_throttled_share_fetch_has_no_records(both: dict[str, str]) -> None:
    def found(bootstrap: str) -> Any:
        set_quota(bootstrap, {"client-id": "sharer"}, consumer_byte_rate=1)
        answer = play(bootstrap, *flat(shared(2)), replace(share_fetch(0, T0), client_id="sharer"))[-1]
        return answer["Responses"], answer["AcquisitionLockTimeoutMs"], answer["ThrottleTimeMs"] > 1000

    assert alike(both, found)[0] == []


def test_a_throttled_share_fetch_acknowledges_and_leaves_its_session_as_it_was(both: dict[str, str]) -> None:
    """The response has the results of acknowledgements; a new partition without a result is in the next response."""

    def found(bootstrap: str) -> Any:
        set_quota(bootstrap, {"client-id": "slow-sharer"}, consumer_byte_rate=1)
        steps = (
            # until the records are there
            replace(share_fetch(0, T0, group="~s", member="bert", MaxWaitMs=10_000), within=20.0),
            replace(
                share_fetch(1, ("~t", 1), said={T0: [(0, 0, ACCEPT)]}, group="~s", member="bert", on="slow"),
                client_id="slow-sharer",
            ),
            share_fetch(2, group="~s", member="bert"),
            share_fetch(3, group="~s", member="bert"),
        )
        places = initialize(("~t", 0), ("~t", 1), group="~s", quiet=True)
        play_these = flat([create("~t", 2), found_coordinator(), places, seed("~t", "0", "1"), *steps])
        host, _, port = bootstrap.partition(":")
        run = Play((host, int(port)), "sharing-", HELPERS)
        run.run(list(play_these))
        answers = [answer for _, _, answer in run.transcript[-4:]]
        assert all(isinstance(answer, dict) for answer in answers), f"{bootstrap}: {run.transcript}"
        return [
            (
                sorted(
                    (each["PartitionIndex"], each["ErrorCode"], each["AcknowledgeErrorCode"], each["AcquiredRecords"])
                    for topic in answer["Responses"]
                    for each in topic["Partitions"]
                ),
                answer["AcquisitionLockTimeoutMs"],
                answer["ThrottleTimeMs"] > 1000,
            )
            for answer in answers
        ]

    said = alike(both, found)
    assert [throttled for _, _, throttled in said] == [False, True, False, False]
    assert [[index for index, *_ in partitions] for partitions, _, _ in said] == [[0], [0, 1], [1], []]


def test_changes_of_the_cluster_are_refused(both: dict[str, str]) -> None:
    def found(bootstrap: str) -> Any:
        set_quota(bootstrap, {"client-id": "changer"}, controller_mutation_rate=1)
        topics = [{"Name": name, "NumPartitions": 8, "ReplicationFactor": 1} for name in ("m-a", "m-b")]

        def wanted(*found: Mapping[str, Any], v: int) -> Step:
            return ask(
                "CreateTopics",
                v=v,
                Topics=list(found),
                timeoutMs=9000,
                validateOnly=False,
                client_id="changer",
                on=f"{v}",
            )

        steps = (
            wanted(*topics, v=7),
            wanted({"Name": "m-c", "NumPartitions": 1, "ReplicationFactor": 1}, v=6),
            wanted({"Name": "m-d", "NumPartitions": 1, "ReplicationFactor": 1}, v=5),
            ask(
                "CreatePartitions",
                v=3,
                Topics=[{"Name": "m-a", "Count": 9, "Assignments": None}],
                TimeoutMs=9000,
                ValidateOnly=True,
                client_id="changer",
                on="grow",
            ),
            ask("DeleteTopics", v=6, Topics=[{"Name": "m-a"}], TimeoutMs=9000, client_id="changer", on="delete"),
            ask("DeleteTopics", v=5, TopicNames=["m-a"], TimeoutMs=9000, client_id="changer", on="delete-5"),
            ask("DeleteTopics", v=4, TopicNames=["m-a"], TimeoutMs=9000, client_id="changer", on="delete-4"),
        )
        answers, spans = [], []
        for step in steps:
            began = time.monotonic()
            answers += play(bootstrap, step)
            spans.append((began, time.monotonic()))
        # The bucket holds the tokens of eleven samples; the first request took 16. It gains one a second.
        for debt, answer, (began, ended) in zip((5, 6, 6, 6, 6, 6 + 8), answers[1:], spans[1:], strict=True):
            due = answer["ThrottleTimeMs"] / 1000
            assert due + began - spans[0][1] - 0.01 <= debt <= due + ended - spans[0][0] + 0.01, answer
        entries = [answer.get("Topics") or answer.get("Results") or answer["Responses"] for answer in answers]
        return [
            sorted((each["Name"], each["ErrorCode"], each.get("ErrorMessage")) for each in entry) for entry in entries
        ]

    found_on_both = alike(both, found)
    assert found_on_both[1] == [("m-c", REFUSED, None)]
    assert found_on_both[2] == [("m-d", OK, None)]
    assert [entry[0][1] for entry in found_on_both[3:]] == [REFUSED, REFUSED, REFUSED, OK]


def test_connections_beyond_the_quota_of_an_address_are_closed_without_an_answer(both: dict[str, str]) -> None:
    """Connects from a separate address: clients of other tests would use up the quota of a common one."""
    address = "127.0.7.7"

    def found(bootstrap: str) -> Any:
        host, _, port = bootstrap.partition(":")
        set_quota(bootstrap, {"ip": address}, connection_creation_rate=2)
        api_versions = bytes.fromhex("0000000a 0012 0000 00000007 0000")
        answered, closed = 0, 0
        for _ in range(500):  # Apache Kafka's broker applies the quota a moment later
            with socket.create_connection((host, int(port)), 10, source_address=(address, 0)) as client:
                client.sendall(api_versions)
                try:
                    answer = client.recv(4)
                except ConnectionResetError:
                    answer = b""
                answered, closed = answered + bool(answer), closed + (not answer)
                if closed:
                    break
        return answered >= 20, closed  # the quota of ten seconds at once

    assert alike(both, found) == (True, 1)


def test_a_real_client_is_slowed_down_to_its_quota(both: dict[str, str]) -> None:
    """15 seconds' quota: ten at once, the rest after the first left the window. Another client is not throttled."""

    def found(bootstrap: str) -> tuple[float, float]:
        set_quota(bootstrap, {"client-id": "slow"}, producer_byte_rate=100_000)
        slow = Producer({"bootstrap.servers": bootstrap, "client.id": "slow", "linger.ms": 0, "batch.size": 20_000})
        quick = Producer({"bootstrap.servers": bootstrap, "client.id": "quick", "linger.ms": 0})
        slow.produce("rate", b"first")
        slow.flush(10)
        began = time.monotonic()
        for _ in range(150):
            slow.produce("rate", b"x" * 10_000)
        waited = []
        for _ in range(20):
            began = time.monotonic()
            quick.produce("rate", b"y" * 10_000)
            assert quick.flush(10) == 0
            waited.append(time.monotonic() - began)
            slow.poll(0.05)
        assert slow.flush(30) == 0
        return time.monotonic() - began, sorted(waited)[10]

    on_both(both, lambda bootstrap: play(bootstrap, *create("rate")))
    for took, waited in on_both(both, found).values():
        assert 3 < took < 18
        assert waited < 1


# ---------------------------------------------------------------- kafka-configs.sh


def orderless(text: str) -> str:
    """Sorts the words and lines: Java's maps have entities and quotas in no defined order."""
    return "\n".join(sorted(" ".join(sorted(line.replace(",", "").split())) for line in text.splitlines()))


def described(tools: Tools, entity: tuple[str, ...]) -> str:
    """Returns the description of an entity whose quotas were altered: a broker applies the records later."""
    deadline = time.monotonic() + 30
    while not (text := tools.configs("--describe", *entity)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return text


def test_kafka_configs_prints_the_same(both: dict[str, str]) -> None:
    users, clients = ("--entity-type", "users"), ("--entity-type", "clients")
    entities = (
        (*users, "--entity-name", "alice"),
        (*users, "--entity-default"),
        (*users, "--entity-name", "alice", *clients, "--entity-name", "app"),
        (*users, "--entity-name", "alice", *clients, "--entity-default"),
        (*clients, "--entity-name", "app"),
        ("--entity-type", "ips", "--entity-name", "10.1.2.3"),
        ("--entity-type", "ips", "--entity-default"),
    )

    def found(bootstrap: str) -> list[str]:
        tools, said = Tools(bootstrap), []
        try:
            for entity in entities:
                rates = (
                    "connection_creation_rate=7" if "ips" in entity else "producer_byte_rate=1e9,request_percentage=99"
                )
                said.append(tools.configs("--alter", *entity, "--add-config", rates.replace("1e9", "1000000000")))
                said.append(orderless(described(tools, entity)))
            for kind in ("users", "clients", "ips"):
                said.append(orderless(tools.configs("--describe", "--entity-type", kind)))
            for entity in entities:
                keys = "connection_creation_rate" if "ips" in entity else "producer_byte_rate,request_percentage"
                said.append(tools.configs("--alter", *entity, "--delete-config", keys))
            bad = tools.configs("--alter", *entities[0], "--add-config", "producer_byte_rate=0", fails=True)
            said.append(next(line for line in bad.splitlines() if "InvalidRequest" in line))
        finally:
            assert tools.process.stdin is not None
            tools.process.stdin.close()
            tools.process.wait(10)
        return said

    said = alike(both, found)
    assert any("producer_byte_rate=1.0E9 request_percentage=99.0" in each for each in said), said
