"""A log manager whose workers clean at once, and one whose workers wait for the test."""

import pytest

from tests.log.cleaner.house import House


@pytest.fixture
def house():
    return House()


@pytest.fixture
def holding():
    return House(holds=True)
