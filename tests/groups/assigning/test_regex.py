"""The topics that a regular expression matches: by the whole name, in RE2's syntax."""

import pytest

from barnabas.errors import InvalidRegularExpression
from barnabas.groups.assigning.regex import matching


def test_whole_names():
    assert matching("orders.*|pay", ["orders", "orders-eu", "my-orders", "pay", "payments"]) == {
        "orders",
        "orders-eu",
        "pay",
    }


def test_nothing():
    assert matching("nothing", ["orders"]) == matching("", ["orders"]) == set()


@pytest.mark.parametrize("pattern", ["(", "a**", "(?=a)"])
def test_what_re2_refuses(pattern):
    with pytest.raises(InvalidRegularExpression):
        matching(pattern, [])
