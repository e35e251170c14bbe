"""The recipes of docs/how-to/recipes: each page is a module of tests, and each heading one recipe."""

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGES = sorted((Path(__file__).parents[2] / "docs/how-to/recipes").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECIPE = re.compile(r"^## How do I .*\?$", re.MULTILINE)


@pytest.fixture(scope="module")
def texts():
    return {page.stem: page.read_text("utf-8") for page in PAGES}


def test_there_are_forty_of_them_and_each_is_a_test(texts):
    recipes = [each for text in texts.values() for each in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    assert len(recipes) >= 40
    assert [each.splitlines()[0] for each in recipes if "def test_" not in each] == []
    assert sum(len(RECIPE.findall(text)) for text in texts.values()) == len(recipes)


def test_they_pass(pytester, texts):
    modules = {f"test_{name.replace('-', '_')}": "\n\n".join(BLOCK.findall(text)) for name, text in texts.items()}
    pytester.makepyfile(**{name: text for name, text in modules.items() if text})
    ran = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-q", "--timeout=60")
    outcomes = ran.parseoutcomes()
    assert (outcomes.get("failed", 0), outcomes.get("errors", 0)) == (0, 0), ran.stdout.str()
    assert outcomes["passed"] >= 40


def test_the_overview_names_each_page(texts):
    assert set(re.findall(r"\]\(([a-z-]+)\.md\)", texts["README"])) == texts.keys() - {"README"}


def test_the_test_in_the_readme_passes(pytester):
    readme = (PAGES[0].parents[3] / "README.md").read_text("utf-8")
    (shown,) = (block for block in BLOCK.findall(readme) if "kafka_broker.faults" in block)
    pytester.makepyfile(shown)
    ran = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-q", "--timeout=60")
    assert ran.parseoutcomes().get("passed") == 1, ran.stdout.str()
