"""InitProducerId, idempotence, and DescribeProducers."""

from typing import Any

from ..batches import R
from ..play import Step
from ..steps import ask, create, fetch, produce, scenario

INIT = ask(
    "InitProducerId", v=4, quiet=True, save={"$pid": "ProducerId"}, TransactionalId=None, TransactionTimeoutMs=60000
)


def sent(
    sequence: int, count: int = 1, *, epoch: int = 0, pid: Any = "$pid", v: int | None = None, **more: Any
) -> Step:
    values = [R(b"%d" % (sequence + index)) for index in range(count)]
    return produce("~t", *values, producer_id=pid, producer_epoch=epoch, sequence=sequence, v=v, **more)


def described(*partitions: int, topic: str = "~t") -> Step:
    return ask("DescribeProducers", Topics=[{"Name": topic, "PartitionIndexes": list(partitions)}])


IDS = [
    scenario(
        "of an idempotent producer",
        "InitProducerId",
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, save={"$pid": "ProducerId"}),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=0),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=-1),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=2147483647),
    ),
    scenario(
        "with an id of its own",
        "InitProducerId",
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, save={"$pid": "ProducerId"}),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, ProducerId="$pid", ProducerEpoch=0),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, ProducerId=-1, ProducerEpoch=3),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, ProducerId=-5, ProducerEpoch=-5),
        ask("InitProducerId", TransactionalId=None, TransactionTimeoutMs=60000, ProducerId=7, ProducerEpoch=-1),
        versions="3+",
    ),
    scenario(
        "an empty transactional id",
        "InitProducerId",
        ask("InitProducerId", TransactionalId="", TransactionTimeoutMs=60000),
    ),
]

IDEMPOTENCE = [
    scenario(
        "in order",
        "Produce",
        create("~t"),
        INIT,
        sent(0, 2),
        sent(2),
        sent(3, 3),
        fetch("~t", v=11),
        ask("DescribeProducers", Topics=[{"Name": "~t", "PartitionIndexes": [0]}]),
    ),
    scenario(
        "a duplicate",
        "Produce",
        create("~t"),
        INIT,
        sent(0, 2),
        sent(2),
        sent(0, 2),
        sent(2),
        sent(3),
        fetch("~t", v=11),
    ),
    scenario(
        "a duplicate of another length",
        "Produce",
        create("~t"),
        INIT,
        sent(0, 3),
        sent(0, 2),
        sent(1, 2),
        sent(1, 3),
        fetch("~t", v=11),
    ),
    scenario(
        "a duplicate older than five batches",
        "Produce",
        create("~t"),
        INIT,
        [sent(n) for n in range(7)],
        sent(0),
        sent(1),
        sent(2),
        sent(6),
        fetch("~t", v=11),
    ),
    scenario("a gap", "Produce", create("~t"), INIT, sent(0), sent(2), sent(5, 2), sent(1), fetch("~t", v=11)),
    scenario(
        "unknown, from anywhere",
        "Produce",
        create("~t", 2),
        INIT,
        sent(17),
        sent(18),
        sent(5, partition=1),
        fetch("~t", v=11),
    ),
    scenario(
        "an older epoch",
        "Produce",
        create("~t"),
        INIT,
        sent(0, epoch=3),
        sent(1, epoch=2),
        sent(0, epoch=2),
        sent(1, epoch=3),
    ),
    scenario(
        "a newer epoch",
        "Produce",
        create("~t"),
        INIT,
        sent(0, 2),
        sent(2, epoch=1),
        sent(0, epoch=1),
        sent(1, epoch=1),
        sent(2, epoch=0),
    ),
    scenario(
        "sequences wrap",
        "Produce",
        create("~t"),
        INIT,
        sent(2147483646, 1),
        sent(2147483647, 1),
        sent(0, 1),
        sent(1, 1),
        sent(2147483647, 1),
    ),
    scenario(
        "a batch over the wrap", "Produce", create("~t"), INIT, sent(2147483646, 4), sent(2, 1), sent(2147483646, 4)
    ),
    scenario("a negative sequence", "Produce", create("~t"), INIT, sent(-5), sent(-1), versions="8+"),
    scenario(
        "an id nobody gave", "Produce", create("~t"), sent(0, pid=123456789), sent(1, pid=123456789), sent(0, pid=-7)
    ),
    scenario(
        "two producers",
        "Produce",
        create("~t"),
        INIT,
        sent(0),
        ask(
            "InitProducerId",
            v=4,
            quiet=True,
            save={"$other": "ProducerId"},
            TransactionTimeoutMs=60000,
            TransactionalId=None,
        ),
        sent(0, pid="$other"),
        sent(1),
        sent(1, pid="$other"),
        fetch("~t", v=11),
    ),
    scenario(
        "duplicates after LogAppendTime",
        "Produce",
        create("~t", message_timestamp_type="LogAppendTime"),
        INIT,
        sent(0),
        sent(0),
    ),
    scenario(
        "a gap in the middle of compression",
        "Produce",
        create("~t"),
        INIT,
        sent(0, 2, codec=1),
        sent(3, 2, codec=3),
        sent(2, 2, codec=3),
    ),
]

DESCRIBE = [
    scenario(
        "of partitions",
        "DescribeProducers",
        create("~t", 2),
        INIT,
        sent(0, 2, v=8),
        sent(2, epoch=0, v=8),
        described(0, 1),
    ),
    scenario(
        "of what is not there",
        "DescribeProducers",
        create("~t"),
        described(0, 9, -1),
        described(0, topic="~none"),
        described(0, topic="a b"),
        described(0, topic=""),
        described(),
    ),
    scenario(
        "a partition twice",
        "DescribeProducers",
        create("~t"),
        described(0, 0),
        ask("DescribeProducers", Topics=[{"Name": "~t", "PartitionIndexes": [0]}] * 2),
        ask("DescribeProducers", Topics=[]),
    ),
]

SCENARIOS = [*IDS, *IDEMPOTENCE, *DESCRIBE]
