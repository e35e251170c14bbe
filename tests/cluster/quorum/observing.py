"""An observer whose leader is a script: the test receives each request and returns each response.

Knows nothing of what an observer should do.
"""

from random import Random

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, topic_config
from barnabas.cluster.quorum.observer import DEFAULT_LIMITS, Observer
from barnabas.cluster.quorum.quorum_state import read_quorum_state
from barnabas.cluster.quorum.record_batches import control_batch, encode_batches
from barnabas.cluster.quorum.snapshots import KRaftState, control_records, encode_snapshot
from barnabas.config.endpoints import Endpoint
from barnabas.log.background import Inline
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.wire.messages.metadata_records import ConfigRecord

DIRECTORY = "/data/__cluster_metadata-0"
STATE = f"{DIRECTORY}/quorum-state"
NODE, LEADER, OTHER = 7, 1, 2
CONTROLLER = Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")


class Peers:
    """The sent requests, for responses of the test."""

    def __init__(self):
        self.sent = []

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        assert lane
        assert timeout_ms == 2000
        self.sent.append((node_id, request, done))


class Listener:
    """Records the calls of an observer."""

    def __init__(self):
        self.heard = []

    def snapshot_loaded(self, snapshot_id, records, timestamp):
        self.heard.append((snapshot_id, [record.name for record in records]))

    def committed(self, batches):
        self.heard += [record.name for batch in batches for record in batch.records]

    def leadership_changed(self, leadership):
        self.heard.append(leadership)

    def take(self):
        taken, self.heard = self.heard, []
        return taken


class Node:
    """An observer on a disk in memory, with access for the test."""

    def __init__(self, files, *, voters=(LEADER, OTHER), bootstrap=(), background=None, limits=DEFAULT_LIMITS):
        self.files, self.clock, self.peers, self.listener, self.fatal = files, ManualClock(), Peers(), Listener(), []
        files.makedirs(DIRECTORY)
        self.log = open_log(
            LogServices(LogDirectory(files, "/data")), DIRECTORY, "__cluster_metadata", 0,
            topic_config(segment_bytes=1 << 20), clean=False, recovery_point=0, now_ms=0,
        )  # fmt: skip
        self.controllers = Controllers(
            "CONTROLLER", "PLAINTEXT", voters={each: Address(f"host-{each}", 9093) for each in voters},
            bootstrap=bootstrap,
        )  # fmt: skip
        self.observer = Observer(
            MetadataLog(self.log, DIRECTORY, files, clock=self.clock, background=background or Inline()),
            Identity(NODE, "the-cluster", bytes([9]) * 16),
            self.controllers,
            self.peers,
            files=files,
            clock=self.clock,
            scheduler=self.clock,
            random=Random(1),
            on_fatal=self.fatal.append,
            limits=limits,
        )
        self.observer.listeners.append(self.listener)

    def start(self):
        self.observer.load()
        self.observer.start()
        return self

    @property
    def state(self):
        return read_quorum_state(self.files, STATE)

    @property
    def request(self):
        """Returns the partition of the one request in flight."""
        ((_, request, _),) = self.peers.sent
        return request.topics[0].partitions[0]

    def recipient(self):
        """Returns the recipient and the class of the one request in flight."""
        ((node_id, request, _),) = self.peers.sent
        return node_id, type(request)

    def answer(self, response=None, error=None):
        ((_, _, done),) = self.peers.sent
        self.peers.sent = []
        done(response, error)

    def fetched(self, records=b"", *, error=None, epoch=5, leader=LEADER, high_watermark=-1, endpoints=(), **fields):
        """Responds to a fetch."""
        body = FetchResponse.FetchableTopicResponse.PartitionData
        partition = body(
            partition_index=0,
            error_code=error.code if error else 0,
            high_watermark=high_watermark,
            current_leader=body.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            records=records,
            **{name: getattr(body, kind)(**value) for name, (kind, value) in fields.items()},
        )
        topic = FetchResponse.FetchableTopicResponse(topic="__cluster_metadata", partitions=[partition])
        self.answer(FetchResponse(responses=[topic], node_endpoints=list(endpoints)))

    def diverged(self, diverging_epoch, end_offset, **fields):
        self.fetched(diverging_epoch=("EpochEndOffset", {"epoch": diverging_epoch, "end_offset": end_offset}), **fields)

    def sent_to_snapshot(self, snapshot_id, **fields):
        self.fetched(snapshot_id=("SnapshotId", snapshot_id._asdict()), **fields)

    def piece(self, snapshot_id, data, *, size, position, error=None, epoch=5, leader=LEADER):
        body = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot
        partition = body(
            index=0,
            error_code=error.code if error else 0,
            snapshot_id=body.SnapshotId(**snapshot_id._asdict()),
            current_leader=body.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            size=size,
            position=position,
            unaligned_records=data,
        )
        topic = FetchSnapshotResponse.TopicSnapshot(name="__cluster_metadata", partitions=[partition])
        self.answer(FetchSnapshotResponse(topics=[topic]))

    def content(self):
        return self.log.read(self.log.log_start_offset, 1 << 20, up_to=self.log.log_end_offset, minimum_one=True)


def record(name):
    return ConfigRecord(resource_type=4, resource_name="", name=name, value="x")


def batch(base_offset, *names, epoch=5):
    (encoded,) = encode_batches(
        map(record, names), metadata_version=30, timestamp=0, epoch=epoch, base_offset=base_offset
    )
    return bytes(encoded.data)


def voters_batch(base_offset, kraft, epoch=5):
    return bytes(control_batch(control_records(kraft), timestamp=0, epoch=epoch, base_offset=base_offset))


def snapshot(*names, kraft=KRaftState(), epoch=5):  # noqa: B008
    return encode_snapshot(
        map(record, names), kraft=kraft, metadata_version=30, epoch=epoch, last_timestamp=0, now_ms=0
    )
