"""How the Testcontainers libraries use images of Kafka: variables, the command, the script that they copy into the
container once its ports are known, and the line of the log that they wait for.

Knows nothing of our image. Facts are from each library's Kafka module: Java 2.0.2, Python 4.15.0, Node 12.2.0;
Go's, .NET's and the older ones are as of 2025.
"""

from collections.abc import Mapping
from typing import NamedTuple

WAIT = "while [ ! -f {script} ]; do sleep 0.1; done; "
KRAFT_CLUSTER = "4L6g3nShT-eMCtK--X86sw"
RUNNING = r"Transitioning from RECOVERY to RUNNING"
SHARED = {
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str((1 << 63) - 1),
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
PLAIN = {"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT"}
COMBINED = {
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
}
ZOOKEEPER = """echo 'clientPort=2181' > zookeeper.properties
echo 'dataDir=/var/lib/zookeeper/data' >> zookeeper.properties
zookeeper-server-start zookeeper.properties &
"""
FORMAT = r"""sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
echo 'kafka-storage format --ignore-formatted -t {cluster} -c /etc/kafka/kafka.properties' \
  >> /etc/confluent/docker/configure
"""


class Library(NamedTuple):
    """One library's use of one image. Texts have ``{port}``, ``{broker}``, ``{controller}`` and ``{host}``."""

    variables: Mapping[str, str]
    command: tuple[str, ...]
    script: str
    text: str
    waits_for: str = RUNNING
    mode: int = 0o777
    cluster: str | None = KRAFT_CLUSTER


def _waiting(script: str, run: str = "", *, shell: tuple[str, ...] = ("sh", "-c")) -> tuple[str, ...]:
    return (*shell, WAIT.replace("{script}", script) + run + script)


_JAVA = {
    **SHARED,
    **COMBINED,
    "CLUSTER_ID": KRAFT_CLUSTER,
    "KAFKA_LISTENERS": "PLAINTEXT://:{port},BROKER://:{broker},CONTROLLER://:{controller}",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
}
_ADVERTISED = "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{port},BROKER://{host}:{broker}\n"
_STARTER = "/tmp/testcontainers_start.sh"
_WITH_ZOOKEEPER = {
    **SHARED,
    **PLAIN,
    "KAFKA_BROKER_ID": "1",
    "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:{port},BROKER://0.0.0.0:{broker}",
}
_ALL_INTERFACES = "PLAINTEXT://0.0.0.0:{port},BROKER://0.0.0.0:{broker},CONTROLLER://0.0.0.0:{controller}"
_NODE = {
    **SHARED,
    "KAFKA_BROKER_ID": "1",
    "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
    "KAFKA_ADVERTISED_LISTENERS": "BROKER://localhost:{broker}",
}

LIBRARIES: dict[str, Library] = {
    "java, apache/kafka": Library(
        _JAVA, _waiting(_STARTER), _STARTER, f"#!/bin/bash\n{_ADVERTISED}/etc/kafka/docker/run \n"
    ),
    "java, cp-kafka": Library(
        _JAVA, _waiting(_STARTER), _STARTER, f"#!/bin/bash\n{_ADVERTISED}/etc/confluent/docker/run \n"
    ),
    "java, cp-kafka with ZooKeeper": Library(
        _WITH_ZOOKEEPER,
        _waiting(_STARTER),
        _STARTER,
        f"#!/bin/bash\n{_ADVERTISED}{ZOOKEEPER}echo '' > /etc/confluent/docker/ensure \n/etc/confluent/docker/run \n",
        waits_for=r"\[KafkaServer id=\d+\] started",
        cluster=None,
    ),
    "python with KRaft": Library(
        {
            **{name: value for name, value in SHARED.items() if "TRANSACTION" not in name},
            **COMBINED,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000",
            "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
            "KAFKA_LISTENERS": _ALL_INTERFACES,
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        _waiting("/tc-start.sh", "sh "),
        "/tc-start.sh",
        "#!/bin/bash\n" + FORMAT.format(cluster="MkU3OEVBNTcwNTJENDM2Qk")
        + "export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:{port},BROKER://$(hostname -i):{broker}\n"
        + ". /etc/confluent/docker/bash-config\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        waits_for=r".*Kafka Server started.*",
        mode=0o644,
        cluster="MkU3OEVBNTcwNTJENDM2Qk",
    ),
    "python with ZooKeeper": Library(
        {name: value for name, value in _WITH_ZOOKEEPER.items() if name != "KAFKA_ZOOKEEPER_CONNECT"},
        _waiting("/tc-start.sh", "sh "),
        "/tc-start.sh",
        f"#!/bin/bash\n{ZOOKEEPER}export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n{_ADVERTISED}"
        ". /etc/confluent/docker/bash-config\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        waits_for=r".*\[KafkaServer id=\d+\] started.*",
        mode=0o644,
        cluster=None,
    ),
    "go, confluent-local": Library(
        {
            **SHARED,
            **COMBINED,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LISTENERS": _ALL_INTERFACES,
            "KAFKA_REST_BOOTSTRAP_SERVERS": _ALL_INTERFACES,
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        _waiting("/usr/sbin/testcontainers_start.sh", "bash "),
        "/usr/sbin/testcontainers_start.sh",
        "#!/bin/bash\nsource /etc/confluent/docker/bash-config\n" + _ADVERTISED
        + "echo Starting Kafka KRaft mode\n" + FORMAT.format(cluster='"$(kafka-storage random-uuid)"')
        + "echo '' > /etc/confluent/docker/ensure\n/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        mode=0o755,
        cluster=None,
    ),
    "node with KRaft": Library(
        {
            **_NODE,
            **COMBINED,
            "CLUSTER_ID": KRAFT_CLUSTER,
            "KAFKA_LISTENERS": _ALL_INTERFACES,
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        ("sh", "-c", "echo 'Waiting for script...'; " + WAIT.replace("{script}", _STARTER) + _STARTER),
        _STARTER,
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=BROKER://{host}:{broker},PLAINTEXT://localhost:{port}\n"
        "/etc/confluent/docker/run \n",
        waits_for="",
    ),
    "node, older, with KRaft": Library(
        {
            **_NODE,
            **COMBINED,
            "CLUSTER_ID": KRAFT_CLUSTER,
            "KAFKA_LISTENERS": _ALL_INTERFACES,
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:{controller}",
        },
        _waiting("/testcontainers_start.sh"),
        "/testcontainers_start.sh",
        f"#!/bin/bash\n{_ADVERTISED}echo '' > /etc/confluent/docker/ensure \n"
        + FORMAT.format(cluster=f'"{KRAFT_CLUSTER}"') + "/etc/confluent/docker/run \n",
        waits_for="",
    ),
    "node with ZooKeeper": Library(
        {
            **_NODE,
            **PLAIN,
            "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
            "KAFKA_LISTENERS": _WITH_ZOOKEEPER["KAFKA_LISTENERS"],
        },
        _waiting("/testcontainers_start.sh"),
        "/testcontainers_start.sh",
        f"#!/bin/bash\n{_ADVERTISED}echo '' > /etc/confluent/docker/ensure \n{ZOOKEEPER}/etc/confluent/docker/run \n",
        waits_for="",
        cluster=None,
    ),
    ".NET, apache/kafka": Library(
        {**_JAVA, "KAFKA_LISTENERS": _ALL_INTERFACES, "KAFKA_BROKER_ID": "1"},
        _waiting("/testcontainers.sh", shell=("/bin/sh", "-c")),
        "/testcontainers.sh",
        f"#!/bin/bash\n{_ADVERTISED.rstrip()},\nexec /etc/kafka/docker/run",
        waits_for=r"\[KafkaServer id=\d+\] started|Kafka Server started",
        mode=0o755,
    ),
    ".NET, cp-kafka with ZooKeeper": Library(
        _WITH_ZOOKEEPER,
        _waiting("/testcontainers.sh", shell=("/bin/sh", "-c")),
        "/testcontainers.sh",
        f"#!/bin/bash\n{ZOOKEEPER}{_ADVERTISED.rstrip()},\n"
        "echo '' > /etc/confluent/docker/ensure\nexec /etc/confluent/docker/run",
        waits_for=r"\[KafkaServer id=\d+\] started",
        mode=0o755,
        cluster=None,
    ),
}  # fmt: skip
