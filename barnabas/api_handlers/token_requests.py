"""The common parts of the handlers of delegation tokens.

Knows nothing of any single API. Apache Kafka's ``KafkaApis.allowTokenRequests``.
"""

from typing import Final

from barnabas.api_handlers.context import Context
from barnabas.security.principals import ANONYMOUS
from barnabas.security.tokens import may_request

NO_TIME: Final = -1
"""The times in a refusal that the broker itself answers (``DelegationTokenManager.ERROR_TIMESTAMP``)."""


def is_allowed(context: Context) -> bool:
    """Returns whether the session may use token APIs. For a forwarded request, the forwarding broker has checked the
    protocol.
    """
    session = context.session
    if session.is_forwarded:
        return not session.by_token
    return may_request(session.security_protocol, session.principal == ANONYMOUS, session.by_token)
