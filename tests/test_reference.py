"""docs/reference/, and what other pages show of tables, says what the code says."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["configs.md", "apis.md", "rights.md", "errors.md", "pipeline.md", "metrics.md"])
def test_the_file_is_what_make_docs_writes(generate, name):
    assert (DOCS / "reference" / name).read_text("utf-8") == generate.pages()[name], "run `make docs`"


def test_the_tables_about_transactions_are_those_of_the_code(generate):
    page = generate.TRANSACTIONS.read_text("utf-8")
    assert page == generate.transactions(page), "run `make docs`"
    assert page.count("stateDiagram") == 1 and "| `PrepareAbort` |" in page


def test_the_diagrams_of_groups_are_those_of_the_code(generate):
    page = generate.GROUPS.read_text("utf-8")
    assert page == generate.groups(page), "run `make docs`"
    assert "PreparingRebalance --> CompletingRebalance" in page
    assert page.count("stateDiagram") == page.count("states of a") // 2


def test_the_list_of_decisions_names_each_by_its_title():
    folder = DOCS / "decisions"
    pages = sorted(folder.glob("0*.md"))
    titles = [page.read_text("utf-8").partition("\n")[0].removeprefix("# ").partition(". ") for page in pages]
    lines = [f"{number}. [{title}]({page.name})" for (number, _, title), page in zip(titles, pages, strict=True)]
    assert (folder / "README.md").read_text("utf-8").endswith("\n\n" + "\n".join(lines) + "\n")
