"""The dashboard, the alert rules and the page about metrics only use existing metrics."""

import json
import re
import subprocess
import sys
from pathlib import Path

import promql_parser
import pytest
import yaml

from barnabas.metrics.declared import COUNTER, HISTOGRAM, METRICS, SUMMARY

DOCS = Path(__file__).parents[2] / "docs"
MONITORING = DOCS / "examples" / "monitoring"
OF_THE_PROCESS = {"process_cpu_seconds_total": set(), "process_resident_memory_bytes": set()}
OF_PROMETHEUS = {"instance", "job"}


def queries():
    for panel in json.loads((MONITORING / "dashboard.json").read_text())["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def series():
    """Returns the names of all series, with their labels."""
    found = dict(OF_THE_PROCESS)
    for each in METRICS:
        labels = set(each.labels)
        if each.kind == HISTOGRAM:
            found[each.name + "_bucket"] = labels | {"le"}
        elif each.kind == SUMMARY:
            found |= {each.name + "_count": labels, each.name + "_sum": labels, each.name: labels | {"quantile"}}
        else:
            found[each.name + "_total" * (each.kind == COUNTER)] = labels
    return found


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_is_about_series_that_there_are(query):
    promql_parser.parse(query)
    known = series()
    names = re.findall(r"\b(?:kafka|barnabas|process)_\w+", query)
    assert names
    for name in names:
        assert name in known, f"{name} is not exposed"
    labels = set().union(*(known[name] for name in names)) | OF_PROMETHEUS
    assert set(re.findall(r"(\w+)(?:!=|=~|=)\"", query)) <= labels
    for grouped in re.findall(r"by \(([^)]*)\)", query):
        assert {each.strip() for each in grouped.split(",")} <= labels


def test_the_test_of_the_page_passes(tmp_path):
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "how-to" / "metrics.md").read_text(), re.DOTALL)
    (tmp_path / "test_scrape.py").write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "1 passed" in result.stdout, result.stdout + result.stderr


def test_each_group_of_metrics_is_on_the_dashboard_or_has_an_alert():
    text = " ".join(queries())
    for metric in (
        "requestqueuetimems", "responsesendtimems", "requestmetrics_failed", "failed_authentication", "logflushstats",
        "uncleanable_partitions", "isrshrinks", "isrexpands", "uncleanleaderelections", "atminisrpartitioncount",
        "underminisrpartitioncount", "barnabas_throttle_seconds", "sharegroupmetrics", "barnabas_client_requests",
    ):  # fmt: skip
        assert metric in text
