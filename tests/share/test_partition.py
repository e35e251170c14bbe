"""Share partitions in scenario files, and what no scenario shows."""

from pathlib import Path

import pytest

from barnabas.share.acquiring import throttled_from
from barnabas.share.messages import SharePartitionState, StateBatch
from barnabas.share.states import FINAL_STATES, PREVIOUS_STATES, RecordState
from tests.scenarios import play
from tests.share.partition_world import World

SCENARIOS = sorted(Path(__file__).with_name("partition_scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path, request):
    play(path, World(), rewrite=request.config.getoption("--rewrite"))


def test_what_is_final_leads_nowhere():
    assert not any(before in FINAL_STATES for states in PREVIOUS_STATES.values() for before in states)
    assert set(PREVIOUS_STATES) == set(RecordState)


def test_records_come_in_smaller_portions_from_half_the_limit_on():
    assert [throttled_from(limit) for limit in range(2, 11)] == [2, 2, 2, 3, 3, 4, 4, 5, 5]


def test_a_state_that_begins_below_its_start_is_none():
    with pytest.raises(ValueError, match="start offset"):
        World().begin(SharePartitionState(start_offset=5, batches=[StateBatch(3, 6, 2, 1)]))


def test_who_is_fenced_writes_nothing_any_more():
    world = World()
    world("log 0-4 5-9")
    world("anna fetches max=1")
    world("ben fetches max=1")
    world("writes wait")
    world("anna accepts 0-4")
    world("writes fail")
    world.share.fence()
    assert world("writes end").startswith("CoordinatorNotAvailable")
    assert world("time 60") == ""
    assert world("ben accepts 5-9").startswith("NotLeaderOrFollower")
    assert world("ben renews 5-9").startswith("NotLeaderOrFollower")
    assert world("anna fetches") == "nothing"
