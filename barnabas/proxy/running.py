"""A process that runs a proxy: its event loop and its signals.

Knows nothing of the command line.
"""

import asyncio
import gc
from collections.abc import Callable

from barnabas.log.systems import raise_descriptors
from barnabas.proxy.proxy import Proxy
from barnabas.server.run import YOUNG_OBJECTS, loop_factory, when_told_to_stop

Make = Callable[[asyncio.AbstractEventLoop], Proxy]


def run(make: Make, ready: Callable[[Proxy], object]) -> None:
    """Runs the proxy until SIGTERM or SIGINT.

    :param make: makes the proxy, within the loop
    :param ready: called once it listens
    :raises OSError: its port is in use
    """
    raise_descriptors()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(make, ready))


async def _serve(make: Make, ready: Callable[[Proxy], object]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    when_told_to_stop(loop, stopping.set)
    proxy = make(loop)
    await proxy.start()
    gc.freeze()  # as in a broker: the objects created so far live as long as the process
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    ready(proxy)
    await stopping.wait()
    await proxy.stop()
