"""The examples of docs/examples/other-languages: tests that start a broker."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.go.program import HERE as GO
from compat_tests.node.installed import installed

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs/examples/other-languages"


COMPILING_S = 1800
"""How long a compiler may take. The tests that compile have more than the time of others."""


def run(home: Path, *command: str, timeout: float = 280, **variables: str) -> str:
    """Runs the tests, with this ``barnabas``. Returns their output."""
    shim = home / "barnabas"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m barnabas "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "BARNABAS": str(shim), "PYTHONPATH": str(ROOT), **variables}
    ran = subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_javascript(tmp_path: Path) -> None:
    modules = installed()
    shutil.copy(EXAMPLES / "orders.test.cjs", tmp_path)
    printed = run(tmp_path, "node", "--test", "orders.test.cjs", NODE_PATH=str(modules))
    assert "pass 3" in printed


@pytest.mark.long  # compiles the client
@pytest.mark.timeout(2 * COMPILING_S)
def test_go(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    for name in ("go.mod", "go.sum"):
        shutil.copy(GO / name, tmp_path)
    shutil.copy(EXAMPLES / "orders_test.go", tmp_path)
    run(tmp_path, "go", "test", "-mod=mod", "-run", "^$", ".", timeout=COMPILING_S)
    printed = run(tmp_path, "go", "test", "-mod=mod", "-v", ".")
    assert printed.count("--- PASS") == 3


@pytest.mark.long  # fetches JUnit
@pytest.mark.timeout(2 * COMPILING_S)
def test_java(tmp_path: Path) -> None:
    if shutil.which("mvn") is None:
        pytest.skip("mvn is not installed")
    for name in ("pom.xml", "OrdersTest.java"):
        shutil.copy(EXAMPLES / name, tmp_path)
    fetch = ["mvn", "-q", "-B", "dependency:resolve"]
    if subprocess.run(fetch, cwd=tmp_path, capture_output=True, timeout=280, check=False).returncode:
        pytest.skip("mvn could not fetch JUnit")
    assert "Tests run: 3, Failures: 0, Errors: 0" in run(tmp_path, "mvn", "-B", "test", timeout=COMPILING_S)


@pytest.mark.long  # compiles the client
@pytest.mark.timeout(2 * COMPILING_S)
def test_rust(tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    for name in ("Cargo.toml", "orders.rs"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (tmp_path / "lib.rs").touch()
    if subprocess.run(["cargo", "fetch"], cwd=tmp_path, capture_output=True, timeout=280, check=False).returncode:
        pytest.skip("cargo could not fetch rskafka")
    run(tmp_path, "cargo", "test", "--no-run", "--test", "orders", timeout=COMPILING_S)
    assert "2 passed; 0 failed" in run(tmp_path, "cargo", "test", "--test", "orders")
