"""Spark's own Kafka connector, which the pip package leaves out: four jars, fetched with Maven.

Knows nothing of what is read or written with them, and starts no Spark.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NEWEST = "LATEST"

FLAGS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
"""A Java that copies one file had better start fast."""

NOT_THERE = ("Could not find artifact", "was not found in")
"""What Maven says of a release that a repository does not have, as against a repository that it cannot reach."""


class JarsUnavailable(Exception):
    """The connector's jars cannot be had here; the message says why, and what would help."""


class Artifact(NamedTuple):
    """A jar in a repository; `version` is None where it is a part of Spark, and its release that of Spark."""

    group: str
    name: str
    version: str | None = None


CONNECTOR = (
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13"),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.2"),
    Artifact("org.apache.commons", "commons-pool2", "2.13.1"),
)
"""What the connector needs beside what `pyspark` brings."""

Say = Callable[[str], None]


def installed_release() -> str:
    """The release of Spark that `pyspark` is."""
    import pyspark

    return str(pyspark.__version__)


def cache(release: str | None = None) -> Path:
    """Where a release's jars are kept when nobody says where: in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "barnabas" / f"spark-connector-{release or installed_release()}"


def fetched(folder: Path) -> list[Path] | None:
    """The jars in a folder, in the connector's order; None unless all are there."""
    found = [sorted(folder.glob(f"{artifact.name}-[0-9]*.jar")) for artifact in CONNECTOR]
    return [each[-1] for each in found] if all(found) else None


def fetch(to: Path | None = None, *, say: Say = lambda _: None) -> list[Path]:
    """The connector's jars in `to`, else in the user's cache; those that are there already are not fetched again.

    Each by itself, and without what its POM names: Spark's parent POM names a second repository. Those of Spark are of
    the installed release, else the newest that there is. Raises JarsUnavailable.
    """
    release = installed_release()
    folder = (to or cache(release)).absolute()
    if there := fetched(folder):
        return there
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailable(
            "mvn, which fetches the jars, is not on the PATH: install Maven (Debian: maven), or read with the format "
            "barnabas, which needs no jars"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as aside:
        for artifact in CONNECTOR:
            say(f"{artifact.group}:{artifact.name}")
            if not _copied(maven, artifact, artifact.version or release, Path(aside)):
                _newest(maven, artifact, artifact.version or release, Path(aside), say)
        for jar in Path(aside).glob("*.jar"):
            jar.replace(folder / jar.name)
    there = fetched(folder)
    assert there is not None, f"mvn succeeded, but not all jars are in {folder}"
    return there


def _newest(maven: str, artifact: Artifact, missing: str, folder: Path, say: Say) -> None:
    """The newest release where the wanted one is missing; Maven takes a preview for newer than what it precedes."""
    if not _copied(maven, artifact, NEWEST, folder):
        raise JarsUnavailable(f"{artifact.group}:{artifact.name} is in no repository that mvn knows")
    (jar,) = folder.glob(f"{artifact.name}-*.jar")
    newest = jar.name.removeprefix(f"{artifact.name}-").removesuffix(".jar")
    final, is_preview, _ = newest.partition("-")
    if is_preview and _copied(maven, artifact, final, folder):
        jar.unlink()
        newest = final
    say(f"  {missing} is not there; the newest is {newest}")


def _copied(maven: str, artifact: Artifact, version: str, folder: Path) -> bool:
    """Whether there is such a release, which is then in `folder`. Raises JarsUnavailable when Maven fails otherwise."""
    command = [
        *(maven, "-B", "-U", "-ntp", "-Dstyle.color=never", "dependency:copy"),
        *(f"-Dartifact={artifact.group}:{artifact.name}:{version}:jar", f"-DoutputDirectory={folder}"),
    ]
    # In a folder without a POM: Maven would take up the one of a project that the caller happens to stand in.
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            command,
            cwd=empty,
            env={"MAVEN_OPTS": FLAGS, **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if done.returncode == 0:
        return True
    if any(said in done.stdout for said in NOT_THERE):
        return False
    complaints = [line.removeprefix("[ERROR] ") for line in done.stdout.splitlines() if line.startswith("[ERROR] ")]
    raise JarsUnavailable(
        f"mvn could not fetch {artifact.group}:{artifact.name}:{version}; is there a way to its repository? "
        f"It says: {next(iter(complaints), done.stdout.strip()[-400:])}"
    )
