"""Which requests a rule fires on, and which rules are refused."""

from random import Random

import pytest

from barnabas.api_handlers.registry import APIS
from barnabas.clock import ManualClock
from barnabas.faults.naming import ImpossibleRule, api_name
from barnabas.faults.rules import Call, Rules
from barnabas.faults.script import Line, parse, rules_of
from barnabas.faults.subjects import subjects_of
from tests.requests import named


def a_call(key=0, version=9, *, client_id="c", connection=1, node=1, principal="User:ANONYMOUS", **values):
    request = named(APIS[key].request, version)
    for name, value in values.items():
        setattr(request, name, value)
    subjects = subjects_of(request, lambda each: None)
    return Call(key, version, client_id, principal, connection, node, request, subjects)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def rules(clock):
    return Rules(clock, Random(1))


def hits(rules, calls):
    return [number for number, call in enumerate(calls, 1) if rules.fire(call)]


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ({"nth": 3}, [3]),
        ({"first": 2}, [1, 2]),
        ({"every": 4}, [4, 8]),
        ({}, list(range(1, 11))),
    ],
)
def test_when_a_rule_fires(rules, when, expected):
    rule = rules.add(api="Produce", cut="before", **when)
    assert hits(rules, [a_call()] * 10) == expected
    assert rule.hits == len(expected)


def test_the_same_seed_gives_the_same_faults(clock):
    def run(seed):
        rules = Rules(clock, Random(seed))
        rules.add(api="Produce", cut="before", probability=0.3)
        return hits(rules, [a_call()] * 100)

    assert run(5) == run(5) != run(6)
    assert 10 < len(run(5)) < 50


def test_a_rule_may_end_by_time(rules, clock):
    rules.add(cut="before", seconds=3)
    assert rules.fire(a_call())
    clock.advance(3)
    assert not rules.fire(a_call())


def test_a_rule_may_hold_between_two_moments(rules, clock):
    rules.add(cut="before", since=2, seconds=5)
    fired = []
    for _ in range(7):
        fired.append(bool(rules.fire(a_call())))
        clock.advance(1)
    assert fired == [False, False, True, True, True, False, False]


def test_a_rule_may_hold_only_while_another_does_or_once_it_has_fired(rules):
    other = rules.add(api="Fetch", cut="before", first=1)
    rules.add(api="Produce", cut="before", during=other)
    rules.add(api="Metadata", cut="before", after=other)
    assert rules.fire(a_call(0))
    assert not rules.fire(a_call(3))
    assert rules.fire(a_call(1, 12))
    assert not rules.fire(a_call(0))
    assert rules.fire(a_call(3))


@pytest.mark.parametrize(
    ("match", "fits", "misses"),
    [
        ({"api": "heartbeat"}, a_call(12, 4), a_call(0)),
        ({"api": 12}, a_call(12, 4), a_call(0)),
        ({"versions": "3-5"}, a_call(version=5), a_call(version=6)),
        ({"client_id": "c"}, a_call(), a_call(client_id="d")),
        ({"principal": "User:a"}, a_call(principal="User:a"), a_call()),
        ({"connection": 2}, a_call(connection=2), a_call()),
        ({"node": 2}, a_call(node=2), a_call(node=None)),
        ({"group": "g"}, a_call(12, 4, group_id="g"), a_call(12, 4)),
        ({"group": "g"}, a_call(10, 4, key_type=0, coordinator_keys=["g"]), a_call(10, 4, key_type=1)),
        ({"group": "g"}, a_call(42, 2, groups_names=["g"]), a_call(42, 2)),
        ({"transactional_id": "t"}, a_call(26, 3, transactional_id="t"), a_call(26, 3)),
        ({"topic": "name-2"}, a_call(0), a_call(12, 4)),
    ],
)
def test_what_a_rule_matches(rules, match, fits, misses):
    if "topic" in match:
        match = {"topic": next(iter(fits.subjects.topics))[0]}
    rules.add(cut="before", **match)
    assert rules.fire(fits)
    assert not rules.fire(misses)


