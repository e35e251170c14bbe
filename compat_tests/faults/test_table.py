"""The table of docs/how-to/faults-and-clients.md: the result of a send, or a commit, under each fault.

``pytest --rewrite`` writes the results into the page: read the diff before you commit it.
"""

import re
from pathlib import Path

import pytest

from barnabas.testing import Broker

from .clients import OFFSET, TOPIC, Failed, Options

PAGE = Path(__file__).parents[2] / "docs/how-to/faults-and-clients.md"
NAMES = ("kafka-python", "confluent-kafka", "aiokafka", "Java")
ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$", re.MULTILINE)
TIMES = {0: "never", 1: "once", 2: "twice"}
REQUEST_TIMEOUTS_MS = (1_000, 4_000)
"""A busy machine may be silent for a second, too: then the longer one is used."""
ABOUT_GROUPS = ("FindCoordinator", "OffsetCommit", "OffsetFetch")


def table():
    return {rule: [cell.strip() for cell in rest.split("|")] for rule, rest in ROW.findall(PAGE.read_text("utf-8"))}


ROWS = table()


@pytest.fixture(scope="module")
def with_tls():
    with Broker(tls=True) as broker:
        yield broker


def of_a_record(broker, client, servers, request_timeout_ms):
    error = None
    try:
        client.send(servers, Options(request_timeout_ms=request_timeout_ms, delivery_timeout_ms=3 * request_timeout_ms))
    except Failed as failed:
        error = failed.name
    times = len(broker.records(TOPIC))
    return TIMES[times] if error is None else f"{error} ({times})"


def of_an_offset(client, servers):
    try:
        return {OFFSET: "once", None: "none found"}[client.commit(servers)]
    except Failed as failed:
        return failed.name


@pytest.mark.parametrize("rule", ROWS)
def test_the_behaviour_of_clients(request, running, with_tls, client, rule):
    broker = with_tls if "tls=" in rule else running
    column = NAMES.index(client.name)
    for request_timeout_ms in REQUEST_TIMEOUTS_MS:
        seen = behaviour(broker, client, rule, request_timeout_ms)
        if seen == ROWS[rule][column]:
            return
    if request.config.getoption("--rewrite"):
        rewrite(rule, column, seen)
    else:
        assert seen == ROWS[rule][column]


def behaviour(broker, client, rule, request_timeout_ms):
    broker.reset()
    broker.create_topic(TOPIC)
    servers = broker.client_settings(client.settings_name)
    (set_rule,) = broker.faults.script(rule)
    if rule.startswith(ABOUT_GROUPS):
        seen = of_an_offset(client, servers)
    else:
        seen = of_a_record(broker, client, servers, request_timeout_ms)
    assert set_rule.hits >= 1
    broker.faults.clear()
    return seen


def rewrite(rule, column, seen):
    cells = table()[rule]
    cells[column] = seen
    text = PAGE.read_text("utf-8")
    PAGE.write_text(re.sub(rf"^\| `{re.escape(rule)}` \|.*$", f"| `{rule}` | {' | '.join(cells)} |", text, flags=re.M))


def test_each_kind_of_fault_is_in_the_table():
    from barnabas.faults.rules import ACTIONS

    named = {word.partition("=")[0] for rule in ROWS for word in rule.split()[1:]}
    assert set(ACTIONS) - named == {"edit"}
    assert all(len(cells) == len(NAMES) for cells in ROWS.values())


def test_an_answer_that_a_function_edits(broker, client):
    """The record was appended, and the response has an error: it is sent again."""

    def refuse(response):
        response.responses[0].partition_responses[0].error_code = 6  # NOT_LEADER_OR_FOLLOWER

    with broker.faults.add(api="Produce", nth=1, edit=refuse) as rule:
        client.send(broker.client_settings(client.settings_name), Options())
    assert rule.hits == 1
    assert len(broker.records(TOPIC)) == 2
