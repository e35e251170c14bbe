"""BrokerHeartbeat (API key 63): a broker keeps its session, and asks to be unfenced, fenced or shut down (KIP-631).

Knows nothing of sessions: the controller decides.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.nodes import BrokerHeartbeat, HeartbeatResult
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


@api(BrokerHeartbeatRequest)
def broker_heartbeat(
    request: BrokerHeartbeatRequest, context: Context
) -> BrokerHeartbeatResponse | Later[BrokerHeartbeatResponse]:
    """Returns whether the broker is fenced, caught up, and may shut down."""
    command = BrokerHeartbeat(
        request.broker_id,
        request.broker_epoch,
        request.current_metadata_offset,
        request.want_fence,
        request.want_shut_down,
        request.offline_log_dirs,
        request.cordoned_log_dirs,
    )

    def respond(result: HeartbeatResult) -> BrokerHeartbeatResponse:
        return BrokerHeartbeatResponse(
            is_caught_up=result.is_caught_up, is_fenced=result.is_fenced, should_shut_down=result.should_shut_down
        )

    return submit(command, request, context, respond)
