"""Rules of the source code that reviewers need not check."""

import ast
import re
from pathlib import Path

import pytest

import barnabas
from barnabas.api_handlers.registry import APIS, CONTROLLER_APIS

PACKAGE = Path(barnabas.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
IDS = [str(path.relative_to(PACKAGE)) for path in MODULES]

ROOT = Path(__file__).parent.parent
TESTS = sorted(Path(__file__).parent.rglob("*.py"))

LONGEST_FUNCTION = 70
LONGEST_MODULE = 600

HANDLERS = PACKAGE / "api_handlers"
SUPPORT = {"__init__", "registry", "context", "answering"}


def parsed(path):
    return ast.parse(path.read_text())


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_a_module_says_what_it_is_and_what_it_must_not_know(path):
    docstring = ast.get_docstring(parsed(path))
    assert docstring, "no docstring"
    if path.name not in ("__init__.py", "__main__.py"):
        sentences = re.split(r"[.:;!?](?:\s|$)", docstring)
        assert len([sentence for sentence in sentences if sentence.strip()]) >= 2, docstring


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_it_can_be_read(path):
    text = path.read_text()
    assert text.count("\n") <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, f"{node.name} does not fit on a screen"
        if isinstance(node, ast.Expr):  # PyPy 7.3.19 runs both branches where one is the end of a block
            assert not isinstance(node.value, ast.IfExp), f"line {node.lineno}: a statement with a condition is an if"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


BANNED = {
    "time.time": "clock.py: a Clock is passed in",
    "time.time_ns": "clock.py: a Clock is passed in",
    "time.sleep": "a Scheduler is passed in",
    "random.random": "a Random is passed in",
    "random.randrange": "a Random is passed in",
    "uuid.uuid4": "a Random is passed in",
    "datetime.now": "clock.py: a Clock is passed in",
    "os.open": "log/files.py is the one door to the disk",
    "open": "log/files.py is the one door to the disk",
}
MAY = {
    "clock.py": {"time.time", "time.time_ns"},
    "log/files.py": {"os.open", "open"},
}
OUTSIDE = ("cli/", "testing/")  #: programs and tools around the broker: theirs are the machine's files and clock


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_time_chance_and_files_are_passed_in(path):
    name = path.relative_to(PACKAGE).as_posix()
    if name.startswith(OUTSIDE):
        return
    tree = parsed(path)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            module, dot, _ = called.rpartition(".")
            if dot and module not in modules and module != "datetime":
                continue  # a parameter of that name: what was passed in
            assert called not in BANNED or called in MAY.get(name, ()), f"line {node.lineno}: {BANNED[called]}"


UNCLEAR = {
    "asked": "name the request or its fields: request, wanted, topics",
    "Asked": "name the kind of request: PageRequest",
    "told": "name the content: records, response, fields, known",
}  #: names that say nothing of what they hold


def names_in(tree):
    for node in ast.walk(tree):
        for attribute in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, attribute, None)
            if isinstance(name, str):
                yield node, name.strip("_")


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_things_are(path):
    assert path.stem not in UNCLEAR, UNCLEAR[path.stem]
    for node, name in names_in(parsed(path)):
        assert name not in UNCLEAR, f"line {node.lineno}, {name}: {UNCLEAR[name]}"
        assert "asked" not in name.lower().split("_"), f"line {node.lineno}, {name}: {UNCLEAR['asked']}"


def test_every_handler_is_in_the_table_of_contents():
    there = {path.stem for path in HANDLERS.glob("*.py")}
    registering = {stem for stem in there if re.search(r"^@api\(", (HANDLERS / f"{stem}.py").read_text(), re.MULTILINE)}
    assert registering == {api.module for table in (APIS, CONTROLLER_APIS) for api in table.values()}
    assert not registering & SUPPORT


def test_handlers_are_named_like_their_modules_and_messages():
    for api in APIS.values():
        module = api.module
        message = re.sub(r"(?<!^)(?=[A-Z])", "_", api.request.__name__.removesuffix("Request")).lower()
        assert api.handle.__name__ == module == message == api.request.__module__.rpartition(".")[2]


INTERNALS = sorted((ROOT / "docs" / "internals").glob("*.md"))


@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: page.stem)
def test_the_tests_that_a_page_names_exist(page):
    files = [path for folder in ("tests", "compat_tests") for path in (ROOT / folder).rglob("*.py")]
    known = {path.name for path in files}
    known |= {name for path in files for name in re.findall(r"def (test_\w+)", path.read_text())}
    named = set(re.findall(r"`(?:[\w/]+/)?(test_\w+(?:\.py)?)`", page.read_text()))
    assert named <= known


ARCHITECTURE = (ROOT / "docs" / "internals" / "architecture.md").read_text()


def test_the_architecture_names_each_room():
    rooms = {path.name + "/" for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    rooms |= {path.stem for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    named = set(re.findall(r"`([\w/]+)`", "".join(re.findall(r"^\| (`.*?) \|", ARCHITECTURE, re.MULTILINE))))
    assert rooms <= named, rooms - named


def test_the_architecture_counts_the_apis():
    versions = sum(api.versions.last - api.versions.first + 1 for api in APIS.values())
    assert f"{len(APIS)} APIs in {versions} versions" in ARCHITECTURE
