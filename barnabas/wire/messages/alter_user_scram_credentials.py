"""AlterUserScramCredentials (API key 51): sets and removes SCRAM credentials of users (KIP-554).

v0 is the only version.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, string


class AlterUserScramCredentialsRequest(Request, api_key=51, versions="0", flexible="0+"):
    class ScramCredentialDeletion(Struct):
        name: string
        mechanism: int8

    class ScramCredentialUpsertion(Struct):
        name: string
        mechanism: int8
        iterations: int32
        salt: bytes
        salted_password: bytes

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


class AlterUserScramCredentialsResponse(Response, to=AlterUserScramCredentialsRequest):
    class AlterUserScramCredentialsResult(Struct):
        user: string
        error_code: int16 = 0
        error_message: string | None = None

    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult]
