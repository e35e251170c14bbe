import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from barnabas.pipelines import session

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


class Builder:
    """Collects the settings of a session."""

    def __init__(self):
        self.said = {}

    def appName(self, name):
        self.said["spark.app.name"] = name
        return self

    def master(self, master):
        self.said["spark.master"] = master
        return self

    def config(self, key, value):
        self.said[key] = value
        return self

    def getOrCreate(self):
        return self.said


@pytest.fixture
def settings_of(monkeypatch):
    """``settings_of(...)`` returns the settings of a session that `spark_session` would start."""
    for name in session.MASTER_ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    monkeypatch.setenv("JAVA_HOME", "/somewhere")

    def settings_of(**given):
        fake = SimpleNamespace(getActiveSession=lambda: None, builder=Builder())
        monkeypatch.setattr(session, "SparkSession", fake)
        return session.spark_session("job", **given)

    return settings_of


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local-cluster[2,1,1024]"])
def test_on_one_machine_checkpoints_are_written_without_other_processes(settings_of, master):
    said = settings_of(master=master)
    assert said["spark.master"] == (master or "local[*]")
    assert said[MANAGER].endswith(".FileSystemBasedCheckpointFileManager")


def test_what_is_said_goes_before_what_is_meant(settings_of):
    said = settings_of(configs={MANAGER: "mine", "spark.ui.enabled": "true"})
    assert (said[MANAGER], said["spark.ui.enabled"]) == ("mine", "true")


def test_on_a_cluster_checkpoints_are_as_spark_has_them(settings_of):
    assert MANAGER not in settings_of(master="yarn")


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "MASTER", "SPARK_ENV_LOADED", "PYSPARK_GATEWAY_PORT"])
def test_a_master_that_the_environment_names_is_left_to_spark(settings_of, monkeypatch, name):
    monkeypatch.setenv(name, "there")
    said = settings_of()
    assert "spark.master" not in said and MANAGER not in said


@pytest.mark.parametrize(
    ("master", "home", "expected"),
    [
        ("local[2]", None, str(session.WORKER_PYTHON)),
        (None, None, str(session.WORKER_PYTHON)),
        ("local[2]", "/opt/spark", sys.executable),
        ("local-cluster[2,1,1024]", None, sys.executable),
        ("spark://host:7077", None, sys.executable),
    ],
)
def test_workers_on_this_machine_import_the_installed_pyspark(settings_of, monkeypatch, master, home, expected):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("BARNABAS_WORKER_PYTHON", "")
    if home is not None:
        monkeypatch.setenv("SPARK_HOME", home)
    settings_of(master=master)
    assert os.environ["PYSPARK_PYTHON"] == expected


def test_a_worker_finds_no_archive_of_spark_in_its_path():
    spark = "/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-src.zip:/spark/jars/spark-core.jar"
    ran = subprocess.run(
        [session.WORKER_PYTHON, "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1])", "an argument"],
        env={"BARNABAS_WORKER_PYTHON": sys.executable, "PYTHONPATH": f"{spark}:/my own/code:/more"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "/my own/code:/more an argument\n"
