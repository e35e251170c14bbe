"""DescribeUserScramCredentials (API key 50): lists mechanisms and iterations of users (KIP-554).

v0 is the only version.
"""

from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct
from barnabas.wire.types import int8, int16, int32, string


class DescribeUserScramCredentialsRequest(Request, api_key=50, versions="0", flexible="0+"):
    class UserName(Struct):
        name: string

    users: list[UserName] | None


class DescribeUserScramCredentialsResponse(Response, to=DescribeUserScramCredentialsRequest):
    class DescribeUserScramCredentialsResult(Struct):
        class CredentialInfo(Struct):
            mechanism: int8
            iterations: int32

        user: string
        error_code: int16 = 0
        error_message: string | None = None
        credential_infos: list[CredentialInfo]

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: string | None = None
    results: list[DescribeUserScramCredentialsResult]
