"""Random requests to both coordinators, one after another: the responses to each must be equal.

Clients of either generation begin, add partitions, end, and repeat requests, also with epochs of others. After each
request both transactions are described. Producer ids are numbered in the order in which a broker assigns them.
"""

import random
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from socket import create_connection
from typing import Any

from .apache import ApacheKafka
from .codec import decode, encode, message
from .conftest import Pair
from .test_transaction_levels import put_at

LIVES, STEPS = 25, 12
NOT_READY = {14, 15, 16}
"""Errors of a coordinator that loads or has no producer ids yet: clients retry."""

TOPIC = "walked"
PATIENCE = 60.0

Answer = tuple[Any, ...]


class Coordinator:
    """One broker, with one connection to it."""

    def __init__(self, port: int) -> None:
        self.socket = create_connection(("127.0.0.1", port), PATIENCE)
        self.ids: list[int] = []

    def close(self) -> None:
        self.socket.close()

    def ask(self, api: str, version: int, **fields: Any) -> dict[str, Any]:
        request, response = message(f"{api}Request"), message(f"{api}Response")
        header = struct.pack(">hhih", request.api_key, version, 1, 4) + b"walk" + b"\0" * (version in request.flexible)
        body = header + encode(request, fields, version)
        self.socket.sendall(struct.pack(">i", len(body)) + body)
        (size,) = struct.unpack(">i", self.read(4))
        return decode(response, self.read(size)[4 + (version in request.flexible) :], version)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the broker has hung up"
            data += piece
        return data

    def name(self, producer_id: int) -> int:
        """Returns the ordinal of a producer id at this broker; -1 is none."""
        if producer_id == -1:
            return -1
        if producer_id not in self.ids:
            self.ids.append(producer_id)
        return self.ids.index(producer_id)

    def producer_id(self, name: int) -> int:
        return self.ids[name] if 0 <= name < len(self.ids) else 1_000_000 + name

    # ------------------------------------------------------------- requests

    def create_topic(self) -> None:
        topic = {"Name": TOPIC, "NumPartitions": 3, "ReplicationFactor": 1, "Assignments": [], "Configs": []}
        printed = self.ask("CreateTopics", 7, Topics=[topic], timeoutMs=30_000)
        assert printed["Topics"][0]["ErrorCode"] in (0, 36)
        time_out = time.monotonic() + PATIENCE
        while self.ask("Metadata", 12, Topics=[{"Name": TOPIC}], AllowAutoTopicCreation=False)["Topics"][0][
            "ErrorCode"
        ]:
            assert time.monotonic() < time_out

    def init(self, transactional_id: str, timeout_ms: int, producer: int, epoch: int) -> Answer:
        fields = {"TransactionalId": transactional_id, "TransactionTimeoutMs": timeout_ms}
        expected = {"ProducerId": -1 if producer == -1 else self.producer_id(producer), "ProducerEpoch": epoch}
        time_out = time.monotonic() + PATIENCE
        while True:
            found = self.ask("InitProducerId", 5, **fields, **expected)
            if found["ErrorCode"] not in NOT_READY:
                return found["ErrorCode"], self.name(found["ProducerId"]), found["ProducerEpoch"]
            assert time.monotonic() < time_out

    def add(self, transactional_id: str, producer: int, epoch: int, partitions: list[int], is_new: bool) -> Answer:
        topics = [{"Name": TOPIC, "Partitions": partitions}]
        who = (transactional_id, self.producer_id(producer), epoch)
        if is_new:
            return self.results(self.ask("AddPartitionsToTxn", 5, Transactions=[transaction(*who, topics)]))
        names = ("V3AndBelowTransactionalId", "V3AndBelowProducerId", "V3AndBelowProducerEpoch")
        found = self.ask("AddPartitionsToTxn", 3, **dict(zip(names, who, strict=True)), V3AndBelowTopics=topics)
        return partition_errors(found["ResultsByTopicV3AndBelow"])

    def verify(self, transactional_id: str, producer: int, epoch: int) -> Answer:
        who = (transactional_id, self.producer_id(producer), epoch)
        fields = transaction(*who, [{"Name": TOPIC, "Partitions": [0, 1, 2]}], verify_only=True)
        return self.results(self.ask("AddPartitionsToTxn", 5, Transactions=[fields]))

    @staticmethod
    def results(expected: dict[str, Any]) -> Answer:
        if expected["ErrorCode"]:
            return (expected["ErrorCode"],)
        return partition_errors(expected["ResultsByTransaction"][0]["TopicResults"])

    def end(self, transactional_id: str, producer: int, epoch: int, is_commit: bool, is_new: bool) -> Answer:
        fields = {"TransactionalId": transactional_id, "ProducerId": self.producer_id(producer), "ProducerEpoch": epoch}
        found = self.ask("EndTxn", 5 if is_new else 4, **fields, Committed=is_commit)
        return found["ErrorCode"], self.name(found.get("ProducerId", -1)), found.get("ProducerEpoch", -1)

    def described(self, transactional_id: str) -> Answer:
        """Returns the description of the id, once no transaction is being completed."""
        time_out = time.monotonic() + PATIENCE
        while True:
            (found,) = self.ask("DescribeTransactions", 0, TransactionalIds=[transactional_id])["TransactionStates"]
            if not found["TransactionState"].startswith("Prepare"):
                break
            assert time.monotonic() < time_out
        if found["ErrorCode"]:
            return (found["ErrorCode"],)
        partitions = sorted((topic["Topic"], each) for topic in found["Topics"] for each in topic["Partitions"])
        is_open = found["TransactionStartTimeMs"] >= 0
        producer = self.name(found["ProducerId"])
        return (
            found["TransactionState"],
            producer,
            found["ProducerEpoch"],
            found["TransactionTimeoutMs"],
            is_open,
            partitions,
        )


