"""What the cashier makes of orders."""

import json

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from order_service import Cashier

TEA = json.dumps({"id": "1", "customer": "ann", "item": "tea", "cents": 290})
CAKE = json.dumps({"id": "2", "customer": "ben", "item": "cake", "cents": 2000})


def committed(broker):
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="cashiers", enable_auto_commit=False)
    found = consumer.committed(TopicPartition("orders", 0))
    consumer.close()
    return found


def test_each_order_has_an_invoice(seed, cashier, invoices):
    seed(TEA, CAKE)
    assert cashier.charge(2) == 2
    assert [(each["order"], each["cents"]) for each in invoices()] == [("1", 290), ("2", 1800)]


def test_from_the_shop_to_the_invoice(shop, cashier, invoices):
    shop.order(json.loads(TEA))
    cashier.charge(1)
    assert [each["customer"] for each in invoices()] == ["ann"]


def test_what_is_done_is_committed(broker, seed, cashier):
    seed(TEA, CAKE)
    cashier.charge(2)
    assert committed(broker) == 2


def test_a_bad_order_is_put_aside_with_the_reason(broker, seed, cashier, invoices, failed):
    seed("???", TEA)
    cashier.charge(2)
    assert (failed(), len(invoices())) == ([b"???"], 1)
    assert broker.records("orders.failed")[0].headers == (("why", b"no JSON"),)


def test_nothing_to_do(cashier, invoices):
    assert cashier.charge(1, polls=1) == 0
    assert invoices() == []


def test_the_next_cashier_goes_on(broker, seed, cashier, invoices):
    seed(TEA)
    cashier.charge(1)
    cashier.close()
    seed(CAKE)
    second = Cashier(broker.bootstrap_servers, "cashier-2")
    second.charge(1)
    second.close()
    assert [each["order"] for each in invoices()] == ["1", "2"]


def test_an_order_that_was_taken_back_is_not_charged(broker, cashier, invoices):
    from kafka import KafkaProducer

    shop = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="web", retry_backoff_ms=10)
    shop.init_transactions()
    for value, end in ((TEA, shop.abort_transaction), (CAKE, shop.commit_transaction)):
        shop.begin_transaction()
        shop.send("orders", value.encode())
        end()
    shop.close()
    cashier.charge(1)
    assert [each["order"] for each in invoices()] == ["2"]


def test_an_invoice_that_cannot_be_written_commits_nothing(broker, seed, cashier, invoices):
    seed(TEA)
    broker.faults.add(api="Produce", topic="invoices", error="TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(KafkaError):
        cashier.charge(1)
    assert (invoices(), committed(broker)) == ([], None)


def test_a_lost_answer_makes_no_second_invoice(broker, seed, cashier, invoices):
    seed(TEA)
    with broker.faults.answer_lost("invoices") as scenario:
        cashier.charge(1)
    assert scenario.hits == 1
    assert len(invoices()) == 1


def test_the_coordinator_of_transactions_is_loading(broker, seed, cashier, invoices):
    seed(TEA)
    with broker.faults.add(api="EndTxn", first=2, error="COORDINATOR_LOAD_IN_PROGRESS") as rule:
        cashier.charge(1)
    assert (rule.hits, len(invoices())) == (2, 1)


def test_fetches_that_fail_lose_no_order(broker, seed, cashier, invoices):
    seed(TEA, CAKE)
    broker.faults.script("Fetch first=2 error=NOT_LEADER_OR_FOLLOWER")
    cashier.charge(2)
    assert len(invoices()) == 2


def test_the_same_cashier_twice_the_older_one_is_fenced(broker, seed, cashier, invoices):
    younger = Cashier(broker.bootstrap_servers, reconnect_backoff_ms=10)
    seed(TEA)
    with pytest.raises(KafkaError):
        cashier._producer.begin_transaction()
        cashier._producer.send("invoices", b"late").get(10)
    assert invoices() == []
    younger.close()


def test_invoices_are_kept_for_ten_days(broker, seed, cashier, invoices):
    seed(TEA)
    cashier.charge(1)
    broker.clock.advance(days=9)
    assert len(invoices()) == 1
    broker.clock.advance(days=2)
    assert invoices() == []


def test_a_cashier_that_comes_back_after_a_holiday_charges_nothing_twice(broker, seed, cashier, invoices):
    seed(TEA)
    cashier.charge(1)
    cashier.close()
    broker.clock.advance(days=6)
    back = Cashier(broker.bootstrap_servers)
    assert back.charge(1, polls=1) == 0
    back.close()
    assert len(invoices()) == 1
