"""What the shop sends."""

import json

import pytest
from kafka.errors import KafkaError
from order_service import BadOrder, invoice_of, read_order

TEA = {"id": "1", "customer": "ann", "item": "tea", "cents": 290}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"tea", "no JSON"),
        (None, "no JSON"),
        (b"[]", "fields"),
        (b'{"id": "1"}', "fields"),
        (json.dumps({**TEA, "cents": "290"}).encode(), "no amount"),
        (json.dumps({**TEA, "cents": -1}).encode(), "no amount"),
    ],
)
def test_what_is_no_order(value, why):
    with pytest.raises(BadOrder, match=why):
        read_order(value)


@pytest.mark.parametrize(("cents", "charged"), [(290, 290), (999, 999), (1000, 900), (1999, 1799)])
def test_a_tenth_off_from_ten_euros_on(cents, charged):
    assert invoice_of({**TEA, "cents": cents})["cents"] == charged


def test_an_order_is_sent(broker, shop):
    shop.order(TEA)
    (record,) = broker.records("orders")
    assert (record.key, json.loads(record.value)) == (b"ann", TEA)


def test_orders_of_one_customer_keep_their_order(broker, shop):
    for number in range(5):
        shop.order({**TEA, "id": str(number)})
    records = broker.records("orders")
    assert len({record.partition for record in records}) == 1
    assert [json.loads(record.value)["id"] for record in records] == list("01234")


def test_all_replicas_acknowledge_an_order(broker, shop):
    with broker.expect(api="Produce", client_id="shop", times=1) as expected:
        shop.order(TEA)
    assert expected.requests[0].request.acks == -1


def test_a_leader_that_moves(broker, shop):
    with broker.faults.leader_moves("orders"):
        shop.order(TEA)
    assert len(broker.records("orders")) == 1


def test_a_lost_answer_makes_no_second_order(broker, shop):
    with broker.faults.answer_lost("orders") as scenario:
        shop.order(TEA)
    assert scenario.hits == 1
    assert len(broker.records("orders")) == 1


def test_a_connection_that_breaks(broker, shop):
    with broker.faults.add(api="Produce", nth=1, cut="before"):
        shop.order(TEA)
    assert len(broker.records("orders")) == 1


def test_a_shop_that_may_not_order_says_so(broker, shop):
    broker.faults.add(api="Produce", topic="orders", error="TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaError):
        shop.order(TEA)


def test_slow_brokers_are_waited_for(broker, shop):
    with broker.faults.add(api="Produce", delay=0.05) as rule:
        shop.order(TEA)
    assert rule.hits == 1
