"""AlterConfigs (API key 33) at a controller: also for other nodes, whose brokers forward it.

Knows nothing of what may be set or where it is kept: the controller decides. Apache Kafka's
``ControllerApis.handleLegacyAlterConfigs``.
"""

from barnabas.api_handlers.alter_configs import alteration, result
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.controller_incremental_alter_configs import refused
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit_rest
from barnabas.cluster.controller.commands.configs import AlterConfigs
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@api(AlterConfigsRequest)
def controller_alter_configs(
    request: AlterConfigsRequest, context: Context
) -> AlterConfigsResponse | Later[AlterConfigsResponse]:
    """Replaces the configs of each resource, or only checks the new ones."""
    errors = refused(request)
    return submit_rest(request, errors, alteration, AlterConfigs, AlterConfigsResponse, result, context)
