"""The quorum as a node without a vote sees it: who it is, where the controllers are, and how it follows them.

Knows nothing of how it follows them. It is imported by nodes that are no controllers only.
"""

from collections.abc import Callable
from random import Random
from typing import Protocol

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.quorum.controllers import Address, Controllers, parse_address
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog
from barnabas.cluster.quorum.observer import Limits, Observer
from barnabas.config import BrokerConfig
from barnabas.log.files import Files
from barnabas.peers.peers import Peers


class ObservingNode(Protocol):
    """What is used of the node."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    controller_peers: Peers
    clock: Clock
    scheduler: Scheduler
    random: Random
    on_fatal: Callable[[str], object]


def new_observer(node: ObservingNode, metadata_log: MetadataLog, files: Files) -> Observer:
    """Returns the observer of a node, which follows the controllers that the configs name."""
    config = node.config
    return Observer(
        metadata_log,
        Identity(node.node_id, node.cluster_id, metadata_log.log.log_directory.directory_id),
        controllers_of(config),
        node.controller_peers,
        files=files,
        clock=node.clock,
        scheduler=node.scheduler,
        random=node.random,
        on_fatal=lambda reason: node.on_fatal(reason),
        limits=Limits(
            config["controller.quorum.fetch.timeout.ms"],
            config["controller.quorum.request.timeout.ms"],
            config["controller.quorum.retry.backoff.ms"],
            config["controller.quorum.fetch.max.bytes"],
            config["controller.quorum.fetch.snapshot.max.bytes"],
        ),
    )


def controllers_of(config: BrokerConfig) -> Controllers:
    """Returns the address book with what the configs say."""
    voters: dict[int, Address] = {}
    for voter in config["controller.quorum.voters"]:
        node_id, _, address = voter.partition("@")
        voters[int(node_id)] = parse_address(address)
    return Controllers(
        config.controller_listener_name,
        config.controller_security_protocol,
        voters=voters,
        bootstrap=[parse_address(each) for each in config["controller.quorum.bootstrap.servers"]],
    )