def test_a_partition_is_matched_with_its_topic(rules):
    call = a_call(0)
    topic, partition = sorted(call.subjects.topics)[0]
    rules.add(topic=topic, partition=partition, cut="before")
    assert rules.fire(call)
    rules.clear()
    rules.add(topic=topic, partition=partition + 10_000, cut="before")
    assert not rules.fire(call)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ({"api": "Prodce", "cut": "before"}, "did you mean Produce"),
        ({"api": 999, "cut": "before"}, "key 999"),
        ({"api": "Produce", "error": "NOT_LEADER"}, "NOT_LEADER_OR_FOLLOWER"),
        ({"api": "Produce", "error": 9999}, "code 9999"),
        ({"api": "Produce"}, "does nothing"),
        ({"api": "Produce", "cut": "during"}, "before, after, half"),
        ({"api": "Produce", "group": "g", "cut": "before"}, "JoinGroup"),
        ({"api": "Produce", "versions": "40", "cut": "before"}, "0-13"),
        ({"api": "Produce", "leader": 5}, "Metadata"),
        ({"api": "Produce", "handled": True, "cut": "after"}, "name the error"),
        (
            {"api": "Metadata", "versions": "0", "throttle_ms": 1, "error": "UNKNOWN_SERVER_ERROR", "nth": 0},
            "from 1 on",
        ),
        ({"refuse": True, "api": "Produce"}, "new connections"),
        ({"topik": "t", "cut": "before"}, "did you mean topic"),
        ({"tls": "badly"}, "garbage, alert, cut"),
        ({"tls": "alert", "client_id": "c"}, "match none"),
        ({"cut": "before", "since": 3, "seconds": 3}, "since is the begin"),
        ({"answer_version": 3}, "name the api"),
        ({"api": "Produce", "answer_version": 40}, "0-13, not 40"),
        ({"api": "Produce", "versions": "x", "cut": "before"}, "9, 3-8 or 12+"),
        ({"api": "Produce", "versions": "8-3", "cut": "before"}, "begins after its end"),
        ({"api": ["Produce"], "cut": "before"}, "a text or a whole number"),
        ({"api": "Produce", "error": 6.5}, "a name or a code"),
        ({"api": "Produce", "nth": "2", "cut": "before"}, "nth is a whole number"),
        ({"api": "Produce", "nth": 2, "first": 3, "cut": "before"}, "leave out first"),
        ({"api": "Produce", "delay": "soon"}, "delay is a number"),
        ({"api": "Produce", "delay": -1}, "delay is not negative"),
        ({"client_id": 5, "cut": "before"}, "client_id is a text"),
        ({"api": "Metadata", "stale": 1}, "stale is true or false"),
        ({"api": "Produce", "probability": 2, "cut": "before"}, "1 at most"),
        ({"api": "Produce", "seconds": 0, "cut": "before"}, "more than 0"),
        ({"api": "Produce", "partition": -1, "cut": "before"}, "partition is not negative"),
        ({"api": "Produce", "drip": 0}, "1 or more"),
        ({"api": "Produce", "correlation_id": 0}, "not 0"),
        ({"api": "Produce", "edit": "x"}, "is a function"),
        ({"api": "Produce", "during": 1, "cut": "before"}, "during is another rule"),
        ({"api": "FindCoordinator", "coordinator": ("h", 1)}, "a node id, a host and a port"),
        ({"connection": 0, "cut": "before"}, "from 1 on, 'new'"),
        ({"connection": "each", "cut": "before"}, "from 1 on, 'new'"),
    ],
)
def test_a_rule_that_can_never_match_is_refused_with_what_would_be_right(rules, rule, text):
    with pytest.raises(ImpossibleRule, match=text):
        rules.add(**rule)
    assert not rules


def test_a_rule_counts_is_lifted_and_reported(rules):
    with rules.add(api="Produce", cut="before") as rule:
        rules.fire(a_call())
        rule.wait_for_hits(1, timeout=0)
        with pytest.raises(TimeoutError, match="1 instead of 2"):
            rule.wait_for_hits(2, timeout=0)
    assert not rules.fire(a_call())
    assert "Produce 9 of 'c' on connection 1: hit 1 of the rule [api=Produce cut=before]" in rules.report()


def test_every_fault_is_one_line_in_the_log(rules, caplog):
    caplog.set_level("INFO")
    rules.add(api="Produce", cut="before", first=2)
    hits(rules, [a_call()] * 5)
    assert len(caplog.records) == 2


