"""The table of tools, and the scripts by which they are found on a PATH.

Knows nothing of what a tool does; its module is imported when it is called.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

Tool = Callable[[Sequence[str]], int]

#: The module of ``kafka_tools`` that has each tool; its function has the tool's name, with underscores.
MODULES = {
    "server-start": "server",
    "server-stop": "server",
    "storage": "verbs",
    "reassign-partitions": "partitions",
    "leader-election": "partitions",
    "get-offsets": "partitions",
    "delete-records": "partitions",
    "broker-api-versions": "partitions",
    "log-dirs": "partitions",
    "transactions": "verbs",
    "features": "verbs",
    "metadata-quorum": "verbs",
    "cluster": "verbs",
    "client-metrics": "client_metrics",
    "topics": "topics",
    "console-producer": "console",
    "console-consumer": "console",
    "consumer-groups": "groups",
    "groups": "all_groups",
    "acls": "acls",
    "configs": "configs",
    "dump-log": "dump_log",
    "metadata-shell": "metadata_shell",
}
#: Scripts that have no function any more, with the message that they print.
NEEDLESS = {
    "zookeeper-server-start": "Barnabas needs no ZooKeeper: nothing is started.",
    "zookeeper-server-stop": "Barnabas needs no ZooKeeper: nothing is stopped.",
}
SCRIPT = '#!/bin/sh\nexec "{python}" -m barnabas kafka {tool} "$@"\n'


def name_of(given: str) -> str:
    """Returns the name of the tool by its path: ``/opt/kafka/bin/kafka-topics.sh`` is ``topics``."""
    return given.rpartition("/")[2].removesuffix(".sh").removesuffix(".bat").removeprefix("kafka-")


def run(given: str, arguments: Sequence[str]) -> int:
    """Runs a tool and returns its exit code.

    :raises LookupError: there is no such tool
    """
    name = name_of(given)
    if name in NEEDLESS:
        sys.stdout.write(NEEDLESS[name] + "\n")
        return 0
    if name not in MODULES:
        raise LookupError(f"There is no tool {given}; there are {', '.join(MODULES)}")
    module = importlib.import_module(f"barnabas.cli.kafka_tools.{MODULES[name]}")
    tool: Tool = getattr(module, name.replace("-", "_"))
    return tool(arguments)


def install(directory: Path, suffix: str) -> list[Path]:
    """Writes a script for each tool into the directory, and returns their paths.

    :param suffix: the suffix of the names: ``.sh`` as in Apache Kafka's archive, or empty as in Confluent's
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for tool in (*MODULES, *NEEDLESS):
        path = directory / f"{tool if tool in NEEDLESS else f'kafka-{tool}'}{suffix}"
        path.write_text(SCRIPT.format(python=sys.executable, tool=tool), "utf-8")
        path.chmod(0o755)
        written.append(path)
    return written
