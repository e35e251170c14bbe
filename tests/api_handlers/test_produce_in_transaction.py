"""Produce in transactions: the partitions that are verified, the results of the verification, and late requests."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.produce import produce
from barnabas.broker.markers import write_markers
from barnabas.cluster.controller.commands.configs import ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.cluster.controller.commands.topics import DeleteTopics
from barnabas.errors import CloseConnection, ConcurrentTransactions, CoordinatorLoadInProgress, NotCoordinator
from barnabas.records.builder import build_batch
from barnabas.transactions.messages import InitProducer, Marker, ProducerIdentity, TopicPartition
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.asking import context_of
from tests.submitting import create_topic, ready, submitted

Topic = ProduceRequest.TopicProduceData

VERIFYING, ABORTABLE, ADDING = (3, 10), (11, 11), (12, 13)
SET = 0  # of IncrementalAlterConfigs' operations
NOT_ADDED = "Partition was not added to the transaction"


def versions(*ranges):
    return [version for first, last in ranges for version in range(first, last + 1)]


class Producing:
    """A transactional producer of topic t, and its broker."""

    def __init__(self, node):
        self.node, self.broker, self.clock = node, node.broker, node.clock
        create_topic(self.broker, "t", 3, {})
        create_topic(self.broker, "u", 1, {})
        self.broker.coordinators.transactions.create_topic(ready)
        self.coordinator = self.broker.transactions
        self.id, self.epoch = self.init("x")

    def init(self, transactional_id):
        results = []
        self.coordinator.init_producer_id(InitProducer(transactional_id, 60_000), results.append)
        (result,) = results
        assert result.error is None
        return result.producer_id, result.producer_epoch

    def add(self, *places):
        results = []
        self.coordinator.add_partitions(
            ProducerIdentity("x", self.id, self.epoch), [TopicPartition(*each) for each in places], results.append
        )
        assert results == [None]

    def end(self, *, is_commit=True, version=0):
        results = []
        self.coordinator.end(
            ProducerIdentity("x", self.id, self.epoch), is_commit, results.append, client_version=version
        )
        (result,) = results
        assert result.error is None
        if version == 2:
            self.id, self.epoch = result.producer_id, result.producer_epoch

    def batch(self, sequence=0, **options):
        identity = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": sequence}
        options = identity | {"is_transactional": True} | options
        return build_batch([(b"k", b"v", self.clock.time_ms())], **options)

    def ask(self, version, *batches, acks=-1, transactional_id="x"):
        """Returns the handler's result for batches by partition: a response, a promise of one, or None."""
        topics = {}
        for (topic, index), records in batches:
            partition = Topic.PartitionProduceData(index=index, records=bytes(records))
            topics.setdefault(topic, []).append(partition)
        names = {topic.id: name for name, topic in self.broker.image.topics_by_name.items()}
        ids = {name: topic_id for topic_id, name in names.items()}
        named = [
            Topic(name=name, topic_id=ids.get(name, bytes(16)), partition_data=each) for name, each in topics.items()
        ]
        request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=named)
        context = context_of(self.broker, version, client_id="test")
        self.frame = memoryview(bytearray(request.encode(version=version)))
        return produce(ProduceRequest.decode(self.frame, version=version), context)

    def answers(self, response, version):
        """Returns error, offset, log start offset and message of each partition, decoded from the response's bytes."""
        names = {topic.id: name for name, topic in self.broker.image.topics_by_name.items()}
        decoded = ProduceResponse.decode(response.encode(version=version), version=version)
        return {
            (topic.name or names[topic.topic_id], each.index): (
                each.error_code,
                each.base_offset,
                each.log_start_offset,
                each.error_message,
            )
            for topic in decoded.responses
            for each in topic.partition_responses
        }

    def send(self, version, *batches, **options):
        """Returns the immediate result of each batch."""
        response = self.ask(version, *batches, **options)
        assert isinstance(response, ProduceResponse)
        answers = self.answers(response, version)
        return [answers[place] for place, _ in batches]

    def code(self, version, sequence=0, **options):
        """Returns the error of one batch to partition 0."""
        ((code, *_),) = self.send(version, (T0, self.batch(sequence, **options)))
        return code

    def log(self, topic="t", index=0):
        return self.broker.partition(topic, index).log

    def partitions(self):
        return sorted(self.coordinator.describe("x").partitions)


