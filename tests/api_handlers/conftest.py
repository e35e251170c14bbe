"""What tests of handlers share: a broker of real parts that does no I/O."""

from random import Random

import pytest

from barnabas.api_handlers.context import Context
from barnabas.cluster.commands import ConfigResource, CreateTopics, NewTopic, RegisterBroker, UnfenceBroker
from barnabas.cluster.controller import Controller
from barnabas.cluster.image import MetadataImage
from barnabas.cluster.node_decisions import bootstrap_records, first_records
from barnabas.config import BrokerConfig
from barnabas.config.dynamic import ConfigRules
from barnabas.config.endpoints import Endpoint


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
