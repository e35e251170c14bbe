"""Controllers of Barnabas and of Apache Kafka in one quorum: each leads, each is killed, and nothing committed is lost.

Under each leader clients make every kind of metadata change, by requests to a broker, which forwards them, and a group
goes on. In the end all logs of the quorum hold the same batches, byte for byte, tools of either kind print the same of
them, and no controller logs an error. ``BARNABAS_KILLS`` says how many leaders are killed at least.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from barnabas.uuids import uuid_text
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from compat_tests.ports import free_port
from compat_tests.running import environment
from tests.raw import Client

from .apache import CURRENT, run_java
from .load import WITHIN, Group, Load, until
from .mixed import APACHE, BARNABAS, Node
from .observing import content
from .test_metadata_shell import assert_same

pytestmark = pytest.mark.xdist_group("mixed_quorums")  # it starts its own nodes

KILLS = int(os.environ.get("BARNABAS_KILLS", "20"))
"""The number of killed leaders."""
MOST = KILLS + 20
"""Their maximum number until each node has led."""

LOG = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"
TOPIC = "orders"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",  # a controller sends requests to the others before it knows any ACL
}

QUORUMS = {
    "two of ours, static": ([BARNABAS, BARNABAS, APACHE], False),
    "one of ours, static": ([APACHE, BARNABAS, APACHE], False),
    "two of ours, dynamic": ([BARNABAS, BARNABAS, APACHE], True),
    "one of ours, dynamic": ([APACHE, BARNABAS, APACHE], True),
}
"""The kinds of the controllers, and whether the metadata log holds the voters (KIP-853)."""


class Quorum:
    """Three controllers, and two brokers of Barnabas."""

    def __init__(self, home: Path, kinds: list[str], *, dynamic: bool) -> None:
        ports = {100 + index: free_port() for index in range(len(kinds))}
        addresses = {node_id: f"127.0.0.1:{port}" for node_id, port in ports.items()}
        voters = {"controller.quorum.voters": ",".join(f"{node_id}@{each}" for node_id, each in addresses.items())}
        if dynamic:
            voters = {"controller.quorum.bootstrap.servers": ",".join(addresses.values())}
        named = {**voters, **AUTHORIZER}
        self.controllers = {
            node_id: Node(
                kind,
                home / f"controller-{node_id}-{kind}",
                {
                    "process.roles": "controller",
                    "node.id": str(node_id),
                    "listeners": f"CONTROLLER://127.0.0.1:{ports[node_id]}",
                    **named,
                },
                ports[node_id],
            )
            for node_id, kind in zip(ports, kinds, strict=True)
        }
        if dynamic:
            first = ",".join(
                f"{node_id}@{each}:{uuid_text(bytes([node_id]) * 16)}" for node_id, each in addresses.items()
            )
            for node in self.controllers.values():
                node.format_options = ("--initial-controllers", first)
        self.brokers = {}
        for node_id in (1, 2):
            port = free_port()
            roles = {"process.roles": "broker", "node.id": str(node_id), "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
            names = ("default.replication.factor", "offsets.topic.replication.factor")
            copies = {**dict.fromkeys(names, "2"), "min.insync.replicas": "1"}
            self.brokers[node_id] = Node(BARNABAS, home / f"broker-{node_id}", {**roles, **named, **copies}, port)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers.values())

    @property
    def nodes(self) -> list[Node]:
        return [*self.controllers.values(), *self.brokers.values()]

    def start(self) -> None:
        with ThreadPoolExecutor() as starting:
            list(starting.map(Node.start, self.nodes))

    def end(self) -> None:
        for node in self.nodes:
            node.kill()

    def describe(self) -> DescribeQuorumResponse.TopicData.PartitionData:
        """Returns the active controller's description of the quorum, through a broker."""
        kind = DescribeQuorumRequest.TopicData
        partition = kind.PartitionData(partition_index=0)
        request = DescribeQuorumRequest(topics=[kind(topic_name="__cluster_metadata", partitions=[partition])])
        with Client(self.brokers[1].port, timeout=30) as client:
            response = client.ask(request, 2)
        assert isinstance(response, DescribeQuorumResponse)
        return response.topics[0].partitions[0]

    def leader(self) -> int:
        """Returns the active controller, once there is one."""
        found = [-1]

        def is_led() -> bool:
            described = self.describe()
            found[0] = described.leader_id if described.error_code == 0 else -1
            return found[0] in self.controllers and self.controllers[found[0]].process is not None

        until(is_led, "a controller is active")
        return found[0]

    def log(self, node: Node) -> bytes:
        return content(node.data / LOG)

    def run(self, kind: str, *words: str, of: Node | None = None) -> str:
        """Runs the quorum command of either kind, with the configs of a controller."""
        named = ["--command-config", str(of.home / "server.properties")] if of is not None else []
        where = ["--bootstrap-server", self.bootstrap]
        if kind == APACHE:
            ran = run_java(CURRENT, "org.apache.kafka.tools.MetadataQuorumCommand", *where, *named, *words)
        else:
            command = [sys.executable, "-m", "barnabas", "kafka", "metadata-quorum", *where, *named, *words]
            ran = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def bring_to_lead(self, kind: str) -> Node:
        """Kills leaders until one is of this kind, and returns it."""
        while (leader := self.controllers[self.leader()]).kind != kind:
            leader.kill()
            self.leader()
            leader.start()
        return leader


