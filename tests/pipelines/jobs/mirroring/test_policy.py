"""Names of mirrored topics, and which topics and groups are taken."""

import pytest

from barnabas.pipelines.jobs.mirroring.policy import (
    EXCLUDED_GROUPS,
    EXCLUDED_TOPICS,
    Patterns,
    Policy,
    selected,
    split,
)

DEFAULT = Policy("prague", "vienna")
IDENTITY = Policy("prague", "vienna", "identity")


@pytest.mark.parametrize(
    ("policy", "topic", "renamed"),
    [
        (DEFAULT, "orders", "prague.orders"),
        (DEFAULT, "berlin.orders", "prague.berlin.orders"),
        (Policy("prague", "vienna", separator="_"), "orders", "prague_orders"),
        (IDENTITY, "orders", "orders"),
    ],
)
def test_renaming(policy: Policy, topic: str, renamed: str) -> None:
    assert policy.renamed(topic) == renamed


@pytest.mark.parametrize(
    ("topic", "cycle"),
    [
        ("orders", False),
        ("vienna.orders", True),
        ("berlin.orders", False),
        ("berlin.vienna.orders", True),
        ("berlin.budapest.vienna.orders", True),
        ("vienna", False),
        ("vienna.", False),
        (".vienna.orders", False),
        ("viennas.orders", False),
    ],
)
def test_cycles_show_in_names(topic: str, cycle: bool) -> None:
    assert DEFAULT.is_cycle(topic) is cycle
    assert not IDENTITY.is_cycle(topic)


def test_a_chain_of_one_cluster_is_no_endless_cycle() -> None:
    assert not DEFAULT.is_cycle("prague." * 50 + "orders")


def test_topics_of_its_own() -> None:
    assert DEFAULT.checkpoints_topic == "prague.checkpoints.internal"
    assert Policy("prague", "vienna", separator="_").checkpoints_topic == "prague_checkpoints_internal"
    assert Policy("prague", "vienna", "identity", "_").checkpoints_topic == "prague.checkpoints.internal"
    assert DEFAULT.is_internal(DEFAULT.syncs_topic)
    assert Policy("prague", "vienna", separator="_").is_internal("prague_checkpoints_internal")


def test_selection() -> None:
    topics = [
        "payments",
        "orders",
        "vienna.orders",
        "berlin.orders",
        "orders.replica",
        "__consumer_offsets",
        "mm2-offset-syncs.vienna.internal",
        "connect-offsets-internal",
        ".hidden",
        "invoices",
    ]
    patterns = Patterns((".*",), EXCLUDED_TOPICS)
    assert selected(topics, patterns, DEFAULT) == ["berlin.orders", "invoices", "orders", "payments"]
    assert selected(topics, patterns, IDENTITY, {"orders"}) == [
        "berlin.orders",
        "invoices",
        "payments",
        "vienna.orders",
    ]
    assert selected(topics, Patterns(("orders", "pay.*"), ("payments",)), DEFAULT) == ["orders"]
    assert selected(topics, Patterns((".*",)), DEFAULT) == [
        "berlin.orders",
        "invoices",
        "orders",
        "orders.replica",
        "payments",
    ], "topics of clusters and mirrors themselves are never taken"


def test_patterns_match_from_end_to_end() -> None:
    patterns = Patterns(("a|b", "c"))
    assert [name for name in ("a", "b", "c", "ab", "ac", "bc", "") if name in patterns] == ["a", "b", "c"]


def test_groups() -> None:
    patterns = Patterns((".*",), EXCLUDED_GROUPS)
    names = ["shop", "console-consumer-123", "connect-sink", "__share_group"]
    assert [name for name in names if name in patterns] == ["shop"]


@pytest.mark.parametrize(
    ("given", "patterns"),
    [
        (["a,b"], ("a", "b")),
        (["a , b", "c"], ("a", "b", "c")),
        (["x{1,3},y"], ("x{1,3}", "y")),
        (["[,;]a,b"], ("[,;]a", "b")),
        ([r"\[a,b"], (r"\[a", "b")),
        (["(a,b),c"], ("(a,b)", "c")),
        ([""], ()),
    ],
)
def test_patterns_with_commas(given: list[str], patterns: tuple[str, ...]) -> None:
    assert split(given) == patterns


def test_no_expression() -> None:
    with pytest.raises(ValueError, match=r"'a\(' is not a regular expression"):
        assert "x" in Patterns(("a(",))
