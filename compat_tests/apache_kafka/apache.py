"""Apache Kafka itself: fetched from Maven Central, started and stopped beside Barnabas, and its tools.

Knows nothing of Barnabas.
"""

import base64
import contextlib
import fcntl
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from compat_tests.ports import free_port

CURRENT, PREVIOUS = "4.3.1", "3.9.1"
"""The reference release, and the last one whose Java client still has the oldest versions."""

RELEASES = [CURRENT, pytest.param(PREVIOUS, marks=pytest.mark.long)]
"""For tests that :mod:`test_java_clients` already runs with both releases."""

ARTIFACTS = ("kafka_2.13", "kafka-tools", "kafka-streams")
SLF4J_SIMPLE = "1.7.36"

FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
"""Options of a JVM that runs for a second or two, or has little to do: fast start, little optimisation."""

HEAP = ("-Xms512m", "-Xmx1g")

ADDRESS = re.compile(r"//([^:,]+):(\d+)")
"""The host and the port of a listener."""


class KafkaUnavailable(Exception):
    """Apache Kafka cannot run on this machine; the message has the reason."""


def cache() -> Path:
    """Returns the folder of the releases' jars: ``$BARNABAS_KAFKA_CACHE``, or a folder in the user's cache."""
    named = os.environ.get("BARNABAS_KAFKA_CACHE") or os.environ.get("APACHE_KAFKA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "apache-kafka"


def pom(version: str, artifacts: Iterable[str]) -> str:
    """Returns a Maven project whose only content is a dependency on artifacts of one release of Kafka."""
    wanted = [("org.apache.kafka", artifact, version) for artifact in artifacts] + [
        ("org.slf4j", "slf4j-simple", SLF4J_SIMPLE)
    ]
    names = ("groupId", "artifactId", "version")
    dependencies = "\n".join(
        "    <dependency>"
        + "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, each, strict=True))
        + "</dependency>"
        for each in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0">\n'
        "  <modelVersion>4.0.0</modelVersion>\n"
        "  <groupId>barnabas.compat</groupId><artifactId>kafka-jars</artifactId><version>1</version>\n"
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n"
        "</project>\n"
    )


def jars(version: str = CURRENT, artifacts: tuple[str, ...] = ARTIFACTS) -> Path:
    """Returns the folder with a release's jars, fetched by Maven the first time.

    Artifacts that few tests need have a folder of their own, with all that they depend on.

    Raises `KafkaUnavailable` when Java is missing, or when the jars are not there yet and Maven cannot fetch them.
    """
    if shutil.which("java") is None:
        raise KafkaUnavailable("Apache Kafka needs java, which is not installed")
    home = cache() / (version if artifacts == ARTIFACTS else "-".join((version, *artifacts)))
    done = home / "complete"
    if not done.exists():
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / "lock"):
            if not done.exists():
                fetch(version, home, artifacts)
                done.touch()
    return home / "jars"


def fetch(version: str, home: Path, artifacts: Iterable[str]) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"Apache Kafka {version} is fetched by mvn, which is not installed")
    (home / "pom.xml").write_text(pom(version, artifacts))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={home / 'jars'}"]
    fetched = subprocess.run(
        [maven, "-q", "-B", "-f", str(home / "pom.xml"), *goal], capture_output=True, text=True, check=False
    )
    if fetched.returncode:
        raise KafkaUnavailable(f"mvn could not fetch Apache Kafka {version}: {fetched.stdout.strip()[-400:]}")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock between all test processes of this machine."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@functools.cache
def quick(version: str) -> tuple[str, ...]:
    """Returns options that halve the start of a JVM, by an archive of its classes (JEP 350).

    The first start and stop of a broker makes the archive. Its name has the installation time of this Java, since no
    other Java can read it. The previous release runs too seldom for an archive."""
    if version != CURRENT:
        return FLAGS
    java = Path(shutil.which("java") or "java").resolve()
    home = jars(version).parent
    archive = home / f"classes-{java.stat().st_mtime_ns}.jsa"
    if not archive.exists():
        with locked(home / "lock"):
            if not archive.exists():
                made = archive.with_suffix(".made")
                with tempfile.TemporaryDirectory() as directory:
                    options = (*HEAP, *FLAGS, f"-XX:ArchiveClassesAtExit={made}")
                    ApacheKafka(Path(directory), version=version, options=options).start().stop()
                made.rename(archive)
    return (*FLAGS, f"-XX:SharedArchiveFile={archive}")


def java_command(
    version: str,
    main: str,
    arguments: Iterable[str] = (),
    *,
    options: Iterable[str] | None = None,
    log_level: str = "warn",
    artifacts: tuple[str, ...] = ARTIFACTS,
) -> list[str]:
    """Returns the command line of a main class, or of a single .java source file, with a release on the class path."""
    level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
    return [
        "java",
        *(quick(version) if options is None else options),
        level,
        "-cp",
        f"{jars(version, artifacts)}/*",
        main,
        *arguments,
    ]


class JavaProgram:
    """A source file of ``java/`` that runs with Apache Kafka's classes, and writes a line for each line that it reads.

    Raises `KafkaUnavailable` where it cannot run.
    """

    def __init__(self, name: str) -> None:
        command = java_command(CURRENT, str(Path(__file__).parent / "java" / name))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.communicate()


