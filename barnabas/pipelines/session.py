"""The Spark session of a job that brings its own, and what has to be so before there is one.

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
"""A job says itself how far it is."""

ON_ONE_MACHINE = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Hadoop's other way to a local file system starts a process, ``readlink`` or ``chmod``, for each file of a checkpoint:
several for each micro-batch, and a tenth of a second. Both put a file in its place by renaming it."""


MASTER_ELSEWHERE = frozenset({"SPARK_REMOTE", "MASTER", "SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT"})
"""Variables by which Spark knows its master already: it was told one, or has started this process itself. On YARN, with
the driver in the cluster, the last is the only one there is."""


class NoJava(Exception):
    """Spark runs in a Java virtual machine, and there is none."""


def spark_session(name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is active, or a new one called `name`; `configs` go before what is meant here.

    Without `master` it is what ``spark-submit``, ``SPARK_REMOTE`` or ``MASTER`` says, else all cores of this machine.
    Raises NoJava where Spark could not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    prepare()
    builder = SparkSession.builder.appName(name)
    if master is None and not MASTER_ELSEWHERE & os.environ.keys():
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    here = ON_ONE_MACHINE if master is not None and master.startswith("local") else {}
    for key, value in {**QUIET, **here, **(configs or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def start_java(configs: Mapping[str, str] | None = None, *, log: Path | None = None) -> None:
    """Start Spark's Java virtual machine in a process group of its own, before there is a session.

    Otherwise Ctrl-C in a terminal reaches the Python workers below it, which give up the batch that they are at.
    What Java and the workers print goes to `log`, if there is one; `configs` are the session's. Java ends with this
    process, however that ends. Does nothing where Java runs already or is elsewhere. Raises NoJava.
    """
    prepare()
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


def prepare() -> None:
    """See to it that workers run this Python, and that there is a Java to run Spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "SPARK_REMOTE" in os.environ or "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    raise NoJava("Spark needs Java 17 or later: install one (Debian: openjdk-17-jre-headless), or set JAVA_HOME")
