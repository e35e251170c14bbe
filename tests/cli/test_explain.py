import json

import pytest

from barnabas.cli import main
from barnabas.cli.explain import all_messages, described
from barnabas.config import definitions
from barnabas.errors import KafkaError


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
    told = json.loads(run("TopicRecord", "--json")[1])
    assert (told["message"], told["api_key"], told["versions"]) == ("TopicRecord", 2, "0")
    assert [field["name"] for field in told["fields"]] == ["name", "topic_id"]


def test_every_message_can_be_explained_in_every_version():
    for message in all_messages():
        for version in (None, *range(message.versions.first, message.versions.last + 1)):
            assert described(message, version)["versions"] == str(message.versions)


@pytest.mark.parametrize("what", ["22", "ILLEGAL_GENERATION", "IllegalGeneration", "illegal-generation"])
def test_an_error_by_code_or_name(run, what):
    code, out, _ = run(what, "--json")
    told = json.loads(out)
    assert code == 0
    assert (told["error"], told["code"], told["retriable"]) == ("IllegalGeneration", 22, False)
    assert told["meaning"]


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
