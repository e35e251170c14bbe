"""Skips these tests on Apache Kafka 4, which does not serve old clients."""

import os

import pytest


@pytest.fixture(autouse=True)
def understood() -> None:
    if os.environ.get("BARNABAS_COMPAT_BROKER") == "apache":
        pytest.skip("Apache Kafka 4 dropped what these clients speak; BARNABAS_COMPAT_BOOTSTRAP can name a 3.9")
