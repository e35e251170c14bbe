"""ListTransactions, with the results of Apache Kafka 4.3.1."""

from types import SimpleNamespace

import pytest

from barnabas.api_handlers.list_transactions import list_transactions
from barnabas.errors import CoordinatorLoadInProgress, InvalidRegularExpression
from barnabas.transactions.messages import InitProducer, ListedTransaction, Listing, ProducerIdentity, TopicPartition
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from tests.submitting import ready

FOUND = [ListedTransaction("open", 6, "Ongoing"), ListedTransaction("idle", 3, "Empty")]


class Coordinator:
    """Records the requests, and returns the given response."""

    def __init__(self, answer):
        self.answer = answer
        self.requested = None

    def list_transactions(self, states=(), producer_ids=(), duration_ms=-1, pattern=None):
        self.requested = list(states), list(producer_ids), duration_ms, pattern
        if not isinstance(self.answer, Listing):
            raise self.answer
        return self.answer


@pytest.fixture
def ask(config_cluster):
    def ask(coordinator, version=2, **fields):
        broker = SimpleNamespace(transactions=coordinator)
        request = ListTransactionsRequest(**({"state_filters": [], "producer_id_filters": []} | fields))
        return config_cluster.ask(broker, list_transactions, request, version)

    return ask


@pytest.mark.parametrize("version", range(3))
def test_all(ask, version):
    coordinator = Coordinator(Listing([], FOUND))
    answer = ask(coordinator, version)
    assert coordinator.requested == ([], [], -1, None)
    assert (answer.error_code, answer.unknown_state_filters) == (0, [])
    assert [
        (each.transactional_id, each.producer_id, each.transaction_state) for each in answer.transaction_states
    ] == [("open", 6, "Ongoing"), ("idle", 3, "Empty")]


def test_filters_are_the_coordinators(ask):
    coordinator = Coordinator(Listing([], []))
    ask(
        coordinator,
        state_filters=["Ongoing"],
        producer_id_filters=[6, 7],
        duration_filter=0,
        transactional_id_pattern="",
    )
    assert coordinator.requested == (["Ongoing"], [6, 7], 0, "")


@pytest.mark.parametrize(
    ("requested", "unknown"),
    [
        (["Ongoing", "nope"], ["nope"]),
        (["b", "Ongoing", "a", "b"], ["b", "a"]),
        (["Ongoing", "nope", "Empty2", "nope", "ongoing", ""], ["nope", "Empty2", "ongoing", ""]),
    ],
)
def test_unknown_states_are_listed_once(ask, requested, unknown):
    coordinator = Coordinator(Listing([state for state in requested if state != "Ongoing"], FOUND))
    answer = ask(coordinator, state_filters=requested)
    assert answer.unknown_state_filters == unknown
    assert len(answer.transaction_states) == 2


@pytest.mark.parametrize("error", [InvalidRegularExpression, CoordinatorLoadInProgress])
def test_beside_an_error_stands_nothing(ask, error):
    answer = ask(Coordinator(error("why")), transactional_id_pattern="(", state_filters=["nope"])
    assert (answer.error_code, answer.unknown_state_filters, answer.transaction_states) == (error.code, [], [])


@pytest.fixture
def coordinator(quiet_node):
    """A node whose transaction coordinator is ready."""
    node = quiet_node(**{"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"})
    node.broker.coordinators.transactions.create_topic(ready)

    def initialize(*transactional_ids):
        made = []
        for each in transactional_ids:
            node.broker.transactions.init_producer_id(InitProducer(each, 60_000), made.append)
        assert [result.error for result in made] == [None] * len(transactional_ids)

    node.initialize = initialize
    return node


def listed(node, **fields):
    request = ListTransactionsRequest(**({"state_filters": [], "producer_id_filters": []} | fields))
    return [each.transactional_id for each in node.ask(list_transactions, request, 2).transaction_states]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"duration_filter": -5}, {"idle", "early", "late"}),
        ({"duration_filter": 0}, {"idle", "early"}),
        ({"duration_filter": 1000}, {"idle"}),
        ({"state_filters": ["Ongoing"]}, {"early", "late"}),
        ({"state_filters": ["Ongoing", "Empty", "Dead"]}, {"idle", "early", "late"}),
        ({"state_filters": ["ongoing"]}, set()),
        ({"producer_id_filters": [0, 77]}, {"idle"}),
        ({"transactional_id_pattern": ""}, {"idle", "early", "late"}),
        ({"transactional_id_pattern": ".*l.*"}, {"idle", "early", "late"}),
        ({"transactional_id_pattern": "l"}, set()),
        ({"transactional_id_pattern": "late|early", "duration_filter": 0}, {"early"}),
    ],
)
def test_what_filters_let_through(coordinator, fields, expected):
    """An id without an open transaction matches any duration, as in Apache Kafka."""
    coordinator.initialize("idle", "early", "late")
    coordinator.create_topic("t")
    transactions = coordinator.broker.transactions
    for transactional_id, producer_id in (("early", 1), ("late", 2)):
        answers = []
        producer = ProducerIdentity(transactional_id, producer_id, 0)
        transactions.add_partitions(producer, [TopicPartition("t", 0)], answers.append)
        assert answers == [None]
        if transactional_id == "early":
            coordinator.clock.advance(1)
    assert set(listed(coordinator, **fields)) == expected
