"""InitProducerId: ids that nobody has twice; transactional ids as where their coordinator is not."""

import pytest

from barnabas.api_handlers.init_producer_id import init_producer_id
from barnabas.broker import Broker
from barnabas.errors import (
    NONE,
    BrokerIdNotRegistered,
    CoordinatorLoadInProgress,
    InvalidRequest,
    InvalidTransactionTimeout,
    NotCoordinator,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

BLOCK = 1000


def ask(node, version=5, transactional_id=None, timeout=60_000, producer_id=-1, producer_epoch=-1):
    """Error code, producer id and epoch."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    answer = node.ask(init_producer_id, request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_ids_follow_one_another(node):
    assert [ask(node, version) for version in range(6)] == [(NONE, producer_id, 0) for producer_id in range(6)]


@pytest.mark.parametrize("had", [(5, 0), (-5, -5), (2**62, 3)])
def test_what_a_producer_had_does_not_matter(node, had):
    assert ask(node, producer_id=had[0], producer_epoch=had[1]) == (NONE, 0, 0)


@pytest.mark.parametrize("had", [(5, -1), (-1, 0)])
def test_half_of_it_is_no_request(node, had):
    for transactional_id in (None, "t"):
        told = ask(node, transactional_id=transactional_id, producer_id=had[0], producer_epoch=had[1])
        assert told == (InvalidRequest.code, -1, -1)
    assert ask(node, version=2, producer_id=had[0], producer_epoch=had[1])[0] == NONE  # version 2 does not carry them


@pytest.mark.parametrize("timeout", [0, -1, 2**31 - 1])
def test_a_time_out_is_for_transactions(node, timeout):
    assert ask(node, timeout=timeout)[0] == NONE


def test_ids_come_in_blocks_that_the_metadata_log_keeps(node):
    assert node.broker.image.next_producer_id == 0
    told = [ask(node)[1] for _ in range(BLOCK + 2)]
    assert told == list(range(BLOCK + 2))
    assert node.broker.image.next_producer_id == 2 * BLOCK


def test_what_is_left_of_a_block_nobody_gets(node):
    assert ask(node)[1] == 0
    node.broker.close()
    parts = {name: getattr(node.broker, name) for name in ("clock", "scheduler", "random")}
    again = Broker(node.broker.config, files=node.files, background=node.background, **parts)
    again.open()
    again.register({"PLAINTEXT": 9092})
    node.broker = again
    assert ask(node)[1] == BLOCK


def test_no_block_is_to_be_had(node, monkeypatch):
    def refuse(command):
        raise BrokerIdNotRegistered("of a test")

    monkeypatch.setattr(node.broker.controller, "submit", refuse)
    assert ask(node) == (CoordinatorLoadInProgress.code, -1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "timeout", "error"),
    [
        ("t", 60_000, NotCoordinator),
        ("t", 1, NotCoordinator),
        ("t", 900_000, NotCoordinator),
        ("t", 900_001, InvalidTransactionTimeout),
        ("t", 0, InvalidTransactionTimeout),
        ("t", -1, InvalidTransactionTimeout),
        ("", 0, InvalidRequest),
    ],
)
def test_transactional_ids(node, transactional_id, timeout, error):
    assert ask(node, transactional_id=transactional_id, timeout=timeout) == (error.code, -1, -1)


def test_the_longest_transaction_is_a_config(quiet_node):
    node = quiet_node(**{"transaction.max.timeout.ms": "5000"})
    assert ask(node, transactional_id="t", timeout=5000)[0] == NotCoordinator.code
    assert ask(node, transactional_id="t", timeout=5001)[0] == InvalidTransactionTimeout.code
