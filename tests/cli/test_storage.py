import pytest

from barnabas.cli import main
from barnabas.cluster.formatting import FormatError, Voter, initial_controllers, scram_credential
from barnabas.cluster.quorum.snapshots import decode_snapshot
from barnabas.config.endpoints import Endpoint
from barnabas.testing import Broker
from barnabas.uuids import uuid_of


@pytest.fixture
def config(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(f"log.dirs={tmp_path}/a,{tmp_path}/b\n")
    return str(file)


def test_a_directory_is_formatted_told_and_served(tmp_path, config, capsys):
    words = ["-t", "my-cluster", "-c", config, "-r", "4.0", "-S", "SCRAM-SHA-256=[name=alice,password=secret]"]
    assert main(["storage", "info", "-c", config]) == 1
    assert (
        capsys.readouterr().out == f"Found problems:\n  {tmp_path}/a does not exist\n  {tmp_path}/b does not exist\n\n"
    )
    assert main(["storage", "format", *words]) == 0
    assert capsys.readouterr().out == (
        f"Formatting data directory {tmp_path}/b with metadata.version 4.0-IV3.\n"
        f"Formatting metadata directory {tmp_path}/a with metadata.version 4.0-IV3.\n"
    )
    assert main(["storage", "info", "-c", config]) == 0
    assert "cluster.id=my-cluster" in capsys.readouterr().out
    assert main(["storage", "format", *words]) == 1
    assert "is already formatted" in capsys.readouterr().err
    with Broker({"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}, on_disk=True) as broker:
        broker.create_topic("t")
        assert broker._server.broker.cluster_id == "my-cluster"


def test_a_lone_node_formats_itself(tmp_path):
    with Broker({"log.dirs": f"{tmp_path}/a"}, on_disk=True):
        pass
    assert decode_snapshot((tmp_path / "a" / "bootstrap.checkpoint").read_bytes()).records


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SCRAM-SHA-1=[name=a,password=secret]",
        "SCRAM-SHA-256=name=a,password=secret",
        "SCRAM-SHA-256=[password=secret]",
        "SCRAM-SHA-256=[name=a]",
        "SCRAM-SHA-256=[name=a,password=secret,saltedpassword=YQ==,salt=YQ==]",
        "SCRAM-SHA-256=[name=a,saltedpassword=YQ==]",
        "SCRAM-SHA-256=[name=a,password=secret,salt=!]",
        "SCRAM-SHA-256=[name=a,password=secret,iterations=4095]",
        "SCRAM-SHA-256=[name=a,password=secret,other=1]",
        "SCRAM-SHA-256=[name=a,name=b,password=secret]",
    ],
)
def test_what_is_no_credential_is_refused_without_the_password(text):
    with pytest.raises(FormatError) as refused:
        scram_credential(text, bytes)
    assert "secret" not in str(refused.value)


def test_a_credential():
    record = scram_credential('SCRAM-SHA-512=[name="a,b",password=secret,iterations=5000]', bytes)
    assert (record.name, record.mechanism, record.iterations, record.salt) == ("a,b", 2, 5000, bytes(24))
    assert (len(record.stored_key), len(record.server_key)) == (64, 64)


LISTENER = Endpoint("CONTROLLER", "", 0, "PLAINTEXT")
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"


def test_voters():
    assert initial_controllers(f"8@[::1]:8083:{DIRECTORY}, 7@example.com:8082:{DIRECTORY},", LISTENER) == [
        Voter(7, uuid_of(DIRECTORY), [LISTENER._replace(host="example.com", port=8082)]),
        Voter(8, uuid_of(DIRECTORY), [LISTENER._replace(host="::1", port=8083)]),
    ]


@pytest.mark.parametrize(
    "text",
    ["", ",", "x", "7@h:1", "7@h:x:" + DIRECTORY, "7@h:1:zz", "-7@h:1:" + DIRECTORY, "7@[::1:99:" + DIRECTORY,
     "x@h:99:" + DIRECTORY, "7@h:65536:" + DIRECTORY, f"7@h:1:{DIRECTORY},7@i:1:{DIRECTORY}"],
)  # fmt: skip
def test_what_are_no_voters(text):
    with pytest.raises(FormatError):
        initial_controllers(text, LISTENER)