def test_scripts():
    text = """
    # the second one fails
    Produce nth=2 error=NOT_LEADER_OR_FOLLOWER topic="a b"
    * probability=0.5 delay=0.25
    refuse
    """
    given = [
        {"api": "Produce", "nth": 2, "error": "NOT_LEADER_OR_FOLLOWER", "topic": "a b"},
        {"probability": 0.5, "delay": 0.25},
        {"api": "refuse"},
    ]
    assert parse(text) == [Line(f"line {number}", each) for number, each in zip((3, 4, 5), given, strict=True)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nProduce what", "line 2: 'what' is not of the form name=value"),
        ("Produce nth=x", "line 1: nth=x: a whole number"),
        ("Produce delay=x", "line 1: delay=x: a number"),
        ("Metadata stale=yes", "line 1: stale=yes: true or false"),
        ("FindCoordinator coordinator=1,here", "line 1: coordinator=1,here: NODE,HOST,PORT"),
        ("Produce nth=1 nth=2", "line 1: nth is said twice"),
        ("\n\nProduce cut='before", "line 3: No closing quotation"),
        ("Produce cut=before\n\nProduce cut=never", "line 3: cut='never' is none of"),
        ("Produce after=1 cut=before", "line 1: after is the number of a rule before this one"),
        ("- api: Produce\n- api: Produce\n  cut: before\n  during: x", "rule 1: the rule does nothing"),
        ("- {api: Produce, cut: before, during: x}", "rule 1: during is the number of a rule"),
        ("- {api: Produce, nth: '2', cut: before}", "rule 1: nth is a whole number, not '2'"),
    ],
)
def test_a_script_says_where_it_is_wrong(rules, text, said):
    with pytest.raises(ImpossibleRule, match=said):
        rules_of(text, rules.possible)


@pytest.mark.parametrize(
    "text",
    [
        "Fetch first=1 cut=before\nProduce during=1 cut=before\nMetadata after=1 cut=before",
        "- {api: Fetch, first: 1, cut: before}\n- {api: Produce, during: 1, cut: before}\n"
        "- {api: Metadata, after: 1, cut: before}",
    ],
)
def test_a_script_names_its_rules_by_their_numbers(rules, text):
    rules.add(api="Heartbeat", cut="before")  # not one of the script
    rules.set(*rules_of(text, rules.possible))
    assert [rule.number for rule in rules.all] == [1, 2, 3, 4]
    assert rules.fire(a_call(0))
    assert not rules.fire(a_call(3))
    assert rules.fire(a_call(1, 12))
    assert not rules.fire(a_call(0))
    assert rules.fire(a_call(3))


def test_connections_that_are_opened_after_the_rule_was_set(rules):
    each, second = rules.add(connection="new", delay=1), rules.add(connection="+2", delay=1)
    refused = rules.add(connection="+3", refuse=True)
    assert not rules.fire(a_call(connection=7))
    assert [rules.refuses(number) for number in (8, 10, 11)] == [False, False, True]
    fired = {number: rules.fire(a_call(connection=number)) for number in (7, 8, 10, 11)}
    assert fired == {7: [], 8: [each], 10: [each, second], 11: [each]}
    assert refused.hits == 1


def test_connections_of_one_broker_are_refused(rules):
    rules.add(node=2, refuse=True)
    assert [rules.refuses(1, node) for node in (1, 2, None)] == [False, True, False]


def test_apis_have_apache_kafkas_names():
    for key, api in APIS.items():
        assert api_name(key) == api.request.__name__.removesuffix("Request")


def test_scripts_in_yaml():
    text = """
- api: Produce
  nth: 2
  error: NOT_LEADER_OR_FOLLOWER   # the second one
- {api: "*", delay: 0.5}
- {api: FindCoordinator, coordinator: [5, elsewhere, 9092]}
"""
    assert parse(text) == [
        ("rule 1", {"api": "Produce", "nth": 2, "error": "NOT_LEADER_OR_FOLLOWER"}),
        ("rule 2", {"delay": 0.5}),
        ("rule 3", {"api": "FindCoordinator", "coordinator": (5, "elsewhere", 9092)}),
    ]
    for wrong, said in (("- what", "rule 1: 'what' is not"), ("- [", "no YAML")):
        with pytest.raises(ImpossibleRule, match=said):
            parse(wrong)