T0, T1, T2, U0 = ("t", 0), ("t", 1), ("t", 2), ("u", 0)


@pytest.fixture
def producing(quiet_node):
    return Producing(quiet_node(**{"transaction.state.log.replication.factor": "1"}))


# ------------------------------------------------------------ what is in the transaction, and what is not


@pytest.mark.parametrize("version", versions(VERIFYING, ABORTABLE))
def test_what_was_added_is_taken(producing, version):
    producing.add(T0, U0)
    start = 0 if version >= 5 else -1
    assert producing.send(version, (T0, producing.batch()), (U0, producing.batch())) == [(0, 0, start, None)] * 2
    assert producing.log().producers.is_ongoing(producing.id, producing.epoch)


@pytest.mark.parametrize("version", versions(VERIFYING))
def test_what_was_not_added_is_no_state_to_an_old_client(producing, version):
    producing.add(T1)
    message = NOT_ADDED if version >= 8 else None
    assert producing.send(version, (T0, producing.batch())) == [(48, -1, -1, message)]
    assert producing.log().log_end_offset == 0


def test_what_was_not_added_may_be_aborted_by_a_newer_client(producing):
    assert producing.send(11, (T0, producing.batch())) == [(120, -1, -1, None)]
    assert producing.log().log_end_offset == 0


@pytest.mark.parametrize("version", versions(ADDING))
def test_the_newest_clients_add_as_they_write(producing, version):
    assert producing.send(version, (T0, producing.batch()), (U0, producing.batch())) == [(0, 0, 0, None)] * 2
    assert producing.partitions() == [T0, U0]
    assert producing.send(version, (T0, producing.batch(1)), (T1, producing.batch())) == [
        (0, 1, 0, None),
        (0, 0, 0, None),
    ]
    assert producing.partitions() == [T0, T1, U0]


def test_some_are_taken_and_some_are_not(producing):
    producing.add(T0, T2)
    batches = [(place, producing.batch()) for place in (T0, T1, T2, ("nobody", 0))]
    assert [code for code, *_ in producing.send(10, *batches)] == [0, 48, 0, 3]
    batches = [(T0, producing.batch(1)), (T1, producing.batch())]
    assert [code for code, *_ in producing.send(11, *batches)] == [0, 120]


def test_an_ongoing_transaction_is_not_verified(producing, monkeypatch):
    producing.add(T0)
    producing.code(11)
    monkeypatch.delattr(type(producing.coordinator), "verify_partitions")
    monkeypatch.delattr(type(producing.coordinator), "add_partitions")
    assert [producing.code(version, sequence) for sequence, version in enumerate((11, 3, 12, 13), 1)] == [0] * 4


def test_a_transactional_id_that_nobody_knows(producing):
    for version in versions(VERIFYING, ABORTABLE, ADDING):
        answer = (49, -1, -1, None)
        assert producing.send(version, (T0, producing.batch()), transactional_id="other") == [answer]


@pytest.mark.parametrize("version", [10, 11, 12])
def test_another_producer(producing, version):
    producing.add(T0)
    assert producing.send(version, (T0, producing.batch(producer_id=producing.id + 1))) == [(49, -1, -1, None)]


@pytest.mark.parametrize("version", [10, 11, 12])
@pytest.mark.parametrize("newer", [-1, 1])
def test_another_epoch_is_fenced_by_the_coordinator_or_the_log(producing, version, newer):
    producing.id, producing.epoch = producing.init("x")
    producing.add(T0)
    wrong = {"producer_epoch": producing.epoch + newer}
    assert producing.send(version, (T0, producing.batch(**wrong))) == [(47, -1, -1, None)]
    assert producing.code(version) == 0
    assert producing.send(version, (T0, producing.batch(1, **wrong))) == [(47, -1, -1, None)]


