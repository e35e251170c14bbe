"""A listener that has stopped, and a connection that comes in the same moment."""

import asyncio

from barnabas.config import BrokerConfig
from barnabas.server.connection import Connection
from barnabas.server.server import Server


class Transport:
    """Says whether it was aborted."""

    was_aborted = False

    def get_extra_info(self, name):
        return ("127.0.0.1", 50000)

    def abort(self):
        self.was_aborted = True


def test_who_was_accepted_before_it_stopped_is_not_let_in_after(tmp_path):
    """The event loop makes a connection some time after it has accepted it; nobody would close that one."""

    async def run():
        server = Server(
            BrokerConfig.from_properties({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"})
        )
        await server.start()
        (listener,) = server.listeners
        late, transport = Connection(listener, asyncio.get_running_loop()), Transport()
        listener.stop_accepting()
        late.connection_made(transport)
        assert transport.was_aborted
        assert not listener.connections
        await server.stop()

    asyncio.run(run())
