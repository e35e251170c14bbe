"""A process that runs a broker: its event loop, signals and exit code.

Knows nothing of the command line. It is given a configuration, and a function to call once the broker answers.
"""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Mapping

from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.config.validators import ConfigError
from barnabas.errors import KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.systems import raise_descriptors
from barnabas.server.server import Server

logger = logging.getLogger(__name__)

YOUNG_OBJECTS = 50_000
"""Allocations between two collections. Requests allocate much and leave few cycles: CPython's 700 costs a tenth."""


def run(
    config: BrokerConfig,
    ready: Callable[[Server], object] = lambda server: None,
    features: Mapping[str, int] | None = None,
    *,
    new_server: Callable[..., Server] = Server,
    parent_pid: int | None = None,
) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, 1 if the server cannot start or
    cannot continue.

    :param ready: called with the server once it answers
    :param features: the levels of features at which a new cluster starts, where they differ from the default
    :param new_server: called in the event loop with what :class:`Server` takes
    :param parent_pid: a process; the server stops when it ends
    """
    raise_descriptors()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(serve(config, ready, features, new_server, parent_pid))


async def serve(
    config: BrokerConfig,
    ready: Callable[[Server], object],
    features: Mapping[str, int] | None = None,
    new_server: Callable[..., Server] = Server,
    parent_pid: int | None = None,
) -> int:
    """Runs a server until a signal arrives, or until it cannot continue. Returns the exit code, as :func:`run` does."""
    stopping = asyncio.Event()
    exit_code = 0

    def give_up(reason: str) -> None:
        nonlocal exit_code
        logger.critical("The broker stops, because %s", reason)
        exit_code = 1
        stopping.set()

    loop = asyncio.get_running_loop()
    when_told_to_stop(loop, stopping.set)
    server = new_server(config, on_fatal=give_up, features=features)
    try:
        if parent_pid is not None:
            from barnabas.server.parent import when_it_ends

            when_it_ends(parent_pid, loop, stopping.set)
        await server.start()
    except (ConfigError, KafkaError, OSError, LogDirectoryError, MetadataLogError) as error:
        logger.error("Cannot start: %s", error)
        return 1
    gc.freeze()  # the objects created so far live as long as the process
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    gc.enable()
    ready(server)
    await stopping.wait()
    logger.info("Stopping")
    try:
        await server.stop()
    except OSError:  # which is in the log already
        return 1
    return exit_code


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Returns the factory of the event loop: uvloop's where it runs, asyncio's elsewhere."""
    if sys.platform != "win32":
        try:
            import uvloop
        except ImportError:
            pass
        else:
            return uvloop.new_event_loop
    return asyncio.new_event_loop


def when_told_to_stop(loop: asyncio.AbstractEventLoop, stop: Callable[[], object]) -> None:
    """Installs signal handlers that call ``stop`` in the loop at SIGTERM or SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # the loops of Windows
            signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(stop))
