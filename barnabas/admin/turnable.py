"""A server whose clock can be advanced by the admin API.

Knows nothing of the API.
"""

import asyncio
from typing import Any

from barnabas.config import BrokerConfig
from barnabas.server.server import Server
from barnabas.testing.turning import TurnedClock, Undisturbed


def new_turnable_server(config: BrokerConfig, **options: Any) -> Server:
    """Returns a server in the running event loop, with what :class:`Server` takes."""
    clock = TurnedClock()
    clock.loop = asyncio.get_running_loop()
    return Server(
        config,
        clock=clock,
        scheduler=clock,
        cluster_clock=Undisturbed(clock),
        cluster_scheduler=clock.loop,
        **options,
    )
