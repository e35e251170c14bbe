"""The pages of docs/how-to/scenarios: the tests on them pass, and each scenario has a page."""

import re
from pathlib import Path

import pytest

from barnabas.faults.scenarios import Scenarios

pytest_plugins = ["pytester"]

FOLDER = Path(__file__).parents[2] / "docs/how-to/scenarios"
PAGES = sorted(page for page in FOLDER.glob("*.md") if page.stem != "README")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLIENTS = ["kafka-python", "confluent-kafka", "aiokafka", "Java"]


def test_they_pass(pytester):
    modules = {f"test_{page.stem.replace('-', '_')}": "\n\n".join(BLOCK.findall(page.read_text())) for page in PAGES}
    assert all("def test_" in text for text in modules.values())
    pytester.makepyfile(**modules)
    ran = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-q", "--timeout=60")
    outcomes = ran.parseoutcomes()
    assert (outcomes.get("failed", 0), outcomes.get("errors", 0)) == (0, 0), ran.stdout.str()
    assert outcomes["passed"] >= len(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_says_what_each_client_does(page):
    table = page.read_text().partition("## What clients do")[2]
    assert re.findall(r"^\| ([A-Za-z][A-Za-z-]+) \|", table, re.MULTILINE) == ["client", *CLIENTS]


def test_each_scenario_has_a_page():
    overview = (FOLDER / "README.md").read_text()
    assert set(re.findall(r"\]\(([a-z-]+)\.md\)", overview)) == {page.stem for page in PAGES}
    scenarios = {name for name in vars(Scenarios) if not name.startswith("_")}
    assert scenarios <= set(re.findall(r"`([a-z_]+)\(", overview))