def run_java(
    version: str,
    main: str,
    *arguments: str,
    stdin: str | None = None,
    timeout: float = 90,
    options: Iterable[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a main class to its end; returns its exit code, stdout and stderr unchecked."""
    return subprocess.run(
        java_command(version, main, arguments, options=options),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def answers(port: int, host: str = "127.0.0.1") -> bool:
    """Returns whether a Kafka broker answers ApiVersions 0 at this port."""
    frame = bytes.fromhex("0000000a00120000000000010000")
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1) as connection:
        connection.settimeout(5)
        connection.sendall(frame)
        return len(connection.recv(4)) == 4
    return False


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Returns whether anybody listens at this port."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), 1):
        return True
    return False


def await_answers(
    port: int,
    process: "subprocess.Popen[bytes]",
    log: Path,
    seconds: float = 60,
    host: str = "127.0.0.1",
    listeners: str = "",
) -> None:
    """Returns once the broker at `port` answers and all of its `listeners` are open.

    Apache Kafka opens its listeners one by one, and answers at the first before the last is open.
    Raises `RuntimeError` with the end of its log if it does not."""
    deadline = time.monotonic() + seconds
    others = [(int(other), at) for at, other in ADDRESS.findall(listeners) if int(other) not in (0, port)]
    while not (answers(port, host) and all(listens(*other) for other in others)):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the broker did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)


#: Harmless errors that Apache Kafka logs, in the line itself or in that of the exception below it.
NOBODYS_FAULT = (
    "NotControllerException",  # a heartbeat between the controller's election and its activation
    "controller event queue overloaded",  # a late heartbeat on a busy machine
    "Exceptionally slow controller event",  # the same
    "to exist, but it was missing. Creating",  # a reassignment adds a replica
    "OutOfOrderSequenceException",  # librdkafka sends to the new leader before the old one's connection has failed
    "channel manager timed out before sending the request",  # a controller registers, and there is no leader for 5 s
)


def errors_of(said: str) -> list[str]:
    """Returns the errors in a log of Apache Kafka, except the harmless ones."""
    lines = said.splitlines()
    return [
        line
        for at, line in enumerate(lines)
        if " ERROR " in line and not any(each in "".join(lines[at : at + 2]) for each in NOBODYS_FAULT)
    ]


class ApacheKafka:
    """One combined broker and controller of Apache Kafka in its own folder; a context manager.

    `properties` are added to (and win over) what a node on its own needs. `port` is where clients connect. `standalone`
    formats it for a quorum that may change, whose voters are in the metadata log (KIP-853), not in its properties.
    `features` are the levels to format it with, by default the release's own. `options` replace the JVM options for a
    fast start.
    """

    def __init__(
        self,
        home: Path,
        properties: Mapping[str, str] | None = None,
        *,
        version: str = CURRENT,
        options: tuple[str, ...] | None = None,
        standalone: bool = False,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.home, self.version, self.options = home, version, options
        self.port, controller = free_port(), free_port()
        self.log = home / "broker.log"
        self.standalone = standalone
        self.features = dict(features or {})
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")  #: of a new directory
        quorum = ("bootstrap.servers", "") if standalone else ("voters", "1@")
        self.properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            f"controller.quorum.{quorum[0]}": f"{quorum[1]}127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str((home / "data").resolve()),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **(properties or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "ApacheKafka":
        self.home.mkdir(parents=True, exist_ok=True)
        settings = self.home / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.home / "data" / "meta.properties").exists():
            words = [f"--cluster-id={self.cluster_id}", "-c", str(settings), *["--standalone"][: self.standalone]]
            for name, level in self.features.items():
                words += ["--feature", f"{name}={level}"]
            tools = None if self.options is None else FLAGS
            formatting = run_java(self.version, "kafka.tools.StorageTool", "format", *words, options=tools)
            if formatting.returncode:
                raise RuntimeError(f"the storage could not be formatted: {formatting.stdout}{formatting.stderr}")
        jvm = (*HEAP, *quick(self.version)) if self.options is None else self.options
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                java_command(self.version, "kafka.Kafka", [str(settings)], options=jvm, log_level="info"),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            await_answers(self.port, self.process, self.log, listeners=self.properties["listeners"])
        except BaseException:
            self.stop(kill=True)
            raise
        return self

    def stop(self, *, kill: bool = False) -> None:
        """Stops the broker: cleanly, or by SIGKILL. Has no effect on a broker that does not run."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def __enter__(self) -> "ApacheKafka":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop(kill=True)


class ApacheController(ApacheKafka):
    """A process of Apache Kafka that is only a controller, and the whole quorum; ``port`` is its listener's."""

    def __init__(self, home: Path, properties: Mapping[str, str] | None = None, *, standalone: bool = False) -> None:
        super().__init__(home, standalone=standalone)
        address = f"127.0.0.1:{self.port}"
        names = ("node.id", "controller.listener.names", "log.dirs")
        self.properties = {
            **{name: self.properties[name] for name in names},
            "process.roles": "controller",
            "controller.quorum.bootstrap.servers" if standalone else "controller.quorum.voters": address
            if standalone
            else f"1@{address}",
            "listeners": f"CONTROLLER://{address}",
            **(properties or {}),
        }


class ApacheBroker(ApacheKafka):
    """A process of Apache Kafka that is only a broker. `quorum` is the config with the addresses of its controllers."""

    def __init__(
        self,
        home: Path,
        node_id: int,
        cluster_id: str,
        quorum: tuple[str, str],
        properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(home)
        self.cluster_id = cluster_id
        address = f"PLAINTEXT://127.0.0.1:{self.port}"
        left_out = ("controller.quorum.voters", "process.roles", "node.id", "listeners")
        self.properties = {
            **{name: value for name, value in self.properties.items() if name not in left_out},
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": address,
            **dict([quorum]),
            **(properties or {}),
        }
