"""InitProducerId: unique ids, and epochs that increase with each producer of a transactional id."""

import pytest

from barnabas.api_handlers.init_producer_id import init_producer_id
from barnabas.broker import Broker
from barnabas.errors import (
    NONE,
    BrokerIdNotRegistered,
    CoordinatorLoadInProgress,
    InvalidProducerEpoch,
    InvalidRequest,
    InvalidTransactionTimeout,
    NotCoordinator,
    ProducerFenced,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from tests.submitting import ready

BLOCK = 1000


def ask(node, version=5, transactional_id=None, timeout=60_000, producer_id=-1, producer_epoch=-1):
    """Returns error code, producer id and epoch."""
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
        found = ask(node, transactional_id=transactional_id, producer_id=had[0], producer_epoch=had[1])
        assert found == (InvalidRequest.code, -1, -1)
    assert ask(node, version=2, producer_id=had[0], producer_epoch=had[1])[0] == NONE  # version 2 does not have them


@pytest.mark.parametrize("timeout", [0, -1, 2**31 - 1])
def test_a_time_out_is_for_transactions(node, timeout):
    assert ask(node, timeout=timeout)[0] == NONE


def test_ids_come_in_blocks_that_the_metadata_log_keeps(node):
    assert node.broker.image.next_producer_id == 0
    found = [ask(node)[1] for _ in range(BLOCK + 2)]
    assert found == list(range(BLOCK + 2))
    assert node.broker.image.next_producer_id == 2 * BLOCK


def test_what_is_left_of_a_block_nobody_gets(node):
    assert ask(node)[1] == 0
    node.broker.close()
    parts = {name: getattr(node.broker, name) for name in ("clock", "scheduler", "random", "peers")}
    again = Broker(node.broker.config, files=node.files, background=node.background, **parts)
    again.open()
    again.register({"PLAINTEXT": 9092})
    node.broker = again
    assert ask(node)[1] == BLOCK


def test_no_block_is_to_be_had(node, monkeypatch):
    def refuse(command, done):
        done(None, BrokerIdNotRegistered("of a test"))

    monkeypatch.setattr(node.broker.controller, "submit", refuse)
    assert ask(node) == (CoordinatorLoadInProgress.code, -1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "timeout", "error"),
    [
        ("t", 900_001, InvalidTransactionTimeout),
        ("t", 0, InvalidTransactionTimeout),
        ("t", -1, InvalidTransactionTimeout),
        ("", 0, InvalidRequest),
    ],
)
@pytest.mark.parametrize("version", range(6))
def test_what_a_transactional_producer_may_not_ask(group_node, version, transactional_id, timeout, error):
    assert transactional(group_node, version, transactional_id, timeout) == (error.code, -1, -1)


@pytest.mark.parametrize("version", range(6))
def test_before_the_coordinator_is_found(group_node, version):
    assert transactional(group_node, version) == (NotCoordinator.code, -1, -1)


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_has_one_producer_id_and_a_new_epoch_each_time(group_node, version):
    group_node.broker.coordinators.transactions.create_topic(ready)
    assert [transactional(group_node, version) for _ in range(3)] == [(NONE, 0, epoch) for epoch in range(3)]
    assert transactional(group_node, version, "another") == (NONE, 1, 0)


@pytest.mark.parametrize("version", range(3, 6))
def test_an_older_incarnation_is_fenced(group_node, version):
    group_node.broker.coordinators.transactions.create_topic(ready)
    for _ in range(3):
        transactional(group_node, version)
    fenced = ProducerFenced if version >= 4 else InvalidProducerEpoch
    assert transactional(group_node, version, producer_id=0, producer_epoch=0) == (fenced.code, -1, -1)


def test_the_longest_transaction_is_a_config(group_node):
    node = type(group_node)(**{"transaction.max.timeout.ms": "5000"})
    node.broker.coordinators.transactions.create_topic(ready)
    assert transactional(node, 5, timeout=5000)[0] == NONE
    assert transactional(node, 5, timeout=5001)[0] == InvalidTransactionTimeout.code


def transactional(node, version, transactional_id="t", timeout=60_000, **had):
    """Returns error code, producer id and epoch, of a promised response."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout, **had)
    answer = node.call(request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch
