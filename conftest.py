"""In which order tests begin."""

import pytest

LONG = ("tests/history/", "tests/wire/test_malformed.py", "compat_tests/kafka_python_suite/", "compat_tests/groups/")
"""Where tests take half a minute, or wait for time to pass."""


@pytest.hookimpl(trylast=True)  # behind pytest-randomly
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first, so that no worker has it to do when the others have come to their end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
