"""Names, help and usage errors of all commands."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from barnabas import __version__
from barnabas.cli import commands, main


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_help_lists_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for name in commands.COMMANDS:
        assert f"\n  {name} " in out


def test_without_arguments_it_helps(run):
    code, out, _ = run()
    assert code == 0
    assert "Commands:" in out


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_each_command_helps(name):
    result = CliRunner().invoke(commands.barnabas, [name, "--help"])
    assert result.exit_code == 0
    assert f"Usage: barnabas {name}" in result.output


def test_the_version(run):
    assert run("--version") == (0, f"barnabas, version {__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["serve", "--no-such-option"],
        ["serve", "one.properties", "two.properties"],
        ["serve", "--override"],
        ["topics"],
        ["topics", "--create"],
        ["topics", "--alter", "--topic", "t", "--partitions", "0"],
        ["configs", "--describe"],
        ["configs", "--topic", "t"],
        ["consume"],
        ["consume", "--topic", "t", "--include", "t"],
        ["consume", "--topic", "t", "--offset", "3"],
        ["consume", "--topic", "t", "--partition", "0", "--group", "g"],
        ["produce"],
        ["produce", "--topic", "t", "--property", "no-equals"],
        ["groups", "--list", "--no-such-option"],
        ["groups", "--describe"],
        ["groups"],
        ["explain"],
    ],
)
def test_a_mistake_is_one_line_and_code_2(run, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_nobody_there_is_one_line_and_code_1(run, monkeypatch):
    monkeypatch.setattr("barnabas.cli.client.BOOTSTRAP_TIMEOUT_MS", 300)
    code, out, err = run("topics", "--list", "--bootstrap-server", "127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_a_missing_client_is_a_hint_at_the_extra(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    code, _, err = run("topics", "--list")
    assert code == 1
    assert err == "Error: rich is not installed; it is part of the extra cli: pip install 'barnabas[cli]'\n"


def test_a_broken_pipe_is_nothing_to_talk_about():
    command = [sys.executable, "-m", "barnabas", "explain", "FetchResponse", "17"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (1, b"")


def test_serve_imports_neither_click_nor_a_client():
    program = (
        "import sys, barnabas.cli.serve; print(*sorted({'click', 'rich', 'kafka', 'argparse'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "\n"
