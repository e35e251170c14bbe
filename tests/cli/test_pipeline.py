"""``barnabas pipeline``: options from the jobs' declarations, errors in one line, signals; nothing starts Spark."""

import os
import signal
import subprocess
import sys
import time

import click
import pytest

from barnabas.cli import main, pipeline
from barnabas.pipelines.jobs import JOBS
from barnabas.pipelines.jobs.options import described, option, options
from barnabas.pipelines.jobs.progress import Progress


@pytest.fixture
def run(capsys):
    def run(*arguments):
        code = main(["pipeline", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_help_lists_the_jobs(run):
    code, out, _ = run("--help")
    assert code == 0
    for name, entry in JOBS.items():
        assert f"\n  {name} " in out
        assert entry.help.split()[0] in out


@pytest.mark.parametrize("name", JOBS)
def test_each_job_helps_with_its_own_options_and_those_of_all(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert f"Usage: barnabas pipeline {name}" in out
    for flag in ("--once", "--checkpoint DIR", "--master URL", "--conf KEY=VALUE", "--verbose"):
        assert flag in out
    for each in described(JOBS[name].options_class()):
        assert each.option.argument or all(flag in out for flag in each.flags)


def test_help_imports_no_spark():
    program = (
        "import sys; from barnabas.cli import main; main(['pipeline', 'import', '--help']); "
        "sys.exit([name for name in ('pyspark', 'pyarrow', 'numpy', 'kafka') if name in sys.modules] or 0)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-job"], "No such command 'no-such-job'"),
        (["import"], "Missing option '--topic'"),
        (["import", "--topic", "t"], "either files or jdbc_url must be given"),
        (["import", "--topic", "t", "--files", "in", "--format", "xml"], "'xml' is not one of 'parquet', 'csv'"),
        (["import", "--topic", "t", "--files", "in", "--after", "archive"], "after archive and archive_to go together"),
        (["import", "--topic", "t", "--files", "in", "--header", "x"], "--header is 'x', but must be key=value"),
        (["import", "--topic", "t", "--files", "in", "--conf", "x"], "--conf is 'x', but must be key=value"),
        (["import", "--topic", "t", "--files", "in", "--command-config", "no.properties"], "no.properties"),
        (["import", "--topic", "t", "--files", "in"], "checkpoint is missing: give the directory"),
        (["import", "--topic", "t", "--jdbc-url", "jdbc:x"], "with jdbc_url, give either table or query"),
        (["import", "--topic", "t", "--jdbc-url", "jdbc:x", "--table", "t"], "increasing must name the column"),
        (
            ["import", "--topic", "t", "--jdbc-url", "jdbc:x", "--table", "t", "--increasing", "id", "--driver-jars",
             "no.jar", "--checkpoint", "c"],
            "driver_jars names no.jar, which is not a file",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(run, arguments, said):
    code, out, err = run(*arguments)
    assert code != 0
    assert out == ""
    assert said in err
    assert err.startswith("Error: ")
    assert err.count("\n") == 1


def test_a_missing_library_is_a_hint():
    program = (
        "import sys; sys.modules['pyspark'] = None; from barnabas.cli import main; "
        "sys.exit(main('pipeline import --topic t --files in --checkpoint c'.split()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    assert ran.stderr == (
        "Error: pyspark is not installed; it is part of the extra spark: pip install 'barnabas[spark]'\n"
    )


def test_a_missing_java_is_a_hint(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    code, _, err = run("import", "--topic", "t", "--files", "in", "--checkpoint", "c")
    assert code == 1
    assert "Spark needs Java 17 or later" in err
    assert "Traceback" not in err


def test_the_output_of_a_java_that_does_not_start_is_shown(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'Error: it needs a newer Java' >&2\nexit 1\n")
    java.chmod(0o755)
    command = [
        sys.executable,
        "-m",
        "barnabas",
        "pipeline",
        *["import", "--topic", "t", "--files", "in", "--checkpoint", "c"],
    ]
    environment = {**os.environ, "JAVA_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 1
    log, error = ran.stderr.splitlines()
    assert log.startswith("Spark's log is in ")
    assert error == "Error: Java did not start: Error: it needs a newer Java"


@options
class Sample:
    """All kinds of options."""

    to: str = option("Where `to`.")
    kind: str = option("Which.", default="a", choices=("a", "b"))
    count: int | None = option("How many.", default=None)
    share: float = option("How much.", default=0.5)
    quick: bool = option("Whether.", default=True)
    loud: bool = option("Whether.", default=False)
    sure: bool | None = option("Whether, or whatever is meant.", default=None)
    names: tuple[str, ...] = option("Which ones.", default=())
    extra: dict[str, str] = option("What else.", default_factory=dict)
    client: dict[str, str] = option("A file.", default_factory=dict, file=True, flags=("--command-config",))


def parsed(arguments):
    declared = list(described(Sample))
    command = click.Command("x", params=[pipeline.parameter_of(each) for each in declared])
    with command.make_context("x", list(arguments)) as context:
        return Sample(**pipeline.values(declared, context.params))


def test_options_become_what_their_class_takes(tmp_path):
    properties = tmp_path / "client.properties"
    properties.write_text("security.protocol=SSL\nclient.id = me\n")
    assert parsed(["--to", "x"]) == Sample(to="x")
    assert parsed(["--to", "x", "--sure"]) == Sample(to="x", sure=True)
    given = (
        "--to x --kind b --count 3 --share 1 --no-quick --loud --no-sure --names p --names q --extra k=v=w --extra l="
    )
    assert parsed([*given.split(), "--command-config", str(properties)]) == Sample(
        to="x",
        kind="b",
        count=3,
        share=1.0,
        quick=False,
        loud=True,
        sure=False,
        names=("p", "q"),
        extra={"k": "v=w", "l": ""},
        client={"security.protocol": "SSL", "client.id": "me"},
    )


def test_a_batch_is_a_line():
    assert (
        pipeline.line_of(Progress("import", 3, 12_345, 2.0, 67))
        == "import: batch 3: 12,345 rows, 6,172 rows/s, 67 behind"
    )
    assert pipeline.line_of(Progress("import", 0, 1, 0.5, None)) == "import: batch 0: 1 rows, 2 rows/s"


STOPPED = """
import sys, threading, time
from barnabas.cli.pipeline import stop_on_signals
with stop_on_signals() as stop:
    print("ready", flush=True)
    stop.wait(30)
    print("stopped", flush=True)
    if "stubborn" in sys.argv:
        time.sleep(30)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_job(number):
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout.readline() == "ready\n"
        os.kill(ran.pid, number)
        out, err = ran.communicate(timeout=20)
    assert (ran.returncode, out) == (0, "stopped\n")
    assert "Stopping after the current batch" in err


def test_a_second_interrupt_ends_the_process():
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED, "stubborn"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout.readline() == "ready\n"
        begun = time.monotonic()
        os.kill(ran.pid, signal.SIGINT)
        assert ran.stdout.readline() == "stopped\n"
        os.kill(ran.pid, signal.SIGINT)
        assert ran.wait(20) == 130
    assert time.monotonic() - begun < 20