@pytest.mark.parametrize("version", [10, 11, 12])
@pytest.mark.parametrize(
    ("error", "name"),
    [(NotCoordinator, "NOT_COORDINATOR"), (CoordinatorLoadInProgress, "COORDINATOR_LOAD_IN_PROGRESS")],
)
def test_a_coordinator_that_cannot_say(producing, version, error, name, monkeypatch):
    refuse_all(producing, monkeypatch, error)
    message = f"Unable to verify the partition has been added to the transaction. Underlying error: {name}"
    assert producing.send(version, (T0, producing.batch())) == [(19, -1, -1, message)]


def refuse_all(producing, monkeypatch, error):
    monkeypatch.setattr(
        producing.coordinator, "verify_partitions", lambda *attempts: dict.fromkeys(attempts[-1], error)
    )
    monkeypatch.setattr(producing.coordinator, "add_partitions", lambda *attempts, **_: attempts[-1](error))


@pytest.mark.parametrize("version", [9, 11, 13])
def test_a_request_has_one_producer(producing, version):
    other = producing.batch(producer_epoch=producing.epoch + 1)
    answers = producing.send(version, (T0, producing.batch()), (T1, other), (U0, build_batch([(b"k", b"v", 0)])))
    assert [answer[:3] for answer in answers] == [(49, -1, -1)] * 3
    assert all(answer[3] for answer in answers)
    assert producing.log("u").log_end_offset == 0


def test_without_a_producer_id_nothing_is_verified(producing):
    records = build_batch([(b"k", b"v", 0)], is_transactional=True)
    assert producing.send(11, (T0, records)) == [(0, 0, 0, None)]
    assert producing.log().last_stable_offset == 1


def test_an_old_message_before_it_does_not_hide_a_batch_of_no_transaction(producing):
    message = bytearray(build_batch([(b"k", b"v", 0)], is_transactional=True))
    message[16] = 1
    answers = producing.send(9, (T0, message), (T1, producing.batch()), transactional_id=None)
    assert [code for code, *_ in answers] == [53, 53]


# ------------------------------------------------------------ what else is wrong with a batch


def test_the_coordinator_comes_before_the_crc(producing):
    damaged = producing.batch()
    damaged[-1] ^= 1
    assert producing.send(10, (T0, damaged))[0][0] == 48
    assert producing.send(12, (T0, damaged))[0][0] == 2
    assert producing.partitions() == [T0]


@pytest.mark.parametrize("version", [10, 12])
def test_the_frame_comes_before_the_coordinator(producing, version):
    for records in (producing.batch() * 2, producing.batch()[:65]):
        assert producing.send(version, (T0, records))[0][0] == 87
    assert producing.partitions() == []


def test_internal_topics_are_in_no_transaction(producing):
    assert producing.send(12, (("__transaction_state", 0), producing.batch())) == [(17, -1, -1, None)]
    assert producing.partitions() == []


def test_acks_are_looked_at_late(producing):
    assert producing.send(12, (T0, producing.batch()), acks=2) == [(21, -1, -1, None)]
    assert producing.partitions() == [T0]
    assert producing.send(12, (T0, producing.batch()), acks=1) == [(0, 0, 0, None)]


def test_acks_0_has_no_answer(producing):
    assert producing.ask(12, (T0, producing.batch()), acks=0) is None
    assert producing.log().log_end_offset == 1
    with pytest.raises(CloseConnection, match="acks=0"):
        producing.ask(10, (T1, producing.batch()), acks=0)


def test_what_is_not_transactional_has_no_place_in_a_transaction(producing):
    producing.add(T0)
    producing.code(11)
    for transactional_id in ("x", None):
        plain = producing.batch(1, is_transactional=False)
        assert producing.send(11, (T0, plain), transactional_id=transactional_id) == [(48, -1, 0, None)]


# ------------------------------------------------------------ ends


