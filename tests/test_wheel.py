"""The content of the wheel that ``pip install`` installs.

Knows nothing of what the package does.
"""

import importlib.util
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IMPORTABLE = {"barnabas", "pyspark_barnabas"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built from the source tree with the installed tools: nothing is downloaded."""
    if importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("build") is None:
        pytest.skip("build and hatchling are not installed")
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(target), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = target.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_it_makes_nothing_importable_but_barnabas_and_where_spark_looks_for_it(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops - {metadata} == IMPORTABLE


def test_it_holds_every_module_of_the_tree(wheel: zipfile.ZipFile) -> None:
    modules = {path.relative_to(ROOT).as_posix() for top in IMPORTABLE for path in (ROOT / top).rglob("*.py")}
    assert modules <= set(wheel.namelist())


def test_it_holds_the_files_of_the_console(wheel: zipfile.ZipFile) -> None:
    room = ROOT / "barnabas" / "console"
    files = {path.relative_to(ROOT).as_posix() for name in ("static", "templates") for path in (room / name).iterdir()}
    assert "barnabas/console/static/htmx.LICENSE" in files
    assert files <= set(wheel.namelist())


def test_it_says_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    assert "barnabas/py.typed" in wheel.namelist()


def test_it_carries_its_licence(wheel: zipfile.ZipFile) -> None:
    (licence,) = (name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_it_declares_its_commands_and_its_plugin(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    entry_points = wheel.read(name).decode()
    assert "barnabas = barnabas.cli:main" in entry_points
    assert "[pytest11]\nbarnabas = barnabas.testing.pytest_plugin" in entry_points


def test_a_bare_install_brings_no_client_and_no_test_tool(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    required = Parser().parsestr(wheel.read(name).decode()).get_all("Requires-Dist") or []
    always = {line.split(">")[0].split(";")[0].strip().lower() for line in required if "extra ==" not in line}
    codecs = {"crc32c", "lz4", "python-snappy", "xxhash", "zstandard"}
    assert always == codecs | {"click", "cryptography", "google-re2", "joserfc", "uvloop"}
