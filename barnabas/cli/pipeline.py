"""``barnabas pipeline``: runs the jobs on Spark, with the options that each job declares.

Knows nothing of what a job does. Spark is imported when a job runs, not when its help is printed.
"""

import contextlib
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import click

from barnabas.cli.client import pairs, read_properties
from barnabas.pipelines.jobs import JOBS, Entry
from barnabas.pipelines.jobs.options import REQUIRED, Described, described

EXTRA = {"pyspark", "pyarrow", "numpy", "pandas", "kafka", "rich", "fastavro", "google", "deltalake"}
INTERRUPTED = 130

COMMON: list[click.Parameter] = [
    click.Option(["--once"], is_flag=True, help="Process the existing records, then stop; otherwise run until Ctrl-C."),
    click.Option(
        ["--checkpoint"], metavar="DIR",
        help="The checkpoint that the job continues from; each job needs its own. By default, jobs that write files "
        "keep it beside the files.",
    ),
    click.Option(["--master"], metavar="URL", help="The Spark master: local[4], yarn, k8s://...; else all cores."),
    click.Option(["--conf"], multiple=True, metavar="KEY=VALUE", help="A config of Spark; may be repeated."),
    click.Option(["--verbose"], is_flag=True, help="Print Spark's log."),
]  # fmt: skip
"""The options that all jobs have."""


class Jobs(click.Group):
    """Lists the jobs, and creates the command of a job when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        return command_of(name, JOBS[name]) if name in JOBS else None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Jobs"):
            formatter.write_dl([(name, entry.help) for name, entry in JOBS.items()])


@click.command(cls=Jobs)
def pipeline() -> None:
    """Move and transform records with Spark, from and to any Kafka cluster.

    A job that is started again with the same checkpoint continues where it stopped. Ctrl-C stops a job after the
    current batch; a second Ctrl-C stops it immediately.
    """


def command_of(name: str, entry: Entry) -> click.Command:
    """Returns the job's command, with the job's own options and the common ones."""
    declared = list(described(entry.options_class()))

    def callback(**given: Any) -> int:
        common = {parameter.name: given.pop(parameter.name) for parameter in COMMON if parameter.name}
        with errors_in_one_line():
            return run(name, entry, values(declared, given), **common)

    return click.Command(
        name, params=[*map(parameter_of, declared), *COMMON], callback=callback, help=entry.help
    )  # fmt: skip


def parameter_of(each: Described) -> click.Parameter:
    """Converts a declared option to a click parameter."""
    said, required = each.option, each.default is REQUIRED
    kind: Any = click.Choice(list(said.choices)) if said.choices else None if each.pairs else each.type
    if said.argument:
        return click.Argument([each.name], required=required, type=kind, metavar=said.metavar)
    flags = list(each.flags)
    help = said.help.replace("`", "")
    if each.type is bool and not each.many:
        if each.default is not False and len(flags) == 1:
            flags = [f"{flags[0]}/--no-{flags[0].removeprefix('--')}"]
        default = {} if each.default is REQUIRED else {"default": each.default}
        return click.Option([*flags, each.name], is_flag=True, type=bool, help=help, required=required, **default)
    metavar = said.metavar or ("FILE" if said.file else "KEY=VALUE" if each.pairs else None)
    several = (each.many or each.pairs) and not said.file
    more: dict[str, Any] = {"required": True} if required else {}
    if not (required or each.many or each.pairs or each.default in (None, "")):
        more = {"default": each.default, "show_default": True}
    return click.Option([*flags, each.name], type=kind, multiple=several, metavar=metavar, help=help, **more)


def values(declared: list[Described], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the given options as keyword arguments of the options' class, which has defaults for the others."""
    found: dict[str, Any] = {}
    for each in declared:
        value = given[each.name]
        if value is None or value == ():
            continue
        if each.pairs and each.option.file:
            value = read_properties(value)
        elif each.pairs:
            value = pairs(value, each.flags[0])
        found[each.name] = value
    return found


