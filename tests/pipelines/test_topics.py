"""The connector with which topics are read and written, where this does not depend on Spark."""

from typing import Any

import pytest

from barnabas.pipelines.topics import OURS, connector


@pytest.mark.parametrize("option", ["commitGroup", "delivery", "sinkId", "batchId", "DELIVERY"])
def test_options_that_sparks_own_connector_would_pass_over_are_ours(option: str) -> None:
    nobody: Any = None
    assert connector(nobody, {option: "x"}) == OURS
