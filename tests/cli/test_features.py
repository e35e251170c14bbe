"""``barnabas features``: levels are shown, raised and lowered."""

import json

import pytest

from barnabas.cli import main
from barnabas.testing import Broker

LEVELS = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 0,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def levels(barnabas):
    return {each["feature"]: each["finalized"] for each in barnabas("features", "describe", "--json").json}


def test_describe(barnabas):
    described = barnabas("features", "describe")
    assert (described.code, described.err) == (0, "")
    head, _, *rows = (line.split() for line in described.lines)
    assert head == ["FEATURE", "SUPPORTED", "MIN", "SUPPORTED", "MAX", "FINALIZED", "EPOCH"]
    assert [row[0] for row in rows] == sorted(LEVELS)
    by_name = {row[0]: row[1:4] for row in rows}
    assert by_name["metadata.version"] == ["3.3-IV3", "4.3-IV0", "4.3-IV0"]
    assert by_name["transaction.version"] == ["0", "2", "2"]
    assert by_name["kraft.version"] == ["0", "1", "0"]
    assert len({row[4] for row in rows}) == 1


def test_describe_for_programs(barnabas):
    described = {each.pop("feature"): each for each in barnabas("features", "describe", "--json").json}
    assert {name: each["finalized"] for name, each in described.items()} == LEVELS
    epoch = described["metadata.version"]["epoch"]
    wanted = {"supported_min": 7, "supported_max": 30, "finalized": 30, "epoch": epoch}
    assert described["metadata.version"] == wanted


def test_down_and_up(barnabas):
    down = barnabas("features", "downgrade", "--feature", "transaction.version=1", "--feature", "share.version=0")
    assert down == (0, "share.version was downgraded to 0.\ntransaction.version was downgraded to 1.\n", "")
    assert levels(barnabas) == {**LEVELS, "transaction.version": 1, "share.version": 0}
    up = barnabas("features", "upgrade", "--feature", "transaction.version=2", "--json")
    assert up.json == [{"feature": "transaction.version", "level": 2}]
    assert levels(barnabas) == {**LEVELS, "share.version": 0}


def test_disable(barnabas):
    done = barnabas("features", "disable", "--feature", "transaction.version", "--feature", "group.version", "--unsafe")
    assert done == (0, "group.version was disabled.\ntransaction.version was disabled.\n", "")
    assert levels(barnabas) == {**LEVELS, "transaction.version": 0, "group.version": 0}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["downgrade", "--feature", "transaction.version=1"], "transaction.version can be downgraded to 1.\n"),
        (["disable", "--feature", "group.version"], "group.version can be disabled.\n"),
        (["upgrade", "--feature", "transaction.version=2"], "transaction.version can be upgraded to 2.\n"),
    ],
)
def test_validate_only(barnabas, arguments, said):
    assert barnabas("features", *arguments, "--dry-run") == (0, said, "")
    assert levels(barnabas) == LEVELS


def test_a_release_stands_for_all_levels_that_are_not_there_yet(barnabas):
    barnabas("features", "disable", "--feature", "transaction.version", "--feature", "share.version")
    planned = barnabas("features", "upgrade", "--release-version", "4.3", "--dry-run", "--json").json
    assert {each["feature"]: each["level"] for each in planned} == {
        "kraft.version": 1, "metadata.version": 30, "share.version": 1, "transaction.version": 2,
    }  # fmt: skip


def test_an_older_release(capsys):
    with Broker(features={"metadata.version": 28}) as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        assert main(["features", *where, "downgrade", "--release-version", "4.0"]) == 0
        lowered = {"eligible.leader.replicas.version": 0, "metadata.version": 25, "share.version": 0}
        said = "".join(f"{name} was downgraded to {level}.\n" for name, level in lowered.items())
        assert capsys.readouterr() == (said, "")
        assert main(["features", *where, "upgrade", "--metadata", "4.2-IV0"]) == 0
        assert capsys.readouterr() == ("metadata.version was upgraded to 28.\n", "")


def test_of_a_release_only_the_features_that_the_broker_has(capsys):
    with Broker(compatible_with="4.0", features={"transaction.version": 1}) as broker:
        where = ["--bootstrap-server", broker.bootstrap_servers]
        assert main(["features", *where, "upgrade", "--release-version", "4.3", "--dry-run", "--json"]) == 0
        planned = {each["feature"]: each["level"] for each in json.loads(capsys.readouterr().out)}
        assert planned == {"kraft.version": 1, "metadata.version": 30, "transaction.version": 2}


FAILED = "InvalidUpdateVersion: The update failed for all features since the following feature had an error: "


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["upgrade", "--feature", "nope=1"],
            f"{FAILED}Invalid update version 1 for feature nope. Local controller 1 does not support this feature.",
        ),
        (
            ["upgrade", "--feature", "transaction.version=1"],
            f"{FAILED}Invalid update version 1 for feature transaction.version. Can't downgrade ",
        ),
        (
            ["downgrade", "--release-version", "4.0", "--unsafe"],
            f"{FAILED}Unsupported metadata.version downgrade from 30 to 25. Unsafe metadata downgrade is not supported",
        ),
        (["upgrade", "--feature", "transaction.version=32768"], "'h' format requires -32768 <= number <= 32767"),
        (["upgrade", "--release-version", "2.8"], "--release-version is '2.8', but must be one of 3.3-IV3, "),
        (["upgrade", "--metadata", "2.8"], "--metadata is '2.8', but must be one of 3.3-IV3, "),
    ],
)
def test_what_cannot_be(barnabas, arguments, said):
    outcome = barnabas("features", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"Error: {said}")
    assert outcome.err.count("\n") == 1
    assert levels(barnabas) == LEVELS


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["upgrade"], "One of --feature and --release-version must be given"),
        (["downgrade"], "One of --feature and --release-version must be given"),
        (["disable"], "--feature must be given"),
        (["upgrade", "--feature", "transaction.version"], "--feature is 'transaction.version', but must be key=value"),
        (
            ["upgrade", "--feature", "transaction.version=x"],
            "--feature is 'transaction.version=x', but the level must be a ",
        ),
        (["upgrade", "--feature", "metadata.version=30", "--metadata", "4.3"], "metadata.version is given twice, "),
        (
            ["upgrade", "--release-version", "4.3", "--feature", "group.version=1"],
            "--release-version cannot be combined",
        ),
        (["upgrade", "--release-version", "4.3", "--metadata", "4.3"], "--release-version cannot be combined"),
    ],
)
def test_mistakes(barnabas, arguments, said):
    outcome = barnabas("features", *arguments)
    assert outcome.code == 2
    assert outcome.err.startswith(f"Error: {said}")


def test_the_address_may_stand_behind_the_verb(cli_broker, capsys):
    assert main(["features", "describe", "--bootstrap-server", cli_broker.bootstrap_servers]) == 0
    assert "group.version" in capsys.readouterr().out
