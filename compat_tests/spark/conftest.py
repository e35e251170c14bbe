"""One Spark session for all tests of this folder, as each start costs seconds; they run on one worker, one by one.

Tests that mostly wait for Spark in other processes (separate executors, Spark Connect, commands, killed jobs) have
``xdist_group("spark apart")``: another worker runs them at the same time.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from barnabas.pipelines import jars
from barnabas.pipelines.session import spark_session
from compat_tests.spark.processes import environment

JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""As for Apache Kafka: a JVM of a test mostly starts, which takes half as long without optimising and verifying."""

os.environ.setdefault("SPARK_SUBMIT_OPTS", JAVA)  # read by Spark's own scripts, also in other processes

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Of the session: compiling Java for each query of a few hundred rows takes longer than to interpret it. Sparks that
are started apart compile."""

SETTINGS = {
    "spark.driver.memory": "768m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def connector_jars() -> list[Path]:
    """Returns Spark's own connector, kept in the user's cache between runs; None if it cannot be fetched."""
    try:
        return jars.fetch()
    except jars.JarsUnavailable:
        return []


@pytest.fixture
def connector(spark: SparkSession, connector_jars: list[Path]) -> SparkSession:
    """Yields the session, with Spark's own connector on its class path."""
    if not connector_jars:
        pytest.skip("Spark's own connector cannot be fetched: `barnabas spark jars` says why")
    return spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, connector_jars: list[Path]) -> Iterator[SparkSession]:
    """Yields the session of this run; each test has its own names of topics, queries and views."""
    home = tmp_path_factory.mktemp("spark")
    os.environ["PYTHONPATH"] = environment()["PYTHONPATH"]
    session = spark_session(
        "tests",
        master="local[2]",
        configs={
            **SETTINGS,
            **INTERPRETED,
            **({"spark.jars": ",".join(map(str, connector_jars))} if connector_jars else {}),
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={home}/derby.log",
            "spark.local.dir": str(home),
        },
    )
    try:
        yield session
    finally:
        session.stop()
