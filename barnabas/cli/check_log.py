"""``barnabas check-log``: whether everything in a data directory is as it should be.

Knows nothing of how that is found out. The directory is locked meanwhile, so that no broker writes to it.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from barnabas.cli.checking.findings import Finding, Findings


@click.command("check-log")
@click.argument("paths", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True, file_okay=False))
@click.option("--repair", is_flag=True, help="Recover what is damaged, as a broker does after a crash; it cuts logs.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line, for programs.")
def check_log(paths: tuple[str, ...], repair: bool, as_json: bool) -> int:
    """Check the data directories of one broker, or directories of single partitions, while no broker uses them.

    Every batch is read, and its CRC computed; offsets, leader epochs, indexes, snapshots of producers, checkpoints and
    the metadata are held against each other. What is wrong is told with file, position and offset. The exit code is 1
    if there are errors; warnings are of what the next start puts right, or what you may want to look at.

    With --repair, the logs are then opened as after a crash: cut where they are damaged, indexes and snapshots made
    again. What was done is told, and what is still wrong afterwards.

    \b
    barnabas check-log data
    barnabas check-log data/orders-0 --json
    """
    from barnabas.cli.checking.findings import ERROR, Findings

    wanted = [Path(path) for path in paths]
    alone = [path for path in wanted if is_of_partition(path)]
    for path in wanted:
        if path not in alone and not is_of_broker(path):
            raise click.ClickException(
                f"{path} is no data directory: there are no partitions in it, nor meta.properties"
            )
    if alone and (len(alone) < len(wanted) or repair):
        raise click.UsageError("A partition's directory is checked without others, and repaired with all around it.")
    findings = Findings(lambda finding: click.echo(as_line(finding) if as_json else as_text(finding)))
    _check(wanted, findings, is_partition=bool(alone))
    if repair and findings.counts.total():
        findings = _repair(wanted, findings, as_json)
    _summarize(findings, as_json)
    return int(findings.counts[ERROR] > 0)


def is_of_partition(path: Path) -> bool:
    """Whether there are segments in it."""
    return any(path.glob("*.log"))


def is_of_broker(path: Path) -> bool:
    """Whether it is one of the ``log.dirs``."""
    return (path / "meta.properties").exists() or any(path.glob("*-*/*.log"))


def _check(wanted: list[Path], findings: "Findings", *, is_partition: bool) -> None:
    from barnabas.cli.checking import directories

    held = {path.resolve().parent if is_partition else path for path in wanted}
    try:
        with locked(held, quietly=is_partition), progress_bar(wanted) as advance:
            if is_partition:
                for path in wanted:
                    directories.check_partition(path, findings, advance)
            else:
                directories.check(wanted, findings, advance)
    except OSError as error:
        raise click.ClickException(str(error)) from None


def _repair(wanted: list[Path], before: "Findings", as_json: bool) -> "Findings":
    from barnabas.cli.checking.findings import Findings
    from barnabas.cli.checking.repairing import CannotRepair, repair

    def tell(words: str) -> None:
        click.echo(json.dumps({"kind": "repaired", "what": words}) if as_json else f"repaired: {words}")

    try:
        repair(wanted, before, tell)
    except (CannotRepair, OSError) as error:
        raise click.ClickException(f"It cannot be repaired: {error}") from None
    after = Findings(lambda finding: click.echo(as_line(finding) if as_json else f"still: {as_text(finding)}"))
    _check(wanted, after, is_partition=False)
    return after


# ---------------------------------------------------------------- locking


@contextlib.contextmanager
def locked(directories: set[Path], *, quietly: bool) -> Iterator[None]:
    """Hold the locks of data directories; ``quietly``: where there are none, that is fine."""
    from barnabas.cli.checking.directories import LOCK
    from barnabas.log.files import DiskFiles

    held: list[Any] = []
    made: list[Path] = []
    try:
        for directory in sorted(directories):
            path = directory / LOCK
            if not path.exists():
                if quietly:
                    continue
                made.append(path)
            held.append(_lock(DiskFiles(), directory, path))
        yield
    finally:
        for path in made:
            with contextlib.suppress(OSError):
                path.unlink()
        for lock in held:
            if lock is not None:
                lock.close()


def _lock(files: Any, directory: Path, path: Path) -> Any:
    try:
        lock = files.lock(str(path))
    except OSError as error:
        click.echo(f"{directory} cannot be locked, and is looked at all the same: {error}", err=True)
        return None
    if lock is None:
        raise click.ClickException(f"A broker is using {directory}: it holds the lock {path}")
    return lock


# ---------------------------------------------------------------- printing


@contextlib.contextmanager
def progress_bar(wanted: list[Path]) -> Iterator[Callable[[int], object]]:
    """A bar on standard error, if that is a terminal: how much of the logs was read."""
    if not sys.stderr.isatty():
        yield lambda size: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    total = sum(path.stat().st_size for directory in wanted for path in directory.rglob("*.log"))
    columns = (TextColumn("checking"), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=total)
        yield lambda size: bar.advance(task, size)


def as_text(finding: "Finding") -> str:
    """``error path position=… offset=…: what is wrong``."""
    where = [
        f"{name}={value}" for name, value in zip(("position", "offset"), finding[3:5], strict=True) if value is not None
    ]
    return f"{' '.join([finding.severity, finding.path, *where])}: {finding.what}"


def as_line(finding: "Finding") -> str:
    """The finding as one JSON object."""
    return json.dumps(finding._asdict())


def _summarize(findings: "Findings", as_json: bool) -> None:
    from barnabas.cli.checking.findings import ERROR, WARNING

    errors, warnings = findings.counts[ERROR], findings.counts[WARNING]
    if as_json:
        click.echo(json.dumps({"kind": "summary", "errors": errors, "warnings": warnings}))
    elif errors or warnings:
        click.echo(f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    else:
        click.echo("All is well.")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
