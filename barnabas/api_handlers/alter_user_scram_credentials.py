"""AlterUserScramCredentials (API key 51): sets and removes SCRAM credentials of users (KIP-554).

Knows nothing of the rules for credentials: the controller decides.
"""

from collections.abc import Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.outcome import code_of, message_of
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.submitting import submit
from barnabas.cluster.controller.commands.scram import (
    AlteredCredentials,
    AlterUserScramCredentials,
    ScramDeletion,
    ScramUpsertion,
)
from barnabas.errors import KafkaError
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


@api(AlterUserScramCredentialsRequest)
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse | Later[AlterUserScramCredentialsResponse]:
    """Changes the credentials of each user independently of the others."""
    command = AlterUserScramCredentials(
        [ScramDeletion(each.name, each.mechanism) for each in request.deletions],
        [
            ScramUpsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
            for each in request.upsertions
        ],
    )
    return submit(command, request, context, respond)


def respond(results: Sequence[AlteredCredentials]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(results=[answer(each.user, each.error) for each in results])


@error_shape(AlterUserScramCredentialsRequest)
def refused(
    request: AlterUserScramCredentialsRequest, error: KafkaError, version: int
) -> AlterUserScramCredentialsResponse:
    """Refuses each user's change."""
    users = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(results=[answer(user, error) for user in users])


def answer(user: str, error: KafkaError | None) -> Result:
    return Result(user=user, error_code=code_of(error), error_message=message_of(error))
