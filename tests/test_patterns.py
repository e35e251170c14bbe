"""Patterns of names: which ones Apache Kafka 4.3 takes, and which names are as they say."""

import re
import sys

import pytest

from barnabas.errors import InvalidRegularExpression
from barnabas.patterns import matcher


@pytest.mark.parametrize(
    "pattern",
    [
        "orders-.*",
        "(?i)ORDERS-7",
        "(?<name>o).*",
        "(?P<name>o).*",
        r"\pLrders-\d",
        "orders-(?:7|8)",
        r"\Aorders-7\z",
        r"\Qorders\E-7",
        "[[:alpha:]]+-7",
        r"\x6Frders-\x{37}",
        "^orders-7$",
        "nothing|orders-7",
        "(?U)orders-.",
    ],
)
def test_it_is_as_the_pattern_says(pattern):
    assert matcher(pattern)("orders-7")


@pytest.mark.parametrize("pattern", ["orders", "rders-7", "", r"\d*", "{", "w{,2}", "[^]o]", "[a&&b]", r"\p{Greek}"])
def test_the_whole_name_counts(pattern):
    assert not matcher(pattern)("orders-7")


@pytest.mark.parametrize(
    "pattern",
    [
        "[", "(", "\\", "[z-a]", r"[a-\d]", "a**", "a++", "a*+", "a{3}+", "a{1001}",
        r"(a)\1", "(?=a)", "(?<=a)b", "(?>a)", "(?#c)a", "(?x) a", "(?a)a", "(?P=n)", "(?P>n)",
        r"\Z", r"\u0077", r"\h", r"\8", r"\y", r"\c", r"\e", r"\G", r"\R", r"\X", r"\K",
        r"[\b]", "[[:foo:]]", r"\p{Foo}",
    ],
)  # fmt: skip
def test_what_re2_refuses_is_refused(pattern):
    with pytest.raises(InvalidRegularExpression):
        matcher(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[", "missing closing ]"),
        ("(", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("\\", "trailing backslash at end of expression"),
        ("*", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{2,1}", "invalid repeat count"),
        ("(?=x)", "invalid or unsupported Perl syntax"),
        ("(?P<n", "invalid named capture"),
        (r"\1", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
    ],
)
def test_errors_have_the_texts_of_kafkas_library(pattern, text):
    with pytest.raises(InvalidRegularExpression, match=f"^{re.escape(text)}$"):
        matcher(pattern)


def test_no_pattern_takes_for_ever():
    assert not matcher("(a*)*(a*)*(a*)*b")("a" * 10_000)


def test_without_the_package_no_pattern_is_taken(monkeypatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(InvalidRegularExpression, match="google-re2"):
        matcher("a")
