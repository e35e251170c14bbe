"""A controller of Barnabas and one of Apache Kafka get the same requests: their responses and records are equal.

The brokers are simulated: :mod:`controller_script` sends their requests.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.cluster.quorum.record_batches import decode_batches
from barnabas.config import BrokerConfig
from barnabas.errors import NotController
from barnabas.log.files import DiskFiles
from barnabas.log.meta_properties import MetaProperties
from barnabas.log.meta_properties import read as read_meta_properties
from barnabas.log.meta_properties import write as write_meta_properties
from barnabas.server.server import Server
from barnabas.wire.messages import metadata_records as records
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from compat_tests.ports import free_port
from tests.raw import Client

from .apache import ApacheController
from .controller_script import TOPIC, Said, Script

LOG = "__cluster_metadata-0"
SECONDS = 30
UNKNOWN = 1 << 30  #: the id of no broker

COMPARED = (
    records.RegisterBrokerRecord,
    records.UnregisterBrokerRecord,
    records.BrokerRegistrationChangeRecord,
    records.PartitionRecord,
    records.PartitionChangeRecord,
    records.ProducerIdsRecord,
)
"""The types of records that requests cause. The others are a controller's first records, and its no-op records."""


@contextmanager
def ours(home: Path, cluster_id: str) -> Iterator[int]:
    """Starts a controller of Barnabas in this process. Returns the port of its listener."""
    home.mkdir()
    write_meta_properties(DiskFiles(), str(home), MetaProperties(cluster_id, 1, bytes([7]) * 16))
    port = free_port()
    config = BrokerConfig.from_properties(
        {
            "process.roles": "controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "log.dirs": str(home),
        }
    )
    started, stops = threading.Event(), threading.Event()

    async def serve() -> None:
        server = Server(config)
        await server.start()
        started.set()
        await asyncio.to_thread(stops.wait)
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert started.wait(SECONDS)
        yield port
    finally:
        stops.set()
        thread.join(SECONDS)


def until_active(client: Client) -> None:
    """Returns once the controller is the active one: Apache Kafka's listens before it is, now and then."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        response: Any = client.ask(UnregisterBrokerRequest(broker_id=UNKNOWN), 0)
        if response.error_code != NotController.code:
            return
        time.sleep(0.01)
    raise TimeoutError(f"the controller is not active after {SECONDS} s")


def played(port: int, cluster_id: str) -> tuple[Script, list[Said]]:
    with Client(port) as client:
        until_active(client)
        script = Script(client.ask, cluster_id)
        return script, list(script.play())


def recorded(log: Path, script: Script) -> list[Any]:
    """Returns the records of the script in a metadata log, with names for what differs."""
    found = []
    fenced = dict[int, bool]()
    eligible = Eligible()
    for path in sorted(log.glob("*.log")):
        for decoded in decode_batches(path.read_bytes()):
            for record in () if decoded.batch.is_control else decoded.records:
                if isinstance(record, COMPARED) and eligible.changes(record) and not is_repeated(record, fenced):
                    found.append(named(record, script))
    runs = itertools.groupby(found, lambda each: each[0])
    return [each for _, run in runs for each in sorted(run, key=in_any_order)]


def in_any_order(record: tuple[str, dict[str, Any]]) -> int:
    """Sorts partitions that change together, whose order is undefined."""
    return int(record[1].get("partition_id", 0))


def is_repeated(record: Any, fenced: dict[int, bool]) -> bool:
    """Returns whether a record fences a fenced broker: Apache Kafka writes such records, too."""
    if isinstance(record, records.RegisterBrokerRecord):
        fenced[record.broker_id] = record.fenced
    if not isinstance(record, records.BrokerRegistrationChangeRecord) or not record.fenced:
        return False
    before, fenced[record.broker_id] = fenced.get(record.broker_id), record.fenced > 0
    return before is True and record.fenced > 0


class Eligible:
    """The eligible leaders of partitions, without the removed replicas that Apache Kafka's controller leaves there."""

    def __init__(self) -> None:
        self.replicas: dict[tuple[bytes, int], list[int]] = {}
        self.elrs: dict[tuple[bytes, int], list[int]] = {}

    def changes(self, record: Any) -> bool:
        """Leaves removed replicas out of a record. Returns whether it still changes something."""
        if not isinstance(record, records.PartitionRecord | records.PartitionChangeRecord):
            return True
        place, elr = (record.topic_id, record.partition_id), record.eligible_leader_replicas
        if record.replicas is not None:
            self.replicas[place] = record.replicas
        if elr is not None:
            kept = [each for each in elr if each in self.replicas[place]]
            record.eligible_leader_replicas = None if kept == self.elrs.get(place, []) else kept
            self.elrs[place] = kept
        unchanged = records.PartitionChangeRecord(partition_id=record.partition_id, topic_id=record.topic_id)
        return record != unchanged


def named(record: Any, script: Script) -> tuple[str, dict[str, Any]]:
    values = {name: getattr(record, name) for name in type(record).__annotations__}
    if "broker_epoch" in values:
        values["broker_epoch"] = script.names.get(values["broker_epoch"], "unknown")
    if values.get("topic_id") == script.topic_id:
        values["topic_id"] = TOPIC
    return type(record).__name__, {name: value for name, value in values.items() if value is not None}


def test_both_controllers_answer_and_record_the_same(kafka_jars: Path, tmp_path: Path) -> None:
    with ApacheController(tmp_path / "apache") as apache:
        formatted = read_meta_properties(DiskFiles(), str(apache.home / "data"))
        assert formatted is not None
        cluster_id = formatted.cluster_id
        their_script, theirs = played(apache.port, cluster_id)
    with ours(tmp_path / "ours", cluster_id) as port:
        our_script, our_answers = played(port, cluster_id)
    for their, our in zip(theirs, our_answers, strict=True):
        assert our == their
    their_records = recorded(apache.home / "data" / LOG, their_script)
    our_records = recorded(tmp_path / "ours" / LOG, our_script)
    for nth, (their_record, our_record) in enumerate(zip(their_records, our_records, strict=False)):
        assert our_record == their_record, f"record {nth}"
    assert len(our_records) == len(their_records)
