"""The Spark session of a job that creates its own, and the Java virtual machine that it needs.

Knows nothing of what is read or written in it.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""A job shows its progress itself."""

ON_ONE_MACHINE = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""For a local file system, Hadoop's other implementation starts a process, ``readlink`` or ``chmod``, for each file of
a checkpoint: several in each micro-batch, which takes a tenth of a second. Both replace a file by renaming."""


MASTER_ELSEWHERE = frozenset({"SPARK_REMOTE", "MASTER", "SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT"})
"""Variables that show that Spark already has a master: the user has set it, or Spark has started this process. On YARN
in cluster mode only the last one is set."""

WORKER_PYTHON = Path(__file__).with_name("worker_python.sh")


class NoJava(Exception):
    """Spark needs a Java virtual machine, and there is none."""


def spark_session(name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None) -> SparkSession:
    """Returns the active session, or a new one called `name`.

    :param master: by default that of ``spark-submit``, ``SPARK_REMOTE`` or ``MASTER``, or else all cores of this
        machine.
    :param configs: override the configs that are set here.
    :raises NoJava: Spark cannot start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    master = _master(master)
    prepare(master)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    here = ON_ONE_MACHINE if master is not None and master.startswith("local") else {}
    for key, value in {**QUIET, **here, **(configs or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start_java(configs: Mapping[str, str] | None = None, *, log: Path | None = None) -> None:
    """Starts Spark's Java virtual machine in a process group of its own, before there is a session.

    Otherwise Ctrl-C in a terminal also interrupts Spark's Python workers, which then abandon their batch. Java ends
    with this process, however that ends. Does nothing if Java is running, or is remote.

    :param configs: those of the session.
    :param log: the file for the output of Java and the workers.
    :raises NoJava: Java does not start.
    """
    prepare(_master((configs or {}).get("spark.master")))
    if SparkContext._gateway is not None or "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False)
    for key, value in {**QUIET, **(configs or {})}.items():
        conf.set(key, value)
    with contextlib.ExitStack() as stack:
        kept = {}
        if log is not None:
            kept = {"stdout": stack.enter_context(log.open("wb")), "stderr": subprocess.STDOUT}
        try:
            gateway = launch_gateway(conf, {"start_new_session": True, **kept})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            said = log.read_text("utf-8", "replace").strip().splitlines() if log is not None else []
            raise NoJava(f"Java did not start: {said[0] if said else error}") from error
    SparkContext._ensure_initialized(gateway=gateway)


def prepare(master: str | None) -> None:
    """Makes workers run this Python, and checks that there is a Java.

    :param master: None if Spark knows it from elsewhere.
    :raises NoJava: there is none.
    """
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = _worker_python(master)
    if "SPARK_REMOTE" in os.environ or "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    raise NoJava("Spark needs Java 17 or later: install one (Debian: openjdk-17-jre-headless), or set JAVA_HOME")


def _master(given: str | None) -> str | None:
    """Returns the given master or the default, or None if Spark knows it from elsewhere."""
    return given or (None if MASTER_ELSEWHERE & os.environ.keys() else "local[*]")


def _worker_python(master: str | None) -> str:
    """Returns the program that runs workers: this Python, on this machine through `WORKER_PYTHON`.

    Spark places ``pyspark.zip`` before all other directories of ``PYTHONPATH``. Python keeps no compiled modules of an
    archive, so each process of Spark's would compile pyspark anew, which takes half a second. Without the archive it
    imports the pyspark that is installed beside this package, as this process did. With SPARK_HOME set that may be
    another release.
    """
    is_here = master is not None and master.startswith("local") and not master.startswith("local-cluster")
    if not is_here or "SPARK_HOME" in os.environ or not os.access(WORKER_PYTHON, os.X_OK) or os.name != "posix":
        return sys.executable
    os.environ["BARNABAS_WORKER_PYTHON"] = sys.executable
    return str(WORKER_PYTHON)
