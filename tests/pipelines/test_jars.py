import json
import sys

import pytest

from barnabas.cli import main
from barnabas.pipelines import jars
from barnabas.pipelines.jars import JarsUnavailable

MVN = """#!{python}
import json, os, pathlib, sys
given = dict(each[2:].split("=", 1) for each in sys.argv[1:] if each.startswith("-D") and "=" in each)
group, name, version, kind = given["artifact"].split(":")
home = pathlib.Path({home!r})
with open(home / "requests", "a") as requests:
    requests.write(f"{{name}}:{{version}}\\n")
assert not any(pathlib.Path.cwd().iterdir())
there = json.loads((home / "there").read_text())
if there is None:
    print("[ERROR] Unknown host")
    sys.exit(1)
versions = there.get(name, ["3.9.2", "2.13.1"])
version = versions[-1] if version == "LATEST" and versions else version
if version not in versions:
    print(f"[ERROR] Could not find artifact {{name}}")
    sys.exit(1)
(pathlib.Path(given["outputDirectory"]) / f"{{name}}-{{version}}.jar").write_text("a jar")
"""

SQL, TOKENS = "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A mvn that knows the releases it is given, or reaches nothing; ``requests()`` returns the requested jars."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mvn").write_text(MVN.format(python=sys.executable, home=str(tmp_path)))
    (tools / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "installed_release", lambda: "4.3.0")

    def having(**releases):
        named = None if releases.get("none") else {SQL: releases["sql"], TOKENS: releases["tokens"]}
        (tmp_path / "there").write_text(json.dumps(named))
        return lambda: (tmp_path / "requests").read_text().splitlines()

    return having


def test_the_installed_release_is_fetched_into_the_cache_once(repository, tmp_path):
    requests = repository(sql=["4.2.0", "4.3.0"], tokens=["4.3.0"])
    found = jars.fetch()
    assert [path.name for path in found] == [
        f"{SQL}-4.3.0.jar",
        f"{TOKENS}-4.3.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ]
    assert {path.parent for path in found} == {tmp_path / "cache" / "barnabas" / "spark-connector-4.3.0"}
    assert requests() == [f"{SQL}:4.3.0", f"{TOKENS}:4.3.0", "kafka-clients:3.9.2", "commons-pool2:2.13.1"]
    assert jars.fetch() == found
    assert len(requests()) == 4


def test_the_newest_is_taken_where_the_installed_release_is_missing(repository, tmp_path):
    requests = repository(sql=["4.2.0", "4.2.0-preview5"], tokens=["4.1.0-preview1"])
    results = []
    found = jars.fetch(tmp_path / "to", say=results.append)
    assert [path.name for path in found[:2]] == [f"{SQL}-4.2.0.jar", f"{TOKENS}-4.1.0-preview1.jar"]
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted(path.name for path in found)
    assert "  4.3.0 does not exist; the newest is 4.2.0" in results
    assert requests()[3:6] == [f"{TOKENS}:4.3.0", f"{TOKENS}:LATEST", f"{TOKENS}:4.1.0"]


def test_what_no_repository_has_is_named(repository, tmp_path):
    repository(sql=["4.3.0"], tokens=[])
    with pytest.raises(JarsUnavailable, match=f"org.apache.spark:{TOKENS} is in no repository"):
        jars.fetch(tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == [], "half of the jars would look like a connector"


def test_without_a_network_it_says_what_mvn_said(repository, capsys):
    repository(none=True)
    assert main(["spark", "jars"]) == 1
    error = capsys.readouterr().err
    assert f"mvn could not fetch org.apache.spark:{SQL}:4.3.0" in error
    assert "Unknown host" in error


def test_without_mvn_it_says_what_to_install(repository, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["spark", "jars"]) == 1
    assert "mvn, which fetches the jars, is not on the PATH: install Maven" in capsys.readouterr().err


def test_spark_is_told_by_a_line_to_paste(repository, capsys, tmp_path):
    repository(sql=["4.3.0"], tokens=["4.3.0"])
    assert main(["spark", "jars", "--to", str(tmp_path / "to")]) == 0
    out = capsys.readouterr().out
    names = ",".join(map(str, jars.fetched(tmp_path / "to")))
    assert f"spark-submit --jars {names} job.py" in out
    assert f'config("spark.jars", "{names}")' in out
