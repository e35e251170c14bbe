"""One seed, one plan."""

from collections import Counter
from itertools import islice

import pytest

from tests.history.clients import NEWER
from tests.history.plan import (
    CRASH,
    IDENTITIES,
    IDENTITIES_OF_2,
    KEYS,
    OF_CLOCKS,
    OF_DELAYS,
    OF_NETWORKS,
    WEIGHTS,
    WRITABLE,
    plan,
    steps,
)


def drawn(made, worker, count=500):
    return list(islice(steps(made.seed, worker), count))


def test_the_same_seed_makes_the_same_plan():
    made, again = plan(7, 60, 2), plan(7, 60, 2)
    assert made == again
    assert [drawn(made, worker) for worker in made.workers] == [drawn(again, worker) for worker in again.workers]


def test_another_seed_makes_another():
    made, other = plan(7, 60, 2), plan(8, 60, 2)
    assert made.faults != other.faults
    assert drawn(made, made.workers[0]) != drawn(other, other.workers[0])


@pytest.mark.parametrize("seed", range(5))
def test_each_fault_has_its_turn_a_kill_first(seed):
    faults = plan(seed, 60, 2).faults
    assert faults[0].kind == "kill"
    assert {fault.kind for fault in faults} == set(WEIGHTS)
    assert sum(fault.wait_s + fault.seconds for fault in faults) <= 60


def test_packets_are_lost_where_there_is_a_network_between_nodes():
    assert {fault.kind for fault in plan(7, 120, 2, networked=True).faults} == set(WEIGHTS | OF_NETWORKS)


def test_clocks_and_delays_have_their_turn_where_they_can_be_set():
    faults = plan(7, 180, 2, networked=True, delayed=True, skewed=True).faults
    assert {fault.kind for fault in faults} == set(WEIGHTS | OF_NETWORKS | OF_DELAYS | OF_CLOCKS)


def test_faults_can_be_left_out():
    without = frozenset(WEIGHTS) - {"cut"}
    assert {fault.kind for fault in plan(7, 60, 2, without=without).faults} == {"cut"}
    assert plan(7, 60, 2, without=frozenset(WEIGHTS)).faults == ()


def test_the_raw_clients_speak_the_generation_of_the_cluster():
    for level in (1, 2):
        raw = {worker.client for worker in plan(7, 60, level).workers if worker.client.startswith("raw")}
        assert raw == {f"raw-v{level}"}


OPTIONS = [{}, {"consumer_protocol": True}, {"spares_librdkafka": True}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("level", [1, 2])
def test_clients_of_both_versions_of_transactions_share_no_transactional_id(level, options):
    versions = {}
    for worker in plan(7, 60, level, **options).workers:
        for identity in worker.identities:
            versions.setdefault(identity, set()).add(worker.client == "raw-v2")
    assert all(len(each) == 1 for each in versions.values()), versions


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("level", [1, 2])
def test_each_shared_transactional_id_has_several_clients_that_fence_each_other(level, options):
    made = plan(7, 60, level, **options)
    users = Counter()
    for worker in made.workers:
        users.update({worker.identities[step.identity] for step in drawn(made, worker) if step.kind == "take_over"})
    assert users.keys() == {*IDENTITIES, *(IDENTITIES_OF_2 if level == 2 else ())}
    assert min(users.values()) >= 2, users


def test_a_group_may_have_members_of_both_protocols():
    made = plan(7, 60, 2, consumer_protocol=True)
    members = {worker.client for worker in made.workers if worker.group == "transformers"}
    assert members == {NEWER, "kafka-python"}
    assert NEWER not in {worker.client for worker in plan(7, 60, 2).workers}


def test_a_long_run_can_do_without_librdkafka():
    made = plan(7, 60, 2, consumer_protocol=True, spares_librdkafka=True)
    assert {worker.client for worker in made.workers} == {"kafka-python", "aiokafka", "raw-v2"}
    assert made.faults == plan(7, 60, 2).faults


def test_clients_do_everything_sooner_or_later():
    made = plan(7, 60, 2)
    done = [step for worker in made.workers if not worker.transforms for step in drawn(made, worker)]
    assert {step.kind for step in done} == {
        "send", "poll", "transaction", "assign", "subscribe", "reopen", "take_over",
    }  # fmt: skip
    assert any(step.end == CRASH for step in done)
    transactions = [step for step in done if step.kind == "transaction"]
    assert set(WRITABLE) | {""} == {key for step in transactions for key in step.keys}
    assert {key for step in done if step.kind == "assign" for key in step.keys} == set(KEYS)
