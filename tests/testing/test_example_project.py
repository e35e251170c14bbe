"""The example project of docs/examples/order-service: its thirty tests, as its README runs them."""

import shutil
from pathlib import Path

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).parents[2] / "docs/examples/order-service"


def test_its_tests_pass(pytester):
    shutil.copytree(PROJECT, pytester.path / "order-service", ignore=shutil.ignore_patterns("__pycache__"))
    pytester.chdir()
    ran = pytester.runpytest_subprocess("order-service", "-p", "no:cacheprovider", "--timeout=60")
    outcomes = ran.parseoutcomes()
    assert outcomes.get("failed", 0) + outcomes.get("errors", 0) == 0, ran.stdout.str()
    assert outcomes["passed"] >= 30
