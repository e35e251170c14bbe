"""Spark's own Kafka connector, four jars that the pip package does not contain. Maven fetches them.

Knows nothing of how they are used, and does not start Spark.
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
"""JVM options for a fast start: it only copies one file."""

NOT_THERE = ("Could not find artifact", "was not found in")
"""Maven's messages about a missing release, as opposed to a repository that cannot be reached."""


class JarsUnavailable(Exception):
    """The connector's jars cannot be fetched; the message has the cause and a remedy."""


class Artifact(NamedTuple):
    """A jar in a repository. Without a `version` it is a part of Spark, and has Spark's release."""

    group: str
    name: str
    version: str | None = None


CONNECTOR = (
    Artifact("org.apache.spark", "spark-sql-kafka-0-10_2.13"),
    Artifact("org.apache.spark", "spark-token-provider-kafka-0-10_2.13"),
    Artifact("org.apache.kafka", "kafka-clients", "3.9.2"),
    Artifact("org.apache.commons", "commons-pool2", "2.13.1"),
)
"""The jars that the connector needs besides `pyspark`."""

Say = Callable[[str], None]


def installed_release() -> str:
    """Returns the installed release of Spark."""
    import pyspark

    return str(pyspark.__version__)


def cache(release: str | None = None) -> Path:
    """Returns the default directory of a release's jars, in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "barnabas" / f"spark-connector-{release or installed_release()}"


def fetched(folder: Path) -> list[Path] | None:
    """Returns the jars in a folder, in the connector's order, or None if one is missing."""
    found = [sorted(folder.glob(f"{artifact.name}-[0-9]*.jar")) for artifact in CONNECTOR]
    return [each[-1] for each in found] if all(found) else None


def fetch(to: Path | None = None, *, say: Say = lambda _: None) -> list[Path]:
    """Fetches the connector's jars to `to`, or to the user's cache. Does not fetch existing ones again.

    Each jar is fetched without the dependencies in its POM, as Spark's parent POM names a second repository. Jars of
    Spark have the installed release, or else the newest.

    :raises JarsUnavailable: Maven is missing, or cannot fetch them.
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
    """Fetches the newest release, where the wanted one is missing. Maven takes a preview for newer than its final
    release.
    """
    if not _copied(maven, artifact, NEWEST, folder):
        raise JarsUnavailable(f"{artifact.group}:{artifact.name} is in no repository that mvn knows")
    (jar,) = folder.glob(f"{artifact.name}-*.jar")
    newest = jar.name.removeprefix(f"{artifact.name}-").removesuffix(".jar")
    final, is_preview, _ = newest.partition("-")
    if is_preview and _copied(maven, artifact, final, folder):
        jar.unlink()
        newest = final
    say(f"  {missing} does not exist; the newest is {newest}")


def _copied(maven: str, artifact: Artifact, version: str, folder: Path) -> bool:
    """Copies a release to `folder`, and returns whether it exists.

    :raises JarsUnavailable: Maven fails for another reason.
    """
    command = [
        *(maven, "-B", "-U", "-ntp", "-Dstyle.color=never", "dependency:copy"),
        *(f"-Dartifact={artifact.group}:{artifact.name}:{version}:jar", f"-DoutputDirectory={folder}"),
    ]
    # In a folder without a POM: Maven would read the POM of a project in the current directory.
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
        f"mvn could not fetch {artifact.group}:{artifact.name}:{version}; check the connection to its repository. "
        f"Maven's error: {next(iter(complaints), done.stdout.strip()[-400:])}"
    )
