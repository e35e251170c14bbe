import pytest

from barnabas.broker.producer_ids import ProducerIds
from barnabas.errors import CoordinatorLoadInProgress, NotController


class Controller:
    """Responds when the test tells it to."""

    def __init__(self):
        self.requests = []

    def allocate(self, done):
        self.requests.append(done)

    def answer(self, first, count=10):
        self.requests.pop(0)((first, count), None)

    def refuse(self):
        self.requests.pop(0)(None, NotController())


@pytest.fixture
def controller():
    return Controller()


@pytest.fixture
def producer_ids(controller):
    return ProducerIds(controller.allocate)


def taken(producer_ids, count):
    return [producer_ids.next() for _ in range(count)]


def test_without_a_block_there_is_no_id_yet(producer_ids, controller):
    with pytest.raises(CoordinatorLoadInProgress):
        producer_ids.next()
    with pytest.raises(CoordinatorLoadInProgress):
        producer_ids.next()
    assert len(controller.requests) == 1
    controller.answer(5000)
    assert taken(producer_ids, 2) == [5000, 5001]


def test_the_next_block_is_requested_before_the_current_one_ends(producer_ids, controller):
    producer_ids.when_available(lambda error: None)
    controller.answer(0)
    assert taken(producer_ids, 9) == list(range(9))
    assert controller.requests == []
    assert producer_ids.next() == 9
    assert len(controller.requests) == 1
    controller.answer(70)
    assert taken(producer_ids, 3) == [70, 71, 72]


def test_whoever_waits_hears_when_there_is_a_block_or_none(producer_ids, controller):
    heard = []
    producer_ids.when_available(heard.append)
    producer_ids.when_available(heard.append)
    assert len(controller.requests) == 1
    controller.refuse()
    assert [type(each) for each in heard] == [NotController] * 2
    producer_ids.when_available(heard.append)
    controller.answer(0)
    producer_ids.when_available(heard.append)
    assert heard[2:] == [None, None]
