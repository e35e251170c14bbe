"""kafka-metadata-shell and Apache Kafka's, over logs and snapshots that either wrote: the same tree.

The shell of Apache Kafka runs a command as soon as it has read some records, so it is asked until it has read all.
"""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.cli import commands
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId, encode_snapshot
from barnabas.wire.messages import metadata_records as records

from .apache import CURRENT, FLAGS, java_command
from .hand_over import TOPIC, alter, apache_on, barnabas_on, fill, running, wait

pytestmark = pytest.mark.xdist_group("metadata_shell")  # it has brokers of its own

SHELL = ("kafka-shell",)
SETTINGS = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
LOG = "__cluster_metadata-0"
TRIES = 10
CALLS = (
    ("find", "/"),
    ("tree", "/image"),
    ("ls",),
    ("ls", "/image", "/image/cluster/*", "/local/version"),
    ("cat", "/image/cluster/*/?", "/image/{topics,configs}/*/*", "/image/provenance", "/nothing", "/image"),
    ("find", "image/features", "/image/../local/./version"),
)
LEVEL = 30


def ours(path: Path, *words: str) -> str:
    ran = CliRunner().invoke(commands.barnabas, ["kafka", "metadata-shell", "--snapshot", str(path), *words])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def theirs(path: Path, *words: str) -> str:
    command = java_command(
        CURRENT,
        "org.apache.kafka.shell.MetadataShell",
        ["--snapshot", str(path), *words],
        options=FLAGS,
        log_level="off",
        artifacts=SHELL,
    )
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    return ran.stdout + ran.stderr


def assert_same(path: Path, calls: Sequence[Sequence[str]] = CALLS) -> None:
    for words in calls:
        wanted = ours(path, *words)
        for _ in range(TRIES):
            found = theirs(path, *words)
            if found == wanted:
                break
        assert found == wanted, words


def change(bootstrap: str) -> None:
    """Makes each kind of record that a client can make, and some more until there are snapshots."""
    fill(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    acl = AclBinding(
        ResourceType.TOPIC, "orders", ResourcePatternType.PREFIXED, "User:anna", "*", AclOperation.READ,
        AclPermissionType.DENY,
    )  # fmt: skip
    wait(admin.create_acls([acl]))
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wait(admin.alter_user_scram_credentials([UserScramCredentialUpsertion("anna", credential, b"secret")]))
    for segment_ms in range(3_600_000, 3_600_050):
        alter(bootstrap, TOPIC, "orders", "segment.ms", str(segment_ms))


@pytest.mark.parametrize("made", [apache_on, barnabas_on])
def test_logs_and_snapshots_of_brokers(made: Callable, kafka_jars: Path, tmp_path: Path) -> None:  # type: ignore[type-arg]
    with running(made(tmp_path, SETTINGS)) as bootstrap:
        change(bootstrap)
    directory = tmp_path / "data" / LOG
    snapshots = sorted(directory.glob("*.checkpoint"))
    assert snapshots
    for path in (directory / "00000000000000000000.log", snapshots[-1]):
        assert_same(path)


def test_a_snapshot_with_what_is_rare(kafka_jars: Path, tmp_path: Path) -> None:
    broker, controller = records.RegisterBrokerRecord, records.RegisterControllerRecord
    quota = records.ClientQuotaRecord
    topic_id, directories = bytes(15) + b"\7", [bytes(15) + b"\1", bytes(16)]
    listed = [
        records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL),
        records.FeatureLevelRecord(name="transaction.version", feature_level=2),
        broker(
            broker_id=1, broker_epoch=5, incarnation_id=bytes(range(16)), rack="north", fenced=True,
            in_controlled_shutdown=True, log_dirs=[bytes(range(16))], cordoned_log_dirs=[bytes(range(16))],
            features=[broker.BrokerFeature(name="group.version", min_supported_version=1, max_supported_version=1)],
            end_points=[
                broker.BrokerEndpoint(name="SSL", host="::1", port=2, security_protocol=1),
                broker.BrokerEndpoint(name="OUTSIDE", host="o", port=3, security_protocol=3),
            ],
        ),
        controller(
            controller_id=3000, incarnation_id=bytes(16), zk_migration_ready=True, features=[],
            end_points=[controller.ControllerEndpoint(name="C", host="c", port=4, security_protocol=2)],
        ),
        records.TopicRecord(name="a.b", topic_id=topic_id),
        records.PartitionRecord(
            partition_id=11, topic_id=topic_id, replicas=[1, 2], isr=[], removing_replicas=[2], adding_replicas=[1],
            leader=-1, leader_recovery_state=1, leader_epoch=3, partition_epoch=4, directories=directories,
            eligible_leader_replicas=[1], last_known_elr=[2],
        ),
        *(
            records.ConfigRecord(resource_type=kind, resource_name=resource, name=name, value="v = (1)")
            for kind, resource, name in (
                (2, "a.b", "retention.ms"), (2, "a.b", "message.format.version"), (4, "", "any"), (4, "1", "any"),
                (16, "all", "interval.ms"), (16, "all", "any"), (32, "group", "consumer.session.timeout.ms"),
            )
        ),
        *(
            quota(
                entity=[quota.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                key="request_percentage", value=value, remove=False,
            )
            for entity, value in (
                ({"user": "a(b)\\"}, 0.25), ({"client-id": "c", "user": "u"}, 12_345_678.0), ({"ip": "::1"}, 1e-7),
                ({"client-id": "c"}, 2e10),
            )
        ),
        records.ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=2000),
        records.UserScramCredentialRecord(
            name="u", mechanism=1, salt=b"\0\xff", stored_key=b"s", server_key=b"", iterations=5000
        ),
        records.DelegationTokenRecord(
            owner="User:o", requester="User:r", renewers=["User:x", "User:y"], issue_timestamp=1, max_timestamp=2,
            expiration_timestamp=3, token_id="token-1",
        ),
    ]  # fmt: skip
    path = tmp_path / SnapshotId(100, 7).file_name
    path.write_bytes(
        encode_snapshot(
            listed, kraft=KRaftState(), metadata_version=LEVEL, epoch=7, last_timestamp=1, now_ms=1_700_000_000_120
        )
    )
    assert_same(path)
