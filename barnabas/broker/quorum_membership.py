"""Makes the quorum client of a node that is not the only voter: an observer or a voter, with the controllers' addresses
and the node's configs.

Knows nothing of how a node follows or leads the metadata log. A node that is the only voter does not import it.
"""

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from barnabas.clock import Clock, Scheduler
from barnabas.cluster.quorum.controllers import Address, Controllers, parse_address
from barnabas.cluster.quorum.elections import Times
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog
from barnabas.cluster.quorum.observer import Limits, Observer
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.config import BrokerConfig
from barnabas.log.files import Files
from barnabas.peers.peers import Peers


class ObservingNode(Protocol):
    """The part of the node that is used here."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    controller_peers: Peers
    cluster_clock: Clock
    cluster_scheduler: Scheduler
    random: Random
    on_fatal: Callable[[str], object]


def new_observer(node: ObservingNode, metadata_log: MetadataLog, files: Files) -> Observer:
    """Returns the observer of a node that is not a controller. It fetches from the configured controllers."""
    return Observer(metadata_log, *_place(node, metadata_log), files=files, **_surroundings(node))


def new_voter(node: ObservingNode, metadata_log: MetadataLog, files: Files) -> RaftVoter:
    """Returns the voter of a node that is one of several controllers."""
    config = node.config
    times = Times(
        config["controller.quorum.election.timeout.ms"] / 1000,
        config["controller.quorum.fetch.timeout.ms"] / 1000,
        config["controller.quorum.election.backoff.max.ms"] / 1000,
    )
    joins = config["controller.quorum.auto.join.enable"]
    place = _place(node, metadata_log)
    return RaftVoter(metadata_log, *place, files=files, times=times, joins=joins, **_surroundings(node))


def _place(node: ObservingNode, metadata_log: MetadataLog) -> tuple[Identity, Controllers, Peers]:
    """Returns the identity of the node, the addresses of the controllers, and the peers that reach them."""
    directory_id = metadata_log.log.log_directory.directory_id
    return Identity(node.node_id, node.cluster_id, directory_id), controllers_of(node.config), node.controller_peers


def _surroundings(node: ObservingNode) -> dict[str, Any]:
    config = node.config
    return {
        "clock": node.cluster_clock,
        "scheduler": node.cluster_scheduler,
        "random": node.random,
        "on_fatal": lambda reason: node.on_fatal(reason),
        "limits": Limits(
            config["controller.quorum.fetch.timeout.ms"],
            config["controller.quorum.request.timeout.ms"],
            config["controller.quorum.retry.backoff.ms"],
            config["controller.quorum.fetch.max.bytes"],
            config["controller.quorum.fetch.snapshot.max.bytes"],
        ),
    }


def controllers_of(config: BrokerConfig) -> Controllers:
    """Returns the address book, filled from the configs."""
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
