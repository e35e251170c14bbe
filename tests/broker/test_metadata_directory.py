"""``metadata.log.dir``: the metadata log in one of ``log.dirs``, or in a directory of its own."""

import errno

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectoryError

from .opening import opened

ID = bytes(range(16))


class Node:
    """Restarts of a node over the same files."""

    def __init__(self):
        self.files, self.clock = MemoryFiles(), ManualClock()

    def open(self, **properties):
        names = {name.replace("_", "."): value for name, value in properties.items()}
        config = BrokerConfig.from_properties({"log.dirs": "/a,/b", **names})
        return opened(config, self.files, self.clock)


@pytest.fixture
def node():
    return Node()


def fill(broker):
    """Creates more logs than there are directories."""
    manager = broker.log_manager
    for index in range(6):
        manager.create("orders", index, ID, broker.metadata.log.config)


@pytest.mark.parametrize("wanted", ["/a", "/b", "/metadata", "/metadata/"])
def test_the_log_lies_where_the_config_says(node, wanted):
    broker = node.open(metadata_log_dir=wanted)
    fill(broker)
    broker.close()
    path = wanted.rstrip("/")
    assert broker.metadata.log.directory == f"{path}/__cluster_metadata-0"
    for each in {"/a", "/b", path}:
        orders = {name for name in node.files.list(each) if name.startswith("orders")}
        assert len(orders) == (0 if each == "/metadata" else 3), each
        assert ("__cluster_metadata-0" in node.files.list(each)) == (each == path)
    assert broker.cluster_id == node.open(metadata_log_dir=wanted).cluster_id


def test_a_directory_of_its_own_is_not_among_the_brokers(node):
    """The broker does not register it, and DescribeLogDirs does not list it."""
    broker = node.open(metadata_log_dir="/metadata")
    manager = broker.log_manager
    assert [each.path for each in manager.directories] == ["/a", "/b"]
    registered = broker.image.brokers[broker.node_id].log_dirs
    assert sorted(registered) == sorted(each.directory_id for each in manager.directories)
    assert manager.metadata_directory.directory_id not in registered
    with pytest.raises(LogDirectoryError, match=r"/metadata/\.lock"):
        node.open(log_dirs="/c", metadata_log_dir="/metadata")


def test_a_log_in_another_directory_is_not_begun_anew(node):
    node.open().close()
    with pytest.raises(MetadataLogError, match=r"is /a/__cluster_metadata-0, but metadata.log.dir is /b"):
        node.open(metadata_log_dir="/b")


def test_the_node_stops_when_the_directory_fails(node):
    broker = node.open(metadata_log_dir="/metadata")
    reasons = []
    broker.on_fatal = reasons.append
    broker.log_manager.directory_failed(broker.log_manager.metadata_directory, OSError(errno.EIO, "of a test"))
    node.clock.advance(1)
    assert reasons == ["/metadata, the log directory with the metadata log, is offline"]
