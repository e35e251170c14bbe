"""``kafka-server-start`` and ``kafka-server-stop``: run and stop a broker, with the log lines of Kafka's.

Knows nothing of the broker. Its log goes to standard output in Kafka's format, with the lines that users of the images
wait for. Environment variables set no configs, as in Kafka's own script.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from barnabas import __version__
from barnabas.cli import serve
from barnabas.server.server import Server

FORMAT = "[%(asctime)s] %(levelname)s %(message)s (%(name)s)"
"""The pattern of Kafka's log4j2.yaml: ``[%d] %p %m (%c)%n``."""

START_USAGE = "USAGE: {name} [-daemon] server.properties [--override property=value]*"
NOT_RUNNING = "No kafka server to stop"
_MARK = " kafka server-start "


def server_start(arguments: Sequence[str]) -> int:
    """Runs a broker until it is stopped; with ``-daemon`` as a background process."""
    given = [each for each in arguments if each not in ("-daemon", "-loggc")]
    if not given or given[0] == "--help":
        sys.stderr.write(START_USAGE.format(name="kafka-server-start.sh") + "\n")
        return 1
    if given[0] == "--version":
        sys.stdout.write(f"{__version__}\n")
        return 0
    if "-daemon" in arguments:
        return _in_background(given)
    overrides = serve.read(given)
    if overrides is None or overrides != serve.Options(overrides.properties, overrides.override):
        sys.stderr.write(START_USAGE.format(name="kafka-server-start.sh") + "\n")
        return 1
    logging.basicConfig(level=logging.INFO, format=FORMAT, stream=sys.stdout)
    logging.addLevelName(logging.WARNING, "WARN")
    logging.addLevelName(logging.CRITICAL, "FATAL")
    return serve.start(overrides, {}, started)


def started(server: Server) -> None:
    """Logs that the node is ready, with the messages of Kafka's broker, of its KRaft server, and of its broker with
    ZooKeeper.
    """
    node = server.config.node_id
    if server.config.is_broker:
        _log(
            "kafka.server.BrokerLifecycleManager",
            f"[BrokerLifecycleManager id={node}] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
        )
        _log("kafka.server.BrokerServer", f"[BrokerServer id={node}] Transition from STARTING to STARTED")
    _log("kafka.server.KafkaRaftServer", f"[KafkaRaftServer nodeId={node}] Kafka Server started")
    _log("kafka.server.KafkaServer", f"[KafkaServer id={node}] started")


def server_stop(arguments: Sequence[str]) -> int:
    """Stops the brokers on this machine that were started by ``kafka-server-start``: all of them, or those with a role
    or id.
    """
    wanted = dict(each.lstrip("-").split("=", 1) for each in arguments if "=" in each)
    found = [
        process
        for process, properties in _running()
        if all(properties.get(_CRITERIA.get(name, name), "") == value for name, value in wanted.items())
    ]
    if not found:
        sys.stdout.write(f"{NOT_RUNNING}\n")
        return 1
    for process in found:
        os.kill(process, signal.SIGTERM)
    return 0


_CRITERIA = {"process-role": "process.roles", "node-id": "node.id"}


def _log(logger: str, message: str) -> None:
    logging.getLogger(logger).info(message)


def _in_background(arguments: Sequence[str]) -> int:
    """Starts the broker in a process that outlives this one; its log goes to logs/kafkaServer.out, as Kafka's does."""
    logs = Path(os.environ.get("LOG_DIR", "logs"))
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / "kafkaServer.out").open("ab") as out:
        subprocess.Popen(
            [sys.executable, "-m", "barnabas", "kafka", "server-start", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    return 0


def _running() -> Iterator[tuple[int, dict[str, str]]]:
    """Yields each process that ``kafka-server-start`` has started, with its properties."""
    for process, line in _processes():
        if _MARK in line and process != os.getpid():
            options = serve.read(line.partition(_MARK)[2].split())
            if options is not None and options.properties is not None:
                properties = {"node.id": "1", "process.roles": "broker,controller"}
                try:
                    yield process, {**properties, **serve.merged_properties(options, {})}
                except OSError:
                    yield process, properties


def _processes() -> Iterator[tuple[int, str]]:
    """Yields the command line of each process, from /proc if it exists, since slim images have no ``ps``."""
    proc = Path("/proc")
    if (proc / "self").exists():
        for each in proc.iterdir():
            if each.name.isdecimal():
                try:
                    yield int(each.name), (each / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except (OSError, UnicodeDecodeError):
                    continue
        return
    listed = subprocess.run(["ps", "ax", "-o", "pid=,args="], capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        number, _, command = line.strip().partition(" ")
        yield int(number), command
