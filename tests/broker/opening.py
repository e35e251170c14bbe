"""A whole broker without sockets, on any files, with a manual clock."""

import itertools
from random import Random

from barnabas.api_handlers.peer_requests import join
from barnabas.broker import Broker
from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.log.background import Inline
from barnabas.log.files import Files
from barnabas.peers.in_process import InProcessPeers

STARTS = itertools.count()


def opened(config: BrokerConfig, files: Files, clock: ManualClock) -> Broker:
    """Returns a broker that has opened its directories and is registered; background work runs inline.

    Requests to its peers, and to itself, are encoded.
    """
    peers = InProcessPeers(encodes=True)
    random = Random(next(STARTS))  # another incarnation at each start
    broker = Broker(config, files=files, clock=clock, scheduler=clock, random=random, background=Inline(), peers=peers)
    join(peers, broker)
    broker.open()
    broker.register({"PLAINTEXT": 9092})
    return broker
