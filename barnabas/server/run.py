"""A process that is a broker: event loop, signals, exit code.

Knows nothing of the command line; it is given a configuration and a function to call once it answers.
"""

import asyncio
import gc
import logging
import resource
import signal
import sys
from collections.abc import Callable, Mapping

from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.log.log_directory import LogDirectoryError
from barnabas.server.server import Server

logger = logging.getLogger(__name__)

YOUNG_OBJECTS = 50_000
"""Requests make many short-lived objects and hardly a cycle: looking for cycles at CPython's 700 costs a tenth."""


def run(
    config: BrokerConfig,
    ready: Callable[[Server], object] = lambda server: None,
    features: Mapping[str, int] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit code: 0 after a clean stop, 1 when it could not start or go on."""
    raise_file_limit()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            return runner.run(serve(config, ready, features))
        except (OSError, LogDirectoryError, MetadataLogError) as error:
            logger.error("Can't start: %s", error)
            return 1


async def serve(
    config: BrokerConfig, ready: Callable[[Server], object], features: Mapping[str, int] | None = None
) -> int:
    """Start a server, say that it is ready, and stop it in good order when a signal comes: 0; or when it must: 1."""
    stopping = asyncio.Event()
    exit_code = 0

    def give_up(reason: str) -> None:
        nonlocal exit_code
        logger.critical("The broker stops, because %s", reason)
        exit_code = 1
        stopping.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = Server(config, on_fatal=give_up, features=features)
    await server.start()
    gc.freeze()  # what is there now stays
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)
    gc.enable()
    ready(server)
    await stopping.wait()
    logger.info("Stopping")
    await server.stop()
    return exit_code


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's where it runs."""
    if sys.platform != "win32":
        try:
            import uvloop
        except ImportError:
            pass
        else:
            return uvloop.new_event_loop
    return asyncio.new_event_loop


def raise_file_limit() -> None:
    """A partition has a file open, a connection another: take as many as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