@pytest.mark.parametrize("version", versions((9, 10), ABORTABLE, ADDING))
def test_a_late_batch_of_the_second_generation_is_fenced(producing, version):
    producing.code(12)
    late = producing.batch(1)
    producing.end(version=2)
    assert producing.send(version, (T0, late)) == [(47, -1, -1, None)]
    assert not producing.log().producers.transactions.open


@pytest.mark.parametrize(("version", "error"), [(9, 48), (10, 48), (11, 120)])
def test_a_late_batch_of_the_first_generation_is_not_in_it(producing, version, error):
    producing.add(T0)
    producing.code(version)
    producing.end()
    assert producing.code(version, 1) == error
    assert not producing.log().producers.transactions.open


def test_the_next_transaction_begins_at_sequence_0_in_a_new_epoch(producing):
    for sequence in range(3):
        producing.code(12, sequence)
    producing.end(version=2)
    assert producing.send(12, (T0, producing.batch(3))) == [(45, -1, 0, None)]
    assert producing.code(12) == 0


def test_sequences_go_on_in_the_first_generation(producing):
    for sequence in range(3):
        producing.add(T0)
        assert producing.code(11, sequence) == 0
        producing.end()


@pytest.mark.parametrize(("version", "error"), [(11, 0), (12, 45)])
def test_a_producer_that_the_partition_does_not_know_begins_at_0(producing, version, error):
    producing.add(T0)
    assert producing.code(version, 3) == error


def test_a_batch_does_not_overtake_one_that_has_to_be_sent_again(producing, monkeypatch):
    producing.add(T0)
    with monkeypatch.context() as patched:
        refuse_all(producing, patched, NotCoordinator)
        assert producing.code(11, 4) == 19
        assert producing.code(11, 2) == 19
    assert producing.code(11, 4) == 45
    assert producing.code(11, 2) == 0


def test_a_retry_is_found_to_be_one(producing):
    producing.add(T0)
    assert producing.send(11, (T0, producing.batch())) == producing.send(11, (T0, producing.batch()))


# ------------------------------------------------------------ the setting


def verify(producing, value):
    change = ConfigChange("transaction.partition.verification.enable", SET, value)
    command = IncrementalAlterConfigs([(ConfigResource(4, ""), [change])])
    (altered,) = submitted(producing.broker.controller, command)
    assert altered.error is None


@pytest.mark.parametrize("version", [9, 11])
def test_verification_can_be_switched_off(producing, version):
    verify(producing, "false")
    assert producing.code(version) == 0
    verify(producing, "true")
    assert producing.send(version, (T1, producing.batch()))[0][0] in (48, 120)


def test_what_adds_still_adds(producing):
    verify(producing, "false")
    assert producing.code(12) == 0
    assert producing.partitions() == [T0]


# ------------------------------------------------------------ answers that come later


class Slow:
    """A coordinator that responds when the test tells it to."""

    def __init__(self, producing, monkeypatch):
        self.requests = []
        self.add = producing.coordinator.add_partitions
        monkeypatch.setattr(
            producing.coordinator, "add_partitions", lambda *attempts, **_: self.requests.append(attempts)
        )

    def answer(self, error=None):
        """Returns the held response, or that error."""
        attempts, self.requests = self.requests, []
        for *identity, reply in attempts:
            if error is None:
                self.add(*identity, reply, client_version=2)
            else:
                reply(error)


@pytest.fixture
def slow(producing, monkeypatch):
    return Slow(producing, monkeypatch)


