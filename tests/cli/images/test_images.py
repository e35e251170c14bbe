"""The properties that each image makes from its variables."""

import stat

import pytest

from barnabas.cli import main
from barnabas.cli.images import apache, bitnami, confluent
from barnabas.cli.images.variables import ImageError

CLUSTER = {"CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw", "KAFKA_PROCESS_ROLES": "broker,controller"}


def test_variables_of_apache_kafka(tmp_path):
    found, said = apache.properties(
        {
            **CLUSTER,
            "KAFKA_NODE_ID": "1",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://host:9094",
            "KAFKA_LISTENER_NAME_MY__LISTENER_SSL_CLIENT_AUTH": "none",
            "KAFKA_LISTENER_NAME_A_SCRAM___SHA___256_SASL_JAAS_CONFIG": "x",
            "KAFKA_HEAP_OPTS": "-Xmx1G",
            "KAFKA_LOG4J_LOGGERS": "kafka=DEBUG",
            "PATH": "/bin",
        },
        tmp_path,
    )
    assert said == ["Running in KRaft mode..."]
    assert found == {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://:9092,CONTROLLER://host:9094",
        "listener.name.my_listener.ssl.client.auth": "none",
        "listener.name.a.scram-sha-256.sasl.jaas.config": "x",
    }


def test_listeners_follow_from_advertised_ones(tmp_path):
    found, _ = apache.properties({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,X://[::1]:1"}, tmp_path)
    assert found["listeners"].startswith("PLAINTEXT://0.0.0.0:9092,X://0.0.0.0:")


def test_a_list_that_ends_with_a_comma(tmp_path):
    found, _ = confluent.properties({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,"}, tmp_path)
    assert found["advertised.listeners"] == "PLAINTEXT://kafka:9092"


@pytest.mark.parametrize(
    ("image", "variables", "said"),
    [
        (apache, {"KAFKA_PROCESS_ROLES": "broker"}, "CLUSTER_ID environment variable not set"),
        (confluent, {}, "KAFKA_ADVERTISED_LISTENERS environment variable not set"),
        (confluent, {"KAFKA_ADVERTISED_LISTENERS": "A://b:1", "KAFKA_PORT": "1"}, "port is deprecated. Please use"),
        (apache, {"KAFKA_ADVERTISED_LISTENERS": "SSL://b:1"}, "KAFKA_SSL_KEYSTORE_FILENAME environment variable not"),
        (apache, {"KAFKA_ADVERTISED_LISTENERS": "SASL_PLAINTEXT://b:1"}, "KAFKA_OPTS environment variable not set"),
        (
            apache,
            {"KAFKA_ADVERTISED_LISTENERS": "A://b:1", **CLUSTER, "KAFKA_PROCESS_ROLES": "controller"},
            "KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.",
        ),
        (bitnami, {"KAFKA_CFG_LISTENERS": "SSL://:1"}, "In order to configure the TLS encryption for Kafka with JKS"),
        (
            bitnami,
            {"KAFKA_CFG_LISTENERS": "SASL_PLAINTEXT://:1", "KAFKA_CLIENT_USERS": "a,b"},
            "Specify the same number of passwords",
        ),
    ],
)
def test_what_ends_the_start(image, variables, said, tmp_path):
    with pytest.raises(ImageError) as error:
        image.properties(variables, tmp_path)
    assert str(error.value).startswith(said)


def test_stores_and_their_passwords_are_files_of_the_secrets(tmp_path):
    secrets = tmp_path / "etc/kafka/secrets"
    secrets.mkdir(parents=True)
    for name in ("keystore", "key", "store"):
        (secrets / name).write_text(f"{name}-secret\n")
    found, said = apache.properties(
        {
            "KAFKA_ADVERTISED_LISTENERS": "SSL://b:1",
            "KAFKA_SSL_KEYSTORE_FILENAME": "keystore",
            "KAFKA_SSL_KEY_CREDENTIALS": "key",
            "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store",
        },
        tmp_path,
    )
    assert said == ["SSL is enabled."]
    assert found["ssl.keystore.location"] == str(secrets / "keystore")
    assert found["ssl.key.password"] == "key-secret"
    assert found["ssl.keystore.password"] == "store-secret"


def test_a_node_with_zookeeper_is_its_own_controller(tmp_path):
    found, said = confluent.properties(
        {
            "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://host:9092",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
            "KAFKA_REST_BOOTSTRAP_SERVERS": "localhost:9092",
        },
        tmp_path,
    )
    assert found == {
        "broker.id": "1",
        "advertised.listeners": "PLAINTEXT://host:9092",
        "listeners": "PLAINTEXT://0.0.0.0:9092",
        "log.dirs": str(tmp_path / "var/lib/kafka/data"),
    }
    assert "without ZooKeeper" in said[0]


def test_variables_of_bitnami(tmp_path):
    found, _ = bitnami.properties(
        {
            "ALLOW_PLAINTEXT_LISTENER": "yes",
            "KAFKA_CFG_NODE_ID": "0",
            "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
            "KAFKA_CFG_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH": "none",
            "KAFKA_BROKER_ID": "7",
            "KAFKA_HEAP_OPTS": "-Xmx1G",
        },
        tmp_path,
    )
    assert found == {
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "log.dirs": str(tmp_path / "bitnami/kafka/data"),
        "node.id": "0",
        "broker.id": "7",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.ssl.client.auth": "none",
    }


def test_users_of_bitnami(tmp_path):
    found, _ = bitnami.properties(
        {
            "KAFKA_CFG_LISTENERS": "CLIENT://:9092,INTERNAL://:9093,CONTROLLER://:9094",
            "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT,"
            "CONTROLLER:SASL_PLAINTEXT",
            "KAFKA_CFG_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
            "KAFKA_CFG_SASL_MECHANISM_CONTROLLER_PROTOCOL": "PLAIN",
            "KAFKA_CFG_SASL_ENABLED_MECHANISMS": "PLAIN,SCRAM-SHA-256",
            "KAFKA_CLIENT_USERS": "ann,bob",
            "KAFKA_CLIENT_PASSWORDS": "1;2",
        },
        tmp_path,
    )
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    assert found["listener.name.client.plain.sasl.jaas.config"] == f'{plain} user_ann="1" user_bob="2";'
    assert found["listener.name.client.scram-sha-256.sasl.jaas.config"].endswith("ScramLoginModule required;")
    assert found["listener.name.internal.plain.sasl.jaas.config"] == (
        f'{plain} username="user" password="bitnami" user_ann="1" user_bob="2" user_user="bitnami";'
    )
    assert found["listener.name.controller.plain.sasl.jaas.config"] == (
        f'{plain} username="controller_user" password="bitnami" user_controller_user="bitnami";'
    )
    assert found["listener.name.controller.sasl.enabled.mechanisms"] == "PLAIN"


def test_pem_files_of_bitnami(tmp_path):
    certs = tmp_path / "bitnami/kafka/config/certs"
    certs.mkdir(parents=True)
    for name in ("kafka.keystore.pem", "kafka.keystore.key", "kafka.truststore.pem"):
        (certs / name).write_text(f"-----{name}-----\nAA\n")
    found, _ = bitnami.properties({"KAFKA_CFG_LISTENERS": "SSL://:1", "KAFKA_TLS_TYPE": "PEM"}, tmp_path)
    assert found["ssl.keystore.key"] == "-----kafka.keystore.key-----\\nAA"
    assert found["ssl.truststore.certificates"] == "-----kafka.truststore.pem-----\\nAA"


class TestTheFile:
    @pytest.fixture(autouse=True)
    def environment(self, monkeypatch):
        for name, value in {"KAFKA_NODE_ID": "3", "KAFKA_CFG_NODE_ID": "4"}.items():
            monkeypatch.setenv(name, value)

    def test_only_its_owner_may_read_it(self, tmp_path):
        assert main(["image-properties", "apache", "--output", str(tmp_path / "out")]) == 0
        assert "node.id=3\n" in (tmp_path / "out").read_text()
        assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600

    @pytest.mark.parametrize(("image", "node"), [("apache", "3"), ("bitnami", "9")])
    def test_a_mounted_file(self, image, node, tmp_path):
        (tmp_path / "mounted").write_text("node.id=9")
        main(["image-properties", image, "--mounted", str(tmp_path / "mounted"), "--output", str(tmp_path / "out")])
        lines = [line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("node.id=")]
        assert lines[-1] == f"node.id={node}"

    def test_the_default_file(self, tmp_path, monkeypatch):
        for name in ("KAFKA_NODE_ID", "KAFKA_CFG_NODE_ID"):
            monkeypatch.delenv(name)
        (tmp_path / "default").write_text("node.id=8")
        main(["image-properties", "apache", "--default", str(tmp_path / "default"), "--output", str(tmp_path / "out")])
        assert (tmp_path / "out").read_text() == "node.id=8"

    def test_an_error_is_one_line(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setenv("KAFKA_PROCESS_ROLES", "broker")
        assert main(["image-properties", "apache", "--output", str(tmp_path / "out")]) == 1
        assert capsys.readouterr().err == "Error: CLUSTER_ID environment variable not set\n"
