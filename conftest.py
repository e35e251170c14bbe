"""In which order tests begin, and their option."""

import pytest

LONG = ("tests/history/", "tests/wire/test_malformed.py", "compat_tests/kafka_python_suite/", "compat_tests/groups/")
"""Where tests take half a minute, or wait for time to pass."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what is printed or seen now into scenario files and tables; read the diff before committing it",
    )


@pytest.hookimpl(trylast=True)  # behind pytest-randomly
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long goes first, so that no worker has it to do when the others have come to their end."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
