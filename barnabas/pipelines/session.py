"""The Spark session of a job that brings its own, and what has to be so before there is one.

Knows nothing of what is read or written in it.
"""

import os
import shutil
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""A job says itself how far it is."""


class NoJava(Exception):
    """Spark runs in a Java virtual machine, and there is none."""


def spark_session(name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is active, or a new one called `name`; `configs` go before what is meant here.

    Without `master` it is what ``spark-submit`` or ``SPARK_MASTER`` says, else all cores of this machine.
    Raises NoJava where Spark could not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    prepare()
    builder = SparkSession.builder.appName(name)
    for key, value in {**QUIET, **(configs or {})}.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    elif "SPARK_REMOTE" not in os.environ and "MASTER" not in os.environ and "SPARK_ENV_LOADED" not in os.environ:
        builder = builder.master("local[*]")
    return builder.getOrCreate()


def prepare() -> None:
    """See to it that workers run this Python, and that there is a Java to run Spark."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "SPARK_REMOTE" in os.environ or "JAVA_HOME" in os.environ or shutil.which("java"):
        return
    raise NoJava("Spark needs Java 17 or later: install one (Debian: openjdk-17-jre-headless), or set JAVA_HOME")
