"""ListTransactions: each case as Apache Kafka 4.3.1 answered it."""

from types import SimpleNamespace

import pytest

from barnabas.api_handlers.list_transactions import list_transactions
from barnabas.errors import CoordinatorLoadInProgress, InvalidRegularExpression
from barnabas.transactions.messages import ListedTransaction, Listing
from barnabas.wire.messages.list_transactions import ListTransactionsRequest

FOUND = [ListedTransaction("open", 6, "Ongoing"), ListedTransaction("idle", 3, "Empty")]


class Coordinator:
    """Notes what it is asked, and gives the answer that it was made with."""

    def __init__(self, answer):
        self.answer = answer
        self.asked = None

    def list_transactions(self, states=(), producer_ids=(), duration_ms=-1, pattern=None):
        self.asked = list(states), list(producer_ids), duration_ms, pattern
        if not isinstance(self.answer, Listing):
            raise self.answer
        return self.answer


@pytest.fixture
def ask(config_cluster):
    def ask(coordinator, version=2, **fields):
        log = SimpleNamespace(in_list_order=lambda found: sorted(found))
        broker = SimpleNamespace(transactions=coordinator, transaction_log=log)
        request = ListTransactionsRequest(**({"state_filters": [], "producer_id_filters": []} | fields))
        return config_cluster.ask(broker, list_transactions, request, version)

    return ask


@pytest.mark.parametrize("version", range(3))
def test_all(ask, version):
    coordinator = Coordinator(Listing([], FOUND))
    answer = ask(coordinator, version)
    assert coordinator.asked == ([], [], -1, None)
    assert (answer.error_code, answer.unknown_state_filters) == (0, [])
    assert [
        (each.transactional_id, each.producer_id, each.transaction_state) for each in answer.transaction_states
    ] == [("idle", 3, "Empty"), ("open", 6, "Ongoing")]


def test_filters_are_the_coordinators(ask):
    coordinator = Coordinator(Listing([], []))
    ask(
        coordinator,
        state_filters=["Ongoing"],
        producer_id_filters=[6, 7],
        duration_filter=0,
        transactional_id_pattern="",
    )
    assert coordinator.asked == (["Ongoing"], [6, 7], 0, "")


@pytest.mark.parametrize(
    ("asked", "unknown"),
    [
        (["Ongoing", "nope"], ["nope"]),
        (["b", "Ongoing", "a", "b"], ["b", "a"]),
        (["Ongoing", "nope", "Empty2", "nope", "ongoing", ""], ["", "nope", "ongoing", "Empty2"]),
        (
            ["Ongoing", "b", "ffe", "", "ea", "fcfe", "befe", "hc", "gadf", "gca", "dc"],
            ["", "ffe", "gadf", "fcfe", "b", "ea", "befe", "dc", "hc", "gca"],
        ),
    ],
)
def test_unknown_states_are_in_the_order_of_kafkas_set(ask, asked, unknown):
    coordinator = Coordinator(Listing(sorted(unknown), FOUND))
    answer = ask(coordinator, state_filters=asked)
    assert answer.unknown_state_filters == unknown
    assert len(answer.transaction_states) == 2


@pytest.mark.parametrize("error", [InvalidRegularExpression, CoordinatorLoadInProgress])
def test_beside_an_error_stands_nothing(ask, error):
    answer = ask(Coordinator(error("why")), transactional_id_pattern="(", state_filters=["nope"])
    assert (answer.error_code, answer.unknown_state_filters, answer.transaction_states) == (error.code, [], [])
