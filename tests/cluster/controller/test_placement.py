from collections import Counter
from random import Random

import pytest

from barnabas.cluster.controller.placement import place
from barnabas.cluster.image.image import BrokerImage
from barnabas.errors import InvalidReplicationFactor


def brokers(*ids, racks=None, fenced=(), cordoned=()):
    directory = bytes([1]) * 16
    return {
        broker_id: BrokerImage(
            broker_id, 0, bytes(16), {}, rack=(racks or {}).get(broker_id), fenced=broker_id in fenced,
            log_dirs=(directory,), cordoned_log_dirs=(directory,) if broker_id in cordoned else (),
        )
        for broker_id in ids
    }  # fmt: skip


@pytest.fixture(params=range(5))
def random(request):
    return Random(request.param)


def test_one_broker_has_everything(random):
    assert place(brokers(1), 3, 1, random) == [(1,)] * 3


def test_leaders_and_replicas_are_spread_evenly(random):
    placed = place(brokers(1, 2, 3), 9, 2, random)
    assert Counter(replicas[0] for replicas in placed) == {1: 3, 2: 3, 3: 3}
    assert Counter(each for replicas in placed for each in replicas) == {1: 6, 2: 6, 3: 6}
    assert all(len(set(replicas)) == 2 for replicas in placed)


def test_no_two_replicas_share_a_rack_that_need_not(random):
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    for replicas in place(brokers(1, 2, 3, 4, racks=racks), 8, 2, random):
        assert {racks[each] for each in replicas} == {"a", "b"}


def test_a_fenced_broker_is_never_preferred(random):
    for replicas in place(brokers(1, 2, 3, fenced=(2,)), 9, 3, random):
        assert replicas[-1] == 2


def test_a_broker_whose_directories_are_closed_gets_nothing(random):
    assert place(brokers(1, 2, cordoned=(2,)), 4, 1, random) == [(1,)] * 4


@pytest.mark.parametrize("there", [brokers(1), brokers(), brokers(1, 2, cordoned=(1,)), brokers(1, 2, fenced=(1, 2))])
def test_there_are_not_enough(there, random):
    with pytest.raises(InvalidReplicationFactor):
        place(there, 1, 2, random)
