"""Which requests a rule fires on, and which rules are refused."""

from random import Random

import pytest

from barnabas.api_handlers.registry import APIS
from barnabas.clock import ManualClock
from barnabas.faults.naming import ImpossibleRule, api_name
from barnabas.faults.rules import Call, Rules
from barnabas.faults.script import parse
from barnabas.faults.subjects import subjects_of
from tests.requests import named


def a_call(key=0, version=9, *, client_id="c", connection=1, principal="User:ANONYMOUS", **values):
    request = named(APIS[key].request, version)
    for name, value in values.items():
        setattr(request, name, value)
    return Call(key, version, client_id, principal, connection, request, subjects_of(request, lambda each: None))


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
    assert parse(text) == given
    with pytest.raises(ImpossibleRule, match="line 2: 'what' is not of the form name=value"):
        parse("\nProduce what")
    with pytest.raises(ImpossibleRule, match="line 1"):
        parse("Produce nth=x")


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
        {"api": "Produce", "nth": 2, "error": "NOT_LEADER_OR_FOLLOWER"},
        {"delay": 0.5},
        {"api": "FindCoordinator", "coordinator": (5, "elsewhere", 9092)},
    ]
    for wrong, said in (("- what", "rule 1: 'what' is not"), ("- [", "no YAML")):
        with pytest.raises(ImpossibleRule, match=said):
            parse(wrong)
