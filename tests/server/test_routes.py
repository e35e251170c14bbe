"""The routes of a listener: one for each version of an API that was requested, shared by its connections."""

from types import SimpleNamespace

from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.server.dispatch import Dispatcher
from barnabas.server.routes import Routes
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.raw import framed

HEARTBEAT = 12


def test_connections_share_what_handles_a_version():
    made, handled = [], []

    def new_handle(api, version):
        def handle(api, request, context):
            handled.append((api.key, version, context.api_version))
            return HeartbeatResponse(error_code=0)

        made.append((api.key, version))
        return handle

    promise = Promise({HEARTBEAT: APIS[HEARTBEAT]})
    routes = Routes(promise.apis)
    routes.new_handle = new_handle
    session = Session(listener="PLAINTEXT", client_host="127.0.0.1", promise=promise)
    node = SimpleNamespace(clock=ManualClock(), quotas=None, authorizer=None)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    for dispatcher in (Dispatcher(node, session, routes), Dispatcher(node, session, routes)):
        for version in (3, 4, 3):
            assert dispatcher.respond(memoryview(framed(request, version))[4:])
    assert made == [(HEARTBEAT, 3), (HEARTBEAT, 4)]
    assert handled == [(HEARTBEAT, version, version) for version in (3, 4, 3) * 2]
