"""What tests of handlers share: a broker of real parts that does no I/O."""

from random import Random

import pytest

from barnabas.api_handlers.context import Context
from barnabas.broker import Broker
from barnabas.clock import ManualClock
from barnabas.cluster.commands import ConfigResource, CreateTopics, NewTopic, RegisterBroker, UnfenceBroker
from barnabas.cluster.controller import Controller
from barnabas.cluster.image import MetadataImage
from barnabas.cluster.node_decisions import bootstrap_records, first_records
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import ConfigRules
from barnabas.config.endpoints import Endpoint
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch


class ConfigCluster:
    """A broker that is only configs: the real controller and the real image, and no log, no clock, no socket."""

    node_id = 1

    def __init__(self, **properties: str) -> None:
        self.static = BrokerConfig.from_properties(properties)
        self.config = self.static
        self.image = MetadataImage()
        self._decisions = Controller(self.static, ConfigRules(lambda: self.config), Random(0))
        self._apply(first_records(bootstrap_records(), 1))
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT")
        self.submit(RegisterBroker(1, bytes(16), [endpoint], [bytes(15) + b"\2"]))
        self.submit(UnfenceBroker(1))

    @property
    def controller(self) -> "ConfigCluster":
        return self

    def submit(self, command):
        decision = self._decisions.decide(command, self.image)
        self._apply(decision.records)
        return decision.result

    def _apply(self, records):
        self.image, _ = self.image.apply(records, offset=self.image.offset + len(records))
        self.config = self.static.with_dynamic(self.image.configs_of(4, ""), self.image.configs_of(4, "1"))

    def create_topic(self, name, **configs):
        (created,) = self.submit(CreateTopics([NewTopic(name, 1, 1, configs=list(configs.items()))]))
        assert created.error is None, created.error

    def configs(self, kind, name):
        return dict(self.image.configs_of(*ConfigResource(kind, name)))

    def ask(self, handle, request, version):
        """The answer, by way of its bytes: what the version does not carry is not seen."""
        context = Context(self, listener="PLAINTEXT", client_host="127.0.0.1")
        context.api_version = version
        response = handle(type(request).decode(request.encode(version=version), version=version), context)
        return type(response).decode(response.encode(version=version), version=version)


@pytest.fixture(scope="session")
def config_cluster():
    """:class:`ConfigCluster`, to be made with the properties that a test wants."""
    return ConfigCluster


class QuietNode:
    """A whole broker in memory, without sockets, whose clock stands still until it is told to go on."""

    def __init__(self, **properties: str) -> None:
        defaults = {"node.id": "1", "log.dirs": "/a,/b", "listeners": "PLAINTEXT://127.0.0.1:9092"}
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.background = Inline()
        self.broker = Broker(
            BrokerConfig.from_properties(defaults | properties),
            files=self.files,
            clock=self.clock,
            scheduler=self.clock,
            random=Random(0),
            background=self.background,
        )
        self.broker.open()
        self.broker.register({"PLAINTEXT": 9092})

    def create_topic(self, name, partitions=1, **configs):
        """The first partition of a new topic."""
        self.broker.create_topic(name, partitions, {key.replace("_", "."): value for key, value in configs.items()})
        return self.broker.partition(name, 0)

    def append(self, partition, *timestamps, **options):
        """One batch, with a record for each of these times in ms."""
        records = [(b"key", b"value", timestamp) for timestamp in timestamps]
        batch = RecordBatch.parse(build_batch(records, **options))
        return partition.append(batch, self.clock.time_ms())

    def ask(self, handle, request, version):
        """The answer, by way of its bytes: what the version does not carry is not seen."""
        return ConfigCluster.ask(self.broker, handle, request, version)


@pytest.fixture
def node():
    """:class:`QuietNode`."""
    return QuietNode()


@pytest.fixture(scope="session")
def quiet_node():
    """:class:`QuietNode`, to be made with the properties that a test wants."""
    return QuietNode
