"""Fixtures of the cluster's tests: a controller over an image, and a metadata log in memory."""

import itertools
from pathlib import Path
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.features import UpdateFeatures
from barnabas.cluster.controller.commands.topics import CreateTopics
from barnabas.cluster.controller.decision import Surroundings
from barnabas.cluster.controller.decisions import decide
from barnabas.cluster.controller.feature_decisions import bootstrap_records, first_records
from barnabas.cluster.controller.heartbeats import Heartbeats
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.snapshot_generator import DEFAULT_LIMITS
from barnabas.cluster.node_metadata import ControllerMetadata
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.metadata_log import DEFAULT_RETENTION, MetadataLog, topic_config
from barnabas.cluster.quorum.record_batches import decode_batches
from barnabas.cluster.quorum.sole_voter import SoleVoter
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import ConfigRules
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from tests.registering import CLUSTER_ID, heartbeat, registration
from tests.submitting import submitted

DIRECTORY = "/data/__cluster_metadata-0"


class Cluster:
    """Brokers, topics and a controller, without a log: decisions are applied immediately."""

    def __init__(self, brokers=(1,), dev=False, **settings):
        self.settings = BrokerConfig.from_properties({name: str(value) for name, value in settings.items()}, dev=dev)
        self.rules, self.random = ConfigRules(lambda: self.settings), Random(0)
        self.image = MetadataImage()
        self.delta = None
        self.records = []  #: of the last command
        self.clock = ManualClock()
        self.heartbeats = Heartbeats(self.clock, lambda: self.settings["broker.session.timeout.ms"])
        self.incarnations = itertools.count(1)
        self.time_ms = 0
        self.apply(first_records(bootstrap_records(), 1))
        for broker_id in brokers:
            self.start(broker_id)

    def apply(self, records):
        self.image, self.delta = self.image.apply(records, offset=self.image.offset + len(records))

    def submit(self, command, *, kraft_version=0):
        around = Surroundings(
            self.settings,
            self.rules,
            self.random,
            self.heartbeats,
            CLUSTER_ID,
            next_offset=self.image.offset + 1,
            kraft_version=kraft_version,
            time_ms=self.time_ms,
        )
        decision = decide(command, self.image, around)
        self.records, self.raises_kraft_version = decision.records, decision.raises_kraft_version
        self.apply(decision.records)
        if decision.heard is not None:
            self.heartbeats.heard(decision.heard, self.image.offset)
        return decision.result

    def register(self, broker_id, **fields):
        """Registers another incarnation; the session of the one before has ended."""
        self.heartbeats.forget(broker_id)
        return self.submit(registration(broker_id, next(self.incarnations), **fields))

    def heartbeat(self, broker_id, **fields):
        epoch = self.image.brokers[broker_id].epoch
        return self.submit(heartbeat(broker_id, epoch, **{"metadata_offset": self.image.offset, **fields}))

    def fence(self, broker_id):
        return self.heartbeat(broker_id, want_fence=True)

    def stop(self, broker_id):
        """Makes a controlled shutdown of the broker: the others know the new leaders immediately."""
        result = self.heartbeat(broker_id, want_shut_down=True)
        records = self.records
        while not result.should_shut_down:
            for other in self.image.brokers:
                if other != broker_id and not self.image.brokers[other].fenced:
                    self.heartbeat(other)
            result = self.heartbeat(broker_id, want_shut_down=True)
            records = records + self.records
        self.records = records

    def start(self, broker_id, **options):
        epoch = self.register(broker_id, **options)
        self.heartbeat(broker_id)
        return epoch

    def create(self, *topics, validate_only=False):
        """Returns one error, or None, for each topic, in the order of the response, by name."""
        results = self.submit(CreateTopics(topics, validate_only))
        return {result.name: type(result.error) if result.error else None for result in results}

    def topic(self, name):
        return self.image.topics_by_name[name]

    def partition(self, name, index=0):
        return self.image.topics_by_name[name].partitions[index]


@pytest.fixture(scope="session")
def make_cluster():
    """Returns :class:`Cluster`, for a test with own brokers and settings."""
    return Cluster


@pytest.fixture
def cluster():
    """A cluster of broker 1."""
    return Cluster()


class FlushingServices(LogServices):
    """Flushes a log when it is due."""

    def request_flush(self, log, up_to):
        log.flush(up_to)


class Metadata(ControllerMetadata):
    """A node's metadata, with functions for tests."""

    def submit(self, command):
        return submitted(self.controller, command)

    def update_features(self, *updates, validate_only=False):
        return self.submit(UpdateFeatures(updates, validate_only))

    @property
    def image(self):
        return self.loader.image

    @property
    def kraft(self):
        return self.quorum.kraft

    @property
    def epoch(self):
        return self.quorum.leadership.epoch

    def snapshot_ids(self):
        return self.quorum.metadata_log.snapshots()


class Opener:
    """Opens the metadata log of one data directory repeatedly."""

    directory = DIRECTORY

    def __init__(self, files):
        self.files = files
        self.clock = ManualClock()

    def __call__(
        self, *, node_id=1, directory_id=bytes(16), limits=DEFAULT_LIMITS, retention=DEFAULT_RETENTION, clean=False,
        settings=None, segment_bytes=1 << 20, background=None, features=None, scheduler=None,
    ):  # fmt: skip
        config = BrokerConfig.from_properties(settings or {})
        metadata_log = self.open_log(clean, segment_bytes, background=background, retention=retention)
        metadata = Metadata(
            metadata_log,
            SoleVoter(metadata_log, self.files, self.clock, ReplicaKey(node_id, directory_id)),
            self.clock,
            self.files,
            settings=lambda: config,
            rules=ConfigRules(lambda: config),
            random=Random(0),
            limits=limits,
            features=features,
            cluster_id=CLUSTER_ID,
            resident=node_id,
            scheduler=scheduler,
        )
        metadata.open()
        return metadata

    def open_log(self, clean=False, segment_bytes=1 << 20, *, background=None, retention=DEFAULT_RETENTION):
        """Opens the log alone."""
        self.files.makedirs(DIRECTORY)
        log = open_log(
            FlushingServices(LogDirectory(self.files, "/data")), DIRECTORY, "__cluster_metadata", 0,
            topic_config(segment_bytes=segment_bytes), clean=clean, recovery_point=0, now_ms=self.clock.time_ms(),
        )  # fmt: skip
        return MetadataLog(
            log, DIRECTORY, self.files, clock=self.clock, background=background or Inline(), retention=retention
        )

    def started(self, **options):
        """Opens the log, and registers and unfences its broker."""
        metadata = self(**options)
        epoch = metadata.submit(registration(1))
        metadata.submit(heartbeat(1, epoch, metadata_offset=metadata.image.offset))
        return metadata


@pytest.fixture
def open_metadata():
    """Opens the metadata log of one data directory in memory repeatedly."""
    return Opener(MemoryFiles())


@pytest.fixture(scope="session")
def batches_of():
    """Returns all batches of a metadata log, decoded."""

    def read(log):
        data = log.read(log.log_start_offset, 1 << 24, up_to=log.log_end_offset, minimum_one=True)
        return list(decode_batches(data))

    return read


@pytest.fixture(scope="session")
def opener():
    """Returns :class:`Opener`, for a test with its own files."""
    return Opener


@pytest.fixture(scope="session")
def golden():
    """Returns bytes of Apache Kafka 4.3.1, by the name of their file in golden/."""

    def read(name):
        return bytes.fromhex((Path(__file__).parent / "golden" / f"{name}.hex").read_text())

    return read