@pytest.fixture(params=QUORUMS.values(), ids=QUORUMS)
def quorum(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[Quorum]:
    kinds, dynamic = request.param
    made = Quorum(tmp_path, kinds, dynamic=dynamic)
    try:
        made.start()
        yield made
    finally:
        made.end()


class Changes:
    """Changes of the metadata by clients, and checks that they are still there."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.made: list[int] = []

    def make(self, number: int) -> None:
        """Makes one change of each kind, while the active controller may change."""
        self._create(number)
        name = ConfigResource(
            ConfigResource.Type.TOPIC,
            f"topic-{number}",
            incremental_configs=[ConfigEntry("retention.ms", str(number), incremental_operation=AlterConfigOpType.SET)],
        )
        for future in self.admin.incremental_alter_configs([name]).values():
            future.result(WITHIN)
        for future in self.admin.create_acls([self._acl(number)]).values():
            future.result(WITHIN)
        credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion(f"user-{number}", credential, b"secret")
        for future in self.admin.alter_user_scram_credentials([user]).values():
            future.result(WITHIN)
        self.made.append(number)

    def _create(self, number: int) -> None:
        (future,) = self.admin.create_topics([NewTopic(f"topic-{number}", 2, 2)], request_timeout=WITHIN).values()
        future.result(WITHIN)

    @staticmethod
    def _acl(number: int) -> AclBinding:
        return AclBinding(
            ResourceType.TOPIC, f"topic-{number}", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*",
            AclOperation.ALL, AclPermissionType.ALLOW,
        )  # fmt: skip

    def are_there(self) -> bool:
        topics = set(self.admin.list_topics(timeout=5).topics)
        every = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        acls = {each.name for each in self.admin.describe_acls(every).result(WITHIN)}
        users = set(self.admin.describe_user_scram_credentials().result(WITHIN))
        return all(
            f"topic-{number}" in topics and f"topic-{number}" in acls and f"user-{number}" in users
            for number in self.made
        )


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_each_controller_leads_and_is_killed(quorum: Quorum) -> None:
    changes, led = Changes(quorum.bootstrap), list[int]()
    for future in changes.admin.create_topics([NewTopic(TOPIC, 3, 2)]).values():
        future.result(WITHIN)
    load, group = Load(quorum.bootstrap, TOPIC), Group(quorum.bootstrap, TOPIC, "readers")
    try:
        while len(led) < KILLS or (set(led) != set(quorum.controllers) and len(led) < MOST):
            leader = quorum.leader()
            led.append(leader)
            changes.make(len(led))
            quorum.controllers[leader].kill()
            changes.make(100 + len(led))  # the others go on
            load.goes_on()
            group.goes_on()
            quorum.controllers[leader].start()
        assert set(led) == set(quorum.controllers), led
        until(changes.are_there, "all changes are there")
        load.stop()
        assert load.failures == []
        wanted = {b"%d" % number for partition in load.acknowledged for number in partition}
        until(lambda: group.seen >= wanted, "the group has read everything")
    finally:
        load.stop()
        group.end()
    assert status(quorum.run(APACHE, "describe", "--status")) == status(quorum.run(BARNABAS, "describe", "--status"))
    assert_same_logs(quorum)
    for node in quorum.nodes:
        assert node.errors() == []


def status(said: str) -> str:
    """Returns what a command says of the quorum, without the figures that change all the time."""
    return re.sub(r"(?m)^(HighWatermark|MaxFollowerLag\w*): .*$", r"\1", said)


def assert_same_logs(quorum: Quorum) -> None:
    """Checks that all logs are equal once they have the same end."""
    quorum.leader()
    for broker in quorum.brokers.values():
        broker.stop()

    def are_same() -> bool:
        logs = {quorum.log(node) for node in quorum.controllers.values()}
        return len(logs) == 1 and logs != {b""}

    until(are_same, "the metadata logs are the same")
    assert_same_tree(next(iter(quorum.controllers.values())).data / LOG / SEGMENT)


def assert_same_tree(path: Path) -> None:
    """Checks that both shells show the same metadata. That of Apache Kafka wants a directory that no node uses."""
    copy = path.parents[2] / path.name
    shutil.copy(path, copy)
    assert_same(copy, [("tree", "/image")])


class Growing(Quorum):
    """The same nodes; at first only the first controller is a voter."""

    def __init__(self, home: Path, kinds: list[str]) -> None:
        super().__init__(home, kinds, dynamic=True)
        first, *others = self.controllers.values()
        first.format_options = ("--standalone",)
        for node in others:
            node.format_options = ("--no-initial-controllers",)

    def voters(self) -> set[int]:
        return {each.replica_id for each in self.describe().current_voters}


@pytest.fixture(params=[[BARNABAS, BARNABAS, APACHE], [APACHE, BARNABAS, APACHE]], ids=["ours", "Apache's"])
def growing(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[Growing]:
    made = Growing(tmp_path, request.param)
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.mark.long
def test_controllers_are_added_and_removed(growing: Growing) -> None:
    changes, (first, *others) = Changes(growing.bootstrap), growing.controllers.items()
    changes.make(1)
    for (node_id, node), kind in zip(others, (APACHE, BARNABAS), strict=True):
        printed = [growing.run(each, "add-controller", "--dry-run", of=node) for each in (APACHE, BARNABAS)]
        assert printed[0] == printed[1]
        added = growing.run(kind, "add-controller", of=node)
        assert added == printed[0].replace("DRY RUN of adding", "Added")
        until(lambda node_id=node_id: node_id in growing.voters(), f"{node_id} is a voter")
        changes.make(node_id)
    assert growing.voters() == set(growing.controllers)
    first[1].kill()
    changes.make(2)
    first[1].start()
    gone = growing.describe().current_voters[0]
    assert gone.replica_id == first[0]
    where = ["-i", str(gone.replica_id), "-d", uuid_text(gone.replica_directory_id)]
    printed = [growing.run(each, "remove-controller", *where, "--dry-run") for each in (APACHE, BARNABAS)]
    assert printed[0] == printed[1]
    growing.run(APACHE, "remove-controller", *where)
    until(lambda: growing.voters() == {node_id for node_id, _ in others}, "a voter is gone")
    leader = growing.describe().leader_id
    last = next(each for each in growing.describe().current_voters if each.replica_id == leader)
    growing.run(BARNABAS, "remove-controller", "-i", str(leader), "-d", uuid_text(last.replica_directory_id))
    until(lambda: growing.leader() != leader, "another controller is active")
    changes.make(3)
    until(changes.are_there, "all changes are there")
    assert_same_logs(growing)
    for node in growing.nodes:
        assert node.errors() == []


@pytest.mark.long
@pytest.mark.parametrize(
    "kinds", [[BARNABAS, BARNABAS, APACHE], [APACHE, BARNABAS, BARNABAS]], ids=["ours", "Apache's"]
)
def test_controllers_join_by_themselves(kinds: list[str], kafka_jars: Path, tmp_path: Path) -> None:
    growing = Growing(tmp_path, kinds)
    for node in growing.controllers.values():
        node.properties["controller.quorum.auto.join.enable"] = "true"
    try:
        growing.start()
        until(lambda: growing.voters() == set(growing.controllers), "all controllers are voters")
        changes = Changes(growing.bootstrap)
        changes.make(1)  # the others may not know the leader's newest voters until the next commit
        growing.controllers[growing.leader()].kill()
        changes.make(2)
        for node in growing.nodes:
            assert node.errors() == []
    finally:
        growing.end()


@pytest.mark.parametrize("first", [BARNABAS, APACHE])
def test_static_voters_become_those_of_the_log(first: str, kafka_jars: Path, tmp_path: Path) -> None:
    quorum = Quorum(tmp_path, [BARNABAS, APACHE, BARNABAS], dynamic=False)
    try:
        quorum.start()
        quorum.bring_to_lead(first)

        def upgrade() -> bool:
            words = ["--bootstrap-server", quorum.bootstrap, "upgrade", "--feature", "kraft.version=1"]
            ran = run_java(CURRENT, "org.apache.kafka.tools.FeatureCommand", *words)
            return ran.returncode == 0

        until(upgrade, "kraft.version is 1")  # refused until each voter has sent its directory id
        until(lambda: all(each.replica_directory_id != bytes(16) for each in quorum.describe().current_voters), "ids")
        quorum.controllers[quorum.leader()].kill()
        changes = Changes(quorum.bootstrap)
        changes.make(1)
        for node in quorum.controllers.values():
            node.start()
        changes.make(2)
        assert_same_logs(quorum)
        for node in quorum.nodes:
            assert node.errors() == []
    finally:
        quorum.end()


@pytest.mark.long
@pytest.mark.parametrize(("leading", "reading"), [(BARNABAS, APACHE), (APACHE, BARNABAS)])
def test_snapshots_of_either_are_read_by_the_other(
    leading: str, reading: str, kafka_jars: Path, tmp_path: Path
) -> None:
    quorum = Quorum(tmp_path, [BARNABAS, APACHE, BARNABAS], dynamic=False)
    for node in quorum.nodes:
        node.properties["metadata.log.max.record.bytes.between.snapshots"] = "5000"
    port, of_broker = free_port(), quorum.brokers[1].properties
    roles = {"node.id": "3", "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    reader = Node(reading, tmp_path / "reader", {**of_broker, **roles}, port)
    try:
        quorum.start()
        leader = quorum.bring_to_lead(leading)
        changes = Changes(quorum.bootstrap)
        numbers = iter(range(100))

        def has_snapshots() -> bool:
            changes.make(next(numbers))
            return len(list((leader.data / LOG).glob("*.checkpoint"))) > 1  # it may not offer the newest yet

        until(has_snapshots, "the leader has taken two snapshots")
        reader.start()
        changes.admin = AdminClient({"bootstrap.servers": reader.address, "log_level": 0})
        until(changes.are_there, "a new broker has all changes")
        assert quorum.controllers[quorum.leader()] is leader
        read = sorted((reader.data / LOG).glob("*.checkpoint"))[0]
        assert read.read_bytes() == (leader.data / LOG / read.name).read_bytes()
        assert_same_tree(read)
        reader.stop()
        for node in (*quorum.nodes, reader):
            assert node.errors() == []
    finally:
        reader.kill()
        quorum.end()