def run(
    name: str, entry: Entry, given: Mapping[str, Any],
    once: bool, checkpoint: str | None, master: str | None, conf: tuple[str, ...], verbose: bool,
) -> int:  # fmt: skip
    """Runs the job in a new Spark session; returns 0 when it has finished, or was stopped."""
    configs = pairs(conf, "--conf")
    from barnabas.pipelines.jobs import running, session_of

    job = entry.make(entry.options_class()(**given))
    where = running.checkpoint_of(job, checkpoint)
    with spark_log(verbose) as log:
        if sys.stderr.isatty():
            click.echo("Starting Spark ...", err=True)
        spark = session_of(job, master=master, configs=configs, log=log)
        with stop_on_signals() as stop, progress_reporter(name) as report:
            outcome = running.run(job, spark, checkpoint=where, once=once, report=report, stop=stop)
        spark.stop()
    rows = f"{outcome.rows:,} row{'' if outcome.rows == 1 else 's'}"
    click.echo(f"{name}: {rows} in {outcome.batches:,} batch{'' if outcome.batches == 1 else 'es'}", nl=False)
    click.echo(f"; stopped, continues from {where}" if outcome.stopped else "")
    return 0


@contextlib.contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yields an event that SIGINT and SIGTERM set; a second SIGINT ends the process immediately, with exit code 130."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            sys.stdout.flush()
            os._exit(INTERRUPTED)  # the JVM exits when its standard input ends
        stop.set()
        click.echo("Stopping after the current batch; press Ctrl-C again to stop immediately", err=True)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def progress_reporter(name: str) -> Iterator[Callable[[Any], None]]:
    """Yields a function that reports a batch: by a progress bar in a terminal, by a line elsewhere."""
    if not sys.stdout.isatty():
        yield lambda progress: click.echo(line_of(progress))
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [SpinnerColumn(), TextColumn(name), BarColumn(), TextColumn("{task.fields[said]}"), TimeElapsedColumn()]
    rows: dict[str, int] = {}
    with Progress(*columns) as bars:
        tasks: dict[str, Any] = {}

        def report(progress: Any) -> None:
            rows[progress.query] = done = rows.get(progress.query, 0) + progress.rows
            if progress.query not in tasks:
                tasks[progress.query] = bars.add_task(name, said="")
            total = None if progress.lag is None else done + progress.lag
            bars.update(tasks[progress.query], completed=done, total=total, said=line_of(progress))

        yield report


def line_of(progress: Any) -> str:
    """Returns the line that reports a batch."""
    behind = "" if progress.lag is None else f", {progress.lag:,} behind"
    speed = f"{progress.rows_per_second:,.0f} rows/s"
    return f"{progress.query}: batch {progress.batch}: {progress.rows:,} rows, {speed}{behind}"


@contextlib.contextmanager
def spark_log(verbose: bool) -> Iterator[Path | None]:
    """Yields the file for Spark's log, or None if it goes to the terminal. The file is kept only if the job fails."""
    if verbose:
        yield None
        return
    from pyspark.logger import PySparkLogger

    warnings.filterwarnings("ignore", module="pyspark")
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel("CRITICAL")  # they repeat the messages of exceptions
    descriptor, name = tempfile.mkstemp(prefix="barnabas-spark-", suffix=".log")
    os.close(descriptor)
    path, is_wanted = Path(name), False
    try:
        yield path
    except Exception:
        is_wanted = path.stat().st_size > 0
        if is_wanted:
            click.echo(f"Spark's log is in {path}", err=True)
        raise
    finally:
        if not is_wanted:
            path.unlink()


@contextlib.contextmanager
def errors_in_one_line() -> Iterator[None]:
    """Turns the errors of a job into one line. If a library is not installed, the line says what to install."""
    try:
        yield
    except ImportError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRA:
            raise
        hint = "pip install 'barnabas[spark]'"
        raise click.ClickException(f"{library} is not installed; it is part of the extra spark: {hint}") from None
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        raise click.Abort from None
    except Exception as error:
        if type(error).__name__ in ("JobFailed", "NoJava") or isinstance(error, ValueError | OSError):
            raise click.ClickException(str(error)) from error
        raise