def transaction(
    transactional_id: str, producer_id: int, epoch: int, topics: list[dict[str, Any]], *, verify_only: bool = False
) -> dict[str, Any]:
    return {
        "TransactionalId": transactional_id,
        "ProducerId": producer_id,
        "ProducerEpoch": epoch,
        "VerifyOnly": verify_only,
        "Topics": topics,
    }


def partition_errors(topics: list[dict[str, Any]]) -> Answer:
    return tuple(
        sorted(
            (each["PartitionIndex"], each["PartitionErrorCode"])
            for topic in topics
            for each in topic["ResultsByPartition"]
        )
    )


def step(chance: random.Random, known: Answer) -> Answer:
    """Returns a verb and its arguments, which are valid more often than not."""
    producer, epoch = (known[1], known[2]) if len(known) > 1 else (0, 0)
    said = chance.choice([epoch, epoch, epoch, epoch - 1, epoch + 1, epoch - 2, 0])
    who = (chance.choice([producer] * 8 + [producer + 100, 0]), said)
    is_new = chance.random() < 0.6
    verb = "init" if len(known) == 1 and chance.random() < 0.8 else chance.choice(
        ["init", "init again", "add", "add", "add", "end", "end", "end", "end", "verify"]
    )  # fmt: skip
    if verb == "init":
        return "init", chance.choice([600_000, 600_000, 900_000, 0, -1, 900_001]), -1, -1
    if verb == "init again":
        return "init", 600_000, who[0], max(said, 0)
    if verb == "add":
        return "add", *who, chance.sample([0, 1, 2], chance.randint(1, 2)), is_new
    if verb == "verify":
        return "verify", *who
    return "end", *who, chance.random() < 0.5, is_new


@contextmanager
def coordinators(brokers: Pair) -> Iterator[list[Coordinator]]:
    with closing(Coordinator(brokers[0].port)) as theirs, closing(Coordinator(brokers[1].port)) as ours:
        for each in (theirs, ours):
            each.create_topic()
        yield [theirs, ours]


def walk(brokers: Pair, seed: str) -> None:
    chance = random.Random(seed)
    with coordinators(brokers) as both:
        for life in range(LIVES):
            transactional_id = f"walk-{seed}-{life}"
            known: Answer = both[0].described(transactional_id)
            story = []
            for _ in range(STEPS):
                verb, *said = step(chance, known)
                answers = [getattr(each, verb)(transactional_id, *said) for each in both]
                left = [each.described(transactional_id) for each in both]
                story.append(f"{verb} {said}: {answers[0]}, {left[0]}")
                found = "\n".join(story)
                assert answers[1] == answers[0], f"{transactional_id}, Apache Kafka first:\n{found}"
                assert left[1] == left[0], f"{transactional_id}, Apache Kafka first:\n{found}"
                known = left[0]


def test_both_coordinators_answer_alike(apache_kafka: ApacheKafka, beside: Any) -> None:
    walk((apache_kafka, beside), "2")


def test_both_answer_alike_before_kip_890(first_generation: Pair) -> None:
    put_at(1, first_generation)
    walk(first_generation, "1")
