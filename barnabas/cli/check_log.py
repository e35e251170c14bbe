"""``barnabas check-log``: checks, or repairs, the data directories of a stopped broker.

Knows nothing of the checks. It locks the directories during the check, so that no broker writes to them.
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
@click.option(
    "--repair", is_flag=True, help="Recover damaged logs, as a broker does after a crash; this truncates logs."
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
def check_log(paths: tuple[str, ...], repair: bool, as_json: bool) -> int:
    """Check the data directories of a stopped broker, or the directories of single partitions.

    Every batch is read and its CRC is verified. Offsets, leader epochs, indexes, producer snapshots, checkpoints and
    metadata are compared with one another. Findings are printed with file, position and offset. The exit code is 1 if
    there are errors. A warning is about something that the next start of the broker corrects, or that may be intended.

    With --repair, the logs are then recovered as after a crash: truncated where they are damaged, with new indexes and
    producer snapshots. The repairs are printed, and the findings that are left.

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
                f"{path} is not a data directory: it contains neither partitions nor meta.properties"
            )
    if alone and (len(alone) < len(wanted) or repair):
        raise click.UsageError(
            "Directories of partitions are checked without data directories; to repair one, name its data directory"
        )
    findings = Findings(lambda finding: click.echo(as_line(finding) if as_json else as_text(finding)))
    _check(wanted, findings, is_partition=bool(alone))
    if repair and findings.counts.total():
        findings = _repair(wanted, findings, as_json)
    _summarize(findings, as_json)
    return int(findings.counts[ERROR] > 0)


def is_of_partition(path: Path) -> bool:
    """Returns whether the directory contains segments."""
    return any(path.glob("*.log"))


def is_of_broker(path: Path) -> bool:
    """Returns whether the directory is one of a broker's ``log.dirs``."""
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

    def report(text: str) -> None:
        click.echo(json.dumps({"kind": "repaired", "what": text}) if as_json else f"repaired: {text}")

    try:
        repair(wanted, before, report)
    except (CannotRepair, OSError) as error:
        raise click.ClickException(f"Cannot repair: {error}") from None
    after = Findings(lambda finding: click.echo(as_line(finding) if as_json else f"still: {as_text(finding)}"))
    _check(wanted, after, is_partition=False)
    return after


# ---------------------------------------------------------------- locks


@contextlib.contextmanager
def locked(directories: set[Path], *, quietly: bool) -> Iterator[None]:
    """Holds the locks of data directories.

    :param quietly: whether directories without a lock file are left unlocked; otherwise the file is created and deleted
    """
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
        click.echo(f"{directory} cannot be locked, and is checked without a lock: {error}", err=True)
        return None
    if lock is None:
        raise click.ClickException(f"A broker is using {directory}: it holds the lock {path}")
    return lock


# ---------------------------------------------------------------- output


@contextlib.contextmanager
def progress_bar(wanted: list[Path]) -> Iterator[Callable[[int], object]]:
    """Shows how many bytes of the logs have been read, by a progress bar on standard error if that is a terminal."""
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
    """Returns ``error path position=… offset=…: text``."""
    where = [
        f"{name}={value}" for name, value in zip(("position", "offset"), finding[3:5], strict=True) if value is not None
    ]
    return f"{' '.join([finding.severity, finding.path, *where])}: {finding.what}"


def as_line(finding: "Finding") -> str:
    """Returns the finding as a JSON object on one line."""
    return json.dumps(finding._asdict())


def _summarize(findings: "Findings", as_json: bool) -> None:
    from barnabas.cli.checking.findings import ERROR, WARNING

    errors, warnings = findings.counts[ERROR], findings.counts[WARNING]
    if as_json:
        click.echo(json.dumps({"kind": "summary", "errors": errors, "warnings": warnings}))
    elif errors or warnings:
        click.echo(f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}")
    else:
        click.echo("No findings.")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