def test_the_batch_waits_with_the_answer(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    assert isinstance(later, Later) and later.response is None
    producing.frame[:] = bytes(len(producing.frame))  # the buffer is reused meanwhile
    slow.answer()
    assert producing.answers(later.response, 12) == {T0: (0, 0, 0, None)}


def test_who_waits_for_no_answer_is_hung_up_on(producing, slow):
    with pytest.raises(CloseConnection):
        producing.ask(12, (T0, producing.batch()), acks=0)
    slow.answer()
    assert producing.log().log_end_offset == 0


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_marker_in_between_voids_it(producing, slow, earlier):
    producing.id, producing.epoch = producing.init("x")
    later = producing.ask(12, (T0, producing.batch()), (T1, producing.batch()))
    abort(producing, T0, producing.epoch - earlier)
    slow.answer()
    answers = producing.answers(later.response, 12)
    assert answers[T0][:3] == (48, -1, -1) and answers[T0][3]
    assert answers[T1] == (0, 0, 0, None)
    assert not producing.log().producers.transactions.open


def test_a_marker_in_between_that_fences_voids_it(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    abort(producing, T0, producing.epoch + 1, version=2)
    slow.answer()
    assert producing.answers(later.response, 12)[T0] == (47, -1, 0, None)


def test_the_end_of_the_transaction_before_does_not_void_it(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    abort(producing, T0, producing.epoch, version=2)
    slow.answer()
    assert producing.answers(later.response, 12)[T0] == (0, 1, 0, None)


def abort(producing, place, epoch, version=1):
    results = []
    marker = Marker(producing.id, epoch, 0, False, version)
    write_markers(producing.broker, marker, [TopicPartition(*place)], results.append)
    assert list(results[0].values()) == [None]


def test_the_end_of_what_went_on_voids_it_for_that(producing, slow, monkeypatch):
    first = producing.ask(12, (T0, producing.batch()))
    slow.answer()
    assert producing.answers(first.response, 12) == {T0: (0, 0, 0, None)}
    later = producing.ask(12, (T0, producing.batch(1)), (T1, producing.batch()))
    abort(producing, T0, producing.epoch)
    slow.answer()
    assert [answer[0] for answer in producing.answers(later.response, 12).values()] == [48, 0]


def test_a_truncation_in_between_voids_it(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    producing.log().truncate_fully_and_start_at(0)
    slow.answer()
    assert producing.answers(later.response, 12)[T0][0] == 48


def test_a_topic_that_is_deleted_in_between_is_gone(producing, slow):
    later = producing.ask(12, (U0, producing.batch()))
    submitted(producing.broker.controller, DeleteTopics([(None, producing.broker.image.topics_by_name["u"].id)]))
    slow.answer()
    assert [topic.name for topic in later.response.responses] == ["u"]
    assert later.response.responses[0].partition_responses[0].error_code == 3


def test_a_topic_that_is_created_meanwhile_is_not_verified(producing, slow):
    later = producing.ask(12, (T0, producing.batch()), (("new", 0), producing.batch()))
    create_topic(producing.broker, "new")
    slow.answer()
    assert {place: answer[0] for place, answer in producing.answers(later.response, 12).items()} == {
        T0: 0,
        ("new", 0): 3,
    }


def test_the_broker_asks_again_while_the_transaction_before_is_being_ended(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    for _ in range(3):
        slow.answer(ConcurrentTransactions)
        assert later.response is None and slow.requests == []
        producing.clock.advance(0.02)
    slow.answer()
    assert producing.answers(later.response, 12) == {T0: (0, 0, 0, None)}


def test_the_broker_does_not_ask_for_ever(producing, slow):
    later = producing.ask(12, (T0, producing.batch()))
    attempts = 0
    while later.response is None:
        slow.answer(ConcurrentTransactions)
        attempts += 1
        producing.clock.advance(0.02)
    assert attempts == 6  # at 0, 20, ... 100 ms
    assert producing.answers(later.response, 12) == {T0: (51, -1, -1, None)}


def test_for_a_client_that_is_gone_nothing_is_written(producing, slow):
    """A stopping broker closes its connections before its logs."""
    producing.ask(12, (T0, producing.batch())).cancel()
    slow.answer()
    later = producing.ask(12, (T1, producing.batch()))
    slow.answer(ConcurrentTransactions)
    later.cancel()
    producing.clock.advance(0.02)
    assert slow.requests == []
    assert [producing.log("t", index).log_end_offset for index in (0, 1)] == [0, 0]


@pytest.mark.parametrize("version", [10, 11])
def test_who_only_verifies_is_to_try_again_itself(producing, monkeypatch, version):
    refuse_all(producing, monkeypatch, ConcurrentTransactions)
    assert producing.code(version) == 19
