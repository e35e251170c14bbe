"""DescribeUserScramCredentials (API key 50): the mechanisms and iterations of users' credentials (KIP-554).

Knows nothing of how clients authenticate. Rules of Apache Kafka's ``ScramImage``.
"""

from collections import Counter
from typing import Any

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.outcome import code_of
from barnabas.api_handlers.registry import api
from barnabas.errors import DuplicateResource, KafkaError, ResourceNotFound
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult


@api(DescribeUserScramCredentialsRequest)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """Describes the named users, or all users if none is named."""
    credentials = context.broker.image.credentials
    found: dict[str, list[Result.CredentialInfo]] = {}
    for (user, mechanism), record in credentials.items():
        info = Result.CredentialInfo(mechanism=mechanism, iterations=record.iterations)
        found.setdefault(user, []).append(info)
    named = Counter(each.name for each in request.users or ()) or dict.fromkeys(found, 1)
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[described(user, times, found) for user, times in named.items()]
    )


def described(user: str, times: int, found: dict[str, list[Any]]) -> Result:
    error: KafkaError | None = None
    if times > 1:
        error = DuplicateResource(
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    elif user not in found:
        error = ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}")
    infos = [] if error else found[user]
    return Result(user=user, error_code=code_of(error), error_message=str(error or ""), credential_infos=infos)


@error_shape(DescribeUserScramCredentialsRequest)
def refused(
    request: DescribeUserScramCredentialsRequest, error: KafkaError, version: int
) -> DescribeUserScramCredentialsResponse:
    """Refuses the request. Each result is one without a name (``DescribeUserScramCredentialsRequest``).

    If no user is named, Apache Kafka fails here: it never responds, or closes the connection during a SASL exchange.
    """
    result = Result(user="", error_code=error.code, error_message=str(error), credential_infos=[])
    return DescribeUserScramCredentialsResponse(
        error_code=error.code, error_message=str(error), results=[result] * len(request.users or ())
    )
