"""A broker that is compatible with an older Apache Kafka: ApiVersions, and the supported requests."""

import socket
import struct

import pytest

from barnabas.api_handlers import releases
from barnabas.api_handlers.registry import APIS
from barnabas.broker import Broker as Node
from barnabas.cluster.features import METADATA_VERSIONS
from barnabas.config import ConfigError
from barnabas.testing import Broker
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.produce import ProduceRequest

OLDEST_WITH_API_VERSIONS = list(releases.CHANGES).index("0.10.0")
BY_PROBING = list(releases.CHANGES)[:OLDEST_WITH_API_VERSIONS]
SELF_DESCRIBING = list(releases.CHANGES)[OLDEST_WITH_API_VERSIONS:]
LIKE_THE_ONE_BEFORE = {"2.5", "2.6", "3.3", "3.4"}
"""kafka-python distinguishes these by APIs that only brokers and controllers use, or that are not supported yet."""


def tuple_of(release):
    return tuple(map(int, release.split(".")))


def test_the_tables_are_those_that_kafka_python_knows():
    from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

    known = {
        release: {int(key): tuple(versions) for key, versions in apis.items()}
        for release, apis in BROKER_API_VERSIONS.items()
    }
    ours = {tuple_of(release): releases.advertised(release) for release in releases.CHANGES}
    newer = set(ours) - set(known)
    assert newer <= {(4, 4)}
    assert {release: apis for release, apis in ours.items() if release not in newer} == known


@pytest.mark.parametrize(
    ("text", "release"),
    [("0.8", "0.8.2"), ("0.8.0", "0.8.0"), ("0.8.2.2", "0.8.2"), ("0.9.0.1", "0.9"), ("0.10", "0.10.2"),
     ("0.10.1.0", "0.10.1"), ("1.0", "1.0"), ("2.8", "2.8"), ("2.8.1", "2.8"), ("4.4", "4.4"), (" 3.9 ", "3.9")],
)  # fmt: skip
def test_a_release_is_found_by_its_names(text, release):
    assert releases.find(text) == release


@pytest.mark.parametrize("text", ["", "2", "4.5", "0.7", "latest", "2.88"])
def test_what_is_no_release_is_refused(text):
    with pytest.raises(ConfigError, match=r"a release of Apache Kafka from 0\.8\.0 to 4\.4"):
        releases.find(text)
    with pytest.raises(ConfigError), Broker(compatible_with=text or "none"):
        pass


@pytest.mark.parametrize("release", releases.CHANGES)
def test_nothing_is_told_that_is_not_answered_and_nothing_that_was_not_there(release):
    then, ours, missing = releases.advertised(release), releases.narrowed(release), releases.missing(release)
    for key, api in ours.items():
        assert api.versions.first <= api.versions.last
        assert APIS[key].versions.first <= api.versions.first <= api.versions.last <= APIS[key].versions.last
        assert then[key].first <= api.versions.first <= api.versions.last <= then[key].last
        assert (key in missing) == (api.versions != then[key])
    assert set(then) - set(ours) <= set(missing)


FEATURES = {
    "2.8": {},
    "3.2": {},
    "3.9": {"kraft.version": (0, 1), "metadata.version": (7, 21)},
    "4.0": {"group.version": (0, 1), "kraft.version": (0, 1), "metadata.version": (7, 25),
            "transaction.version": (0, 2), "eligible.leader.replicas.version": (0, 1)},
    "4.1": {"group.version": (0, 1), "kraft.version": (0, 1), "metadata.version": (7, 27), "share.version": (0, 1),
            "transaction.version": (0, 2), "eligible.leader.replicas.version": (0, 1)},
}  # fmt: skip
"""As brokers of these releases returned them, from the first level that we know: 3.9 returned metadata.version 1 to 21.
"""


@pytest.mark.parametrize("release", FEATURES)
def test_features_are_those_of_the_release(release):
    assert releases.features(release, Node.supported_features) == FEATURES[release]


def test_every_feature_of_ours_came_with_some_release():
    assert set(releases.FEATURES) <= set(releases.CHANGES)
    assert list(releases.FEATURES) == [release for release in releases.CHANGES if release in releases.FEATURES]
    assert releases.features("4.4", Node.supported_features) == Node.supported_features


def test_levels_of_metadata_are_those_of_their_releases():
    for release in releases.FEATURES:
        last = max(level for level, name in METADATA_VERSIONS.items() if name.partition("-")[0] == release)
        assert releases.features(release, Node.supported_features)["metadata.version"].last == last


def ask(broker, request, version):
    """Returns the body of the response, or None if the connection was closed."""
    host, port = broker.bootstrap_servers.split(":")
    header = struct.pack(">hhih", request.api_key, version, 7, -1) + (b"\0" if version in request.flexible else b"")
    frame = header + request.encode(version=version)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as answers:
            size = answers.read(4)
            return answers.read(*struct.unpack(">i", size))[4:] if size else None


