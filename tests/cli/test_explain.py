import io
import json
import struct

import pytest

from barnabas.cli import main
from barnabas.cli.explain import described
from barnabas.config import definitions
from barnabas.errors import KafkaError
from barnabas.records.batch import Compression
from barnabas.records.builder import build_batch
from barnabas.wire.messages import declared
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.heartbeat import HeartbeatResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(["explain", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_message_of_a_version_shows_fields_and_code(run):
    code, out, _ = run("HeartbeatRequest", "4")
    assert code == 0
    assert out.startswith("HeartbeatRequest version 4, API key 12; versions 0-4, flexible 4+\n  group_id: string\n")
    assert "  group_instance_id: string  (or null)\n" in out
    assert "def write_HeartbeatRequest_v4(" in out
    assert "def read_HeartbeatRequest_v4(" in out


def test_a_field_that_a_version_does_not_have_is_not_shown(run):
    assert "topic_id" not in run("ProduceRequest", "9")[1].partition("def ")[0]
    assert "    topic_id: uuid\n" in run("ProduceRequest", "13")[1]


def test_without_a_version_each_field_says_which_have_it(run):
    _, out, _ = run("produce-request")
    assert "  transactional_id: string  (3+, or null)\n" in out
    assert "    topic_id: uuid  (13+)\n" in out
    assert "def " not in out


def test_a_bare_name_is_question_and_answer(run):
    _, out, _ = run("Heartbeat")
    assert "HeartbeatRequest, API key 12" in out
    assert "HeartbeatResponse, API key 12" in out


def test_json(run):
    printed = json.loads(run("TopicRecord", "--json")[1])
    assert (printed["message"], printed["api_key"], printed["versions"]) == ("TopicRecord", 2, "0")
    assert [field["name"] for field in printed["fields"]] == ["name", "topic_id"]


def test_every_message_can_be_explained_in_every_version():
    for message in declared().values():
        for version in (None, *range(message.versions.first, message.versions.last + 1)):
            assert described(message, version)["versions"] == str(message.versions)


@pytest.mark.parametrize("what", ["22", "ILLEGAL_GENERATION", "IllegalGeneration", "illegal-generation"])
def test_an_error_by_code_or_name(run, what):
    code, out, _ = run(what, "--json")
    printed = json.loads(out)
    assert code == 0
    assert (printed["error"], printed["code"], printed["retriable"]) == ("IllegalGeneration", 22, False)
    assert printed["meaning"]


def test_every_error_and_none(run):
    for number in (0, *KafkaError.by_code):
        code, out, _ = run("--", str(number))
        assert code == 0
        assert f"code:           {number}\n" in out


def test_a_config(run):
    _, out, _ = run("log.retention.minutes")
    assert "of:             broker\n" in out
    assert "topic's config: retention.ms\n" in out
    assert "has an effect:  yes\n" in out
    _, out, _ = run("retention.ms")
    assert "falls back to:  log.retention.ms, log.retention.minutes, log.retention.hours\n" in out
    assert "must be:        at least -1\n" in out


@pytest.mark.parametrize("name", ["share.isolation.level", "match", *list(definitions.BROKER)[::40]])
def test_configs_of_all_kinds(run, name):
    code, out, _ = run(name)
    assert code == 0
    assert out.startswith(f"config:         {name}\n")


def test_what_there_is_not(run):
    assert run("num.partition") == (
        1,
        "",
        "Error: There is no message, error code or config num.partition; did you mean num.partitions?\n",
    )
    assert run("ProduceRequest", "99")[2] == "Error: ProduceRequest has no version 99: there are 0-13\n"


# ---------------------------------------------------------------- frames


def produced(version=9):
    batch = build_batch(
        [(b"k", b"tea", 1000, [("h", b"x")]), (None, b"\xff\0", 1001)], compression=Compression.LZ4, producer_id=4
    )
    Topic = ProduceRequest.TopicProduceData
    partition = Topic.PartitionProduceData(index=0, records=batch)
    topic = Topic(name="orders", partition_data=[partition])
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[topic])
    return struct.pack(">hhih", 0, version, 7, 3) + b"abc\0" + request.encode(version=version)


def sized(frame):
    return len(frame).to_bytes(4) + frame


@pytest.mark.parametrize("given", [produced().hex(), sized(produced()).hex(" ", 4), "0x" + produced().hex(":")])
def test_a_request_with_its_records(run, given):
    code, out, err = run("--hex", given)
    assert (code, err) == (0, "")
    assert out.startswith("request: Produce\nversion: 9\ncorrelation_id: 7\nclient_id: abc\n")
    assert "    - name: orders\n" in out
    assert "codec: lz4\n" in out
    assert "value: tea\n" in out
    assert "value: 0xff00\n" in out
    assert 'headers: [["h", "x"]]\n' in out


def test_a_request_as_json(run):
    printed = json.loads(run("--hex", produced().hex(), "--json")[1])
    assert (printed["request"], printed["version"], printed["client_id"]) == ("Produce", 9, "abc")
    (batch,) = printed["fields"]["topic_data"][0]["partition_data"][0]["records"]
    assert (batch["count"], batch["crc_ok"], batch["producer_id"]) == (2, True, 4)
    assert [record["value"] for record in batch["records"]] == ["tea", {"hex": "ff00"}]


def test_a_damaged_batch_is_reported(run):
    frame = bytearray(produced())
    frame[-10] ^= 0xFF
    topic = json.loads(run("--hex", frame.hex(), "--json")[1])["fields"]["topic_data"][0]
    (batch,) = topic["partition_data"][0]["records"]
    assert batch["crc_ok"] is False


def test_a_response(run):
    frame = b"".join(HeartbeatResponse(error_code=27, throttle_time_ms=3).encode_frame(9, 4))
    code, out, _ = run("--hex", frame.hex(), "--api", "heartbeat", "--version", "4")
    assert code == 0
    assert out == (
        "response: Heartbeat\nversion: 4\ncorrelation_id: 9\nsize: 12\n  throttle_time_ms: 3\n  error_code: 27\n"
    )


def test_an_unsupported_version_of_api_versions_is_answered_in_version_0(run):
    frame = b"".join(ApiVersionsResponse(error_code=35, api_keys=[]).encode_frame(1, 0))
    printed = json.loads(run("--hex", frame.hex(), "--api", "18", "--version", "4", "--json")[1])
    assert (printed["version"], printed["fields"]["error_code"]) == (0, 35)


def test_frames_one_after_the_other_from_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO((sized(produced()) * 2).hex()))
    assert run("--hex", "-")[1].count("request: Produce") == 2


def test_tokens_are_hidden_by_default(run):
    body = SaslAuthenticateRequest(auth_bytes=b"\0admin\0xyzzy").encode(version=2)
    frame = struct.pack(">hhih", 36, 2, 1, -1) + b"\0" + body
    assert "auth_bytes: [hidden]" in run("--hex", frame.hex())[1].replace('"', "")
    assert b"xyzzy".hex() in run("--hex", frame.hex(), "--show-secrets")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Say what to explain"),
        (("Fetch", "--hex", "00"), "Say what to explain"),
        (("--hex", "xy"), "hexadecimal digits"),
        (("--hex", " "), "empty"),
        (("--hex", "0000000100000000"), "--api and --version"),
        (("--hex", "00", "--api", "Fetch"), "both --api and --version"),
        (("--hex", "00", "--api", "Nothing", "--version", "0"), "There is no API Nothing"),
        (("--hex", "00", "--api", "Fetch", "--version", "99"), "Fetch has no version 99"),
        (("--hex", "7fff000000000000ffff"), "no API has the key 32767"),
    ],
)
def test_what_cannot_be_a_frame_is_refused(run, arguments, words):
    code, out, err = run(*arguments)
    assert code != 0
    assert words in err
    assert out == ""
