from collections.abc import Iterator

import pytest

from compat_tests.spark.registry import SchemaRegistry, schema_registry


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """An empty schema registry."""
    with schema_registry() as made:
        yield made