@pytest.mark.parametrize("release", ["0.10.0", "2.8", "3.3", "4.0"])
def test_api_versions_tells_what_is_left(release):
    with Broker(compatible_with=release) as broker:
        version = releases.advertised(release)[ApiVersionsRequest.api_key].last
        body = ask(broker, ApiVersionsRequest(client_software_name="a", client_software_version="1"), version)
    found = ApiVersionsResponse.decode(body, version=version)
    assert {each.api_key: (each.min_version, each.max_version) for each in found.api_keys} == {
        key: api.versions for key, api in releases.narrowed(release).items()
    }
    levels = {each.name: each.max_version for each in found.supported_features}
    assert set(levels) <= set(releases.features(release, Node.supported_features))
    for each in found.finalized_features:
        if each.name in levels:  # ApiVersions 3 leaves out those with level 0, but has them as finalized
            assert 0 < each.min_version_level == each.max_version_level <= levels[each.name]
    assert {each.name for each in found.finalized_features} <= set(releases.features(release, Node.supported_features))
    assert (found.finalized_features_epoch == -1) == (release in ("0.10.0", "2.8"))


def test_what_that_release_did_not_know_closes_the_connection():
    produce = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[])
    with Broker(compatible_with="2.8") as broker:
        assert ask(broker, produce, 9) is not None
        assert ask(broker, produce, 10) is None
        newer = ask(broker, ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
        assert newer[:2] == b"\x00\x23"  # UNSUPPORTED_VERSION, as version 0
    with Broker(compatible_with="0.9") as broker:
        assert ask(broker, ApiVersionsRequest(), 0) is None
        assert ask(broker, produce, 1) is not None


@pytest.mark.parametrize("release", [each for each in SELF_DESCRIBING if each not in LIKE_THE_ONE_BEFORE])
def test_kafka_python_takes_it_for_that_release(release):
    from kafka import KafkaAdminClient

    with Broker(compatible_with=release) as broker:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            taken_for = admin._manager.broker_version
        finally:
            admin.close()
    assert taken_for == min(tuple_of(release), (4, 3))  # the newest that kafka-python 3.0 knows


@pytest.mark.parametrize("release", ["0.8.2", "0.9", "0.10.0", "0.11", "1.0", "2.8", "3.9", "4.4"])
def test_a_client_told_of_that_release_writes_and_reads(release):
    from kafka import KafkaConsumer, KafkaProducer

    known = {"api_version": tuple_of(release)} if release in BY_PROBING else {}
    with Broker(compatible_with=release) as broker:
        broker.create_topic("t")
        settings = {"bootstrap_servers": broker.bootstrap_servers, **known}
        producer = KafkaProducer(**settings)
        producer.send("t", key=b"k", value=b"v").get(30)
        producer.close()
        consumer = KafkaConsumer("t", auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings)
        record = next(consumer)
        consumer.close()
    assert (record.key, record.value) == (b"k", b"v")


FOR_TRANSACTIONS = {10: "FindCoordinator", 22: "InitProducerId", 24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn",
                    26: "EndTxn", 28: "TxnOffsetCommit"}  # fmt: skip


@pytest.mark.parametrize("release", releases.CHANGES)
def test_transactions_came_with_0_11_and_are_whole_since(release):
    found = releases.narrowed(release)
    there = FOR_TRANSACTIONS if tuple_of(release) >= (0, 11) else {}
    assert {key for key in FOR_TRANSACTIONS if key != 10 and key in found} == set(there) - {10}
    for_admins = {57, 65, 66}  # UpdateFeatures, DescribeTransactions, ListTransactions
    assert not (set(there) | for_admins) & set(releases.missing(release))


def test_the_second_generation_of_transactions_came_with_4_0():
    for release in releases.CHANGES:
        found = releases.narrowed(release)
        since = tuple_of(release) >= (4, 0)
        assert (found[0].versions.last >= 12) == since
        assert (26 in found and found[26].versions.last >= 5) == since
        assert ("transaction.version" in releases.features(release, Node.supported_features)) == since


@pytest.mark.parametrize("release", ["0.11", "2.8", "3.9", "4.0", "4.4"])
def test_a_client_told_of_that_release_has_its_transactions(release):
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.structs import OffsetAndMetadata

    with Broker(compatible_with=release) as broker:
        broker.create_topic("t", partitions=2)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="one")
        producer.init_transactions()
        for turn, end in enumerate(
            (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
        ):
            producer.begin_transaction()
            for partition in range(2):
                producer.send("t", b"%d" % turn, partition=partition)
            producer.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(turn, "", -1)}, "g")
            end()
        producer.close()
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
            consumer_timeout_ms=60_000,
        )
        places = [TopicPartition("t", partition) for partition in range(2)]
        assert consumer.committed(places[0]) == 2
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        values = [next(consumer).value for _ in range(4)]
        consumer.close()
    assert sorted(values) == [b"0", b"0", b"2", b"2"]
