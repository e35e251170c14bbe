"""What the requests about delegation tokens share.

Knows nothing of any of them. Apache Kafka's ``KafkaApis.allowTokenRequests``.
"""

from typing import Final

from barnabas.api_handlers.context import Context
from barnabas.security.principals import ANONYMOUS
from barnabas.security.tokens import may_request

NO_TIME: Final = -1
"""The times in a refusal that the broker itself answers (``DelegationTokenManager.ERROR_TIMESTAMP``)."""


def is_allowed(context: Context) -> bool:
    """Returns whether the session may ask for tokens. Of a forwarded request the other broker has seen the protocol."""
    session = context.session
    if session.is_forwarded:
        return not session.by_token
    return may_request(session.security_protocol, session.principal == ANONYMOUS, session.by_token)
