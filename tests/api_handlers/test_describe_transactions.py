"""DescribeTransactions, with the results of Apache Kafka 4.3.1."""

from types import SimpleNamespace

import pytest

from barnabas.api_handlers.describe_transactions import describe_transactions
from barnabas.errors import CoordinatorLoadInProgress, InvalidRequest, NotCoordinator, TransactionalIdNotFound
from barnabas.transactions.messages import DescribedTransaction, InitProducer, ProducerIdentity, TopicPartition
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from tests.submitting import ready

PARTITIONS = [("t", 5), ("t", 1), ("t", 7), ("t", 0), ("u", 3), ("orders", 2), ("orders", 6), ("b", 1), ("b", 2)]
KNOWN = {
    "idle": DescribedTransaction("idle", "Empty", 60_000, -1, 3, 0, []),
    "open": DescribedTransaction(
        "open", "Ongoing", 30_000, 1_700_000_000_000, 6, 2, [TopicPartition(*each) for each in PARTITIONS]
    ),
    "done": DescribedTransaction("done", "CompleteCommit", 1000, 1_700_000_000_500, 1 << 40, 32_767, []),
}
FAILING = {"": InvalidRequest, "elsewhere": NotCoordinator, "loading": CoordinatorLoadInProgress}


class Coordinator:
    def describe(self, transactional_id):
        if transactional_id not in KNOWN:
            raise FAILING.get(transactional_id, TransactionalIdNotFound)
        return KNOWN[transactional_id]


@pytest.fixture
def ask(config_cluster):
    broker = SimpleNamespace(transactions=Coordinator())

    def ask(*transactional_ids):
        request = DescribeTransactionsRequest(transactional_ids=list(transactional_ids))
        return config_cluster.ask(broker, describe_transactions, request, 0).transaction_states

    return ask


def fields(state):
    return (
        state.transaction_state,
        state.transaction_timeout_ms,
        state.transaction_start_time_ms,
        state.producer_id,
        state.producer_epoch,
        [(topic.topic, topic.partitions) for topic in state.topics],
    )


def test_what_is_known(ask):
    idle, opened, done = ask("idle", "open", "done")
    assert {idle.error_code, opened.error_code, done.error_code} == {0}
    assert fields(idle) == ("Empty", 60_000, -1, 3, 0, [])
    assert fields(opened)[:5] == ("Ongoing", 30_000, 1_700_000_000_000, 6, 2)
    assert fields(done) == ("CompleteCommit", 1000, 1_700_000_000_500, 1 << 40, 32_767, [])


def test_partitions_are_grouped_by_topic(ask):
    (opened,) = ask("open")
    topics = {topic: sorted(partitions) for topic, partitions in fields(opened)[5]}
    assert topics == {"t": [0, 1, 5, 7], "b": [1, 2], "u": [3], "orders": [2, 6]}


@pytest.mark.parametrize(("transactional_id", "error"), [*FAILING.items(), ("nobody's", TransactionalIdNotFound)])
def test_beside_an_error_stands_the_id_alone(ask, transactional_id, error):
    (answer,) = ask(transactional_id)
    assert (answer.error_code, answer.transactional_id) == (error.code, transactional_id)
    assert fields(answer) == ("", 0, 0, 0, 0, [])


def test_duplicates_in_the_order_of_the_request(ask):
    found = ask("open", "nobody's", "idle", "open")
    assert [(each.transactional_id, each.error_code) for each in found] == [
        ("open", 0),
        ("nobody's", TransactionalIdNotFound.code),
        ("idle", 0),
        ("open", 0),
    ]
    assert ask() == []


@pytest.fixture
def node(quiet_node):
    """A node without a FindCoordinator request for transactions."""
    return quiet_node(**{"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"})


def described(node, transactional_id):
    request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = node.ask(describe_transactions, request, 0).transaction_states
    return found


def test_who_is_no_coordinator_says_so(node):
    assert described(node, "one").error_code == NotCoordinator.code
    assert described(node, "").error_code == InvalidRequest.code
    node.broker.coordinators.transactions.create_topic(ready)
    assert described(node, "one").error_code == TransactionalIdNotFound.code


def test_the_life_of_a_transaction(node):
    node.broker.coordinators.transactions.create_topic(ready)
    node.create_topic("t", 2)
    transactions, made, answers = node.broker.transactions, [], []
    transactions.init_producer_id(InitProducer("one", 60_000), made.append)
    (producer,) = made
    assert fields(described(node, "one")) == ("Empty", 60_000, -1, producer.producer_id, 0, [])
    began_ms = node.clock.time_ms()
    places = [TopicPartition("t", 1), TopicPartition("t", 0)]
    transactions.add_partitions(ProducerIdentity("one", producer.producer_id, 0), places, answers.append)
    assert fields(described(node, "one"))[0] == "Ongoing"
    assert fields(described(node, "one"))[2:] == (began_ms, producer.producer_id, 0, [("t", [1, 0])])
    node.clock.advance(5)
    transactions.end(ProducerIdentity("one", producer.producer_id, 0), True, answers.append)
    node.clock.advance(1)
    # The start of the last transaction is returned until the next one begins.
    assert fields(described(node, "one")) == ("CompleteCommit", 60_000, began_ms, producer.producer_id, 0, [])
